"""Columns of values in the form that the engine computes with.

Numbers, booleans, dates and instants are numpy arrays. Strings are Arrow arrays, or dictionary
codes where few values repeat often. Lists and vectors are Arrow arrays. Nulls are marked in a
separate mask, never by a special value. Nothing is evaluated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.types import PropertyType, Stored
from omnigraph.predicates import chunked

Ints: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

DICTIONARY_ROWS_MIN: Final = 1_024
"""Shorter columns are not dictionary-encoded."""
DICTIONARY_SAMPLE_ROWS: Final = 4_096
"""Strings that are sampled to decide whether values repeat."""
DICTIONARY_COST: Final = 8
"""Memory of a dictionary, as a multiple of its bytes: its strings may become Python objects."""
DICTIONARY_RATIO: Final = 4
"""Strings are dictionary-encoded when each occurs at least this often on average."""

TEXTS_TAKEN_MAX: Final = 1 << 16
"""Strings or lists that are gathered in one Arrow call."""
TAKEN_MIN: Final = 1_024
"""Fewer items are gathered by indexing: ``take`` has a higher fixed cost."""

_NUMPY: Final = {"bool", "integer", "float", "date", "datetime"}


@dataclass(frozen=True)
class StringDictionary:
    """Distinct strings in byte order."""

    array: pa.Array

    @cached_property
    def list(self) -> list[str | None]:
        """The strings, with null at the end, where code -1 points."""
        return [*self.array.to_pylist(), None]

    @cached_property
    def places(self) -> dict[str | None, int]:
        return {word: at for at, word in enumerate(self.list[:-1])}

    @cached_property
    def encoded(self) -> tuple[bytes, ...]:
        return tuple(str(word).encode() for word in self.list[:-1])


@dataclass(frozen=True, slots=True)
class Literal:
    """One value for every row; None is null."""

    value: Stored | tuple[Stored, ...] | None
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Values:
    """One value per row.

    With a ``dictionary`` the data are codes: positions in that sorted list, -1 for null. Codes
    compare like their strings.
    """

    type: PropertyType
    data: Any
    valid: Mask | None = None
    dictionary: StringDictionary | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_numpy(self) -> bool:
        return isinstance(self.data, np.ndarray)

    @property
    def nbytes(self) -> int:
        extra = 0 if self.valid is None else self.valid.nbytes
        words = (
            0 if self.dictionary is None else DICTIONARY_COST * int(self.dictionary.array.nbytes)
        )
        return int(self.data.nbytes) + extra + words

    def take(self, rows: Ints) -> Values:
        """The values of some rows, in this order."""
        if isinstance(self.data, np.ndarray):
            valid = None if self.valid is None else picked(self.valid, rows)
            return Values(self.type, picked(self.data, rows), valid, self.dictionary)
        if len(rows) == 1:
            return Values(self.type, self.data.slice(int(rows[0]), 1))
        if len(rows) <= TEXTS_TAKEN_MAX:
            return Values(self.type, _take().call([self.data, pa.array(rows)]))
        parts = chunked.chunks(len(rows), TEXTS_TAKEN_MAX)
        taken = [_take().call([self.data, pa.array(rows[part])]) for part in parts]
        return Values(self.type, pa.concat_arrays(taken))

    def part(self, start: int, stop: int) -> Values:
        """The values of consecutive rows."""
        if not isinstance(self.data, np.ndarray):
            return Values(self.type, self.data.slice(start, stop - start))
        valid = None if self.valid is None else self.valid[start:stop]
        return Values(self.type, self.data[start:stop], valid, self.dictionary)

    def is_valid(self) -> Mask | None:
        """Which values are not null; None when all are."""
        if self.dictionary is not None:
            return np.asarray(self.data >= 0)
        if isinstance(self.data, np.ndarray):
            return self.valid
        if self.data.null_count == 0:
            return None
        return np.asarray(self.data.is_valid().to_numpy(zero_copy_only=False))

    def to_list(self) -> list[Any]:
        """The stored values as Python values, None for null."""
        if self.dictionary is not None:
            words = self.dictionary.list
            return [words[place] for place in self.data.tolist()]
        found: list[Any] = (
            self.data.tolist() if isinstance(self.data, np.ndarray) else self._arrow_list()
        )
        if self.valid is None:
            return found
        return [v if ok else None for v, ok in zip(found, self.valid.tolist(), strict=True)]

    def _arrow_list(self) -> list[Any]:
        """Arrow values as Python lists; dates and instants in lists as the stored integers."""
        family = self.type.scalar.family
        if self.type.is_list and family in ("date", "datetime"):
            number = pa.int32() if family == "date" else pa.int64()
            return list(self.data.cast(pa.list_(number)).to_pylist())
        return list(self.data.to_pylist())

    def to_arrow(self) -> pa.Array:
        """The same values as an Arrow array of the declared type."""
        if self.dictionary is not None:
            missing = self.data < 0
            places = pa.array(self.data, mask=missing if missing.any() else None)
            return pc.take(self.dictionary.array, places)
        if not isinstance(self.data, np.ndarray):
            return self.data
        mask = None if self.valid is None else ~self.valid
        found = pa.array(self.data, mask=mask)
        declared = self.type.arrow_type()
        if found.type == declared:
            return found
        return found.view(declared) if self.type.scalar.family != "bool" else found.cast(declared)


@cache
def _take() -> Any:
    """Arrow's ``array_take`` kernel, looked up once: ``pc.take`` takes twice as long per call."""
    return pc.get_function("array_take")


def picked(array: Ints, rows: Ints) -> Ints:
    """Some items of an array. ``take`` is faster for many; for few it releases the interpreter
    lock, which costs more than it saves.
    """
    if len(rows) < TAKEN_MIN:
        return array[rows]
    return array.take(rows) if len(rows) <= chunked.LONG_ROWS else chunked.take(array, rows)


def values_of(column: pa.Array | pa.ChunkedArray, kind: PropertyType) -> Values:
    """An Arrow column in the form the engine computes with."""
    found = column_values(column, kind)
    return _strings(found.data, kind) if kind.is_string else found


def column_values(column: pa.Array | pa.ChunkedArray, kind: PropertyType) -> Values:
    """The same without dictionary encoding, for a column that is used once."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # more text than one array can hold
        array = pa.concat_arrays(array.cast(pa.large_string()).chunks)
    if kind.is_single and kind.scalar.family in _NUMPY:
        return _numbers(array, kind)
    return Values(kind, array)


def _numbers(array: pa.Array, kind: PropertyType) -> Values:
    if kind.scalar.family == "date":
        array = array.view(pa.int32())
    elif kind.scalar.family == "datetime":
        array = array.view(pa.int64())
    valid = None
    if array.null_count:
        valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
        array = array.fill_null(False if kind.scalar.family == "bool" else 0)
    return Values(kind, array.to_numpy(zero_copy_only=False), valid)


def _strings(array: pa.Array, kind: PropertyType) -> Values:
    if len(array) < DICTIONARY_ROWS_MIN:
        return Values(kind, array)
    sample = array.slice(0, DICTIONARY_SAMPLE_ROWS)
    if (
        kind.enum is None
        and pc.count_distinct(sample).as_py() * DICTIONARY_RATIO > len(sample) + 64
    ):
        return Values(kind, array)
    encoded = array.dictionary_encode()
    words = encoded.dictionary
    if kind.enum is None and len(words) * DICTIONARY_RATIO > len(array) + 64:
        return Values(kind, array)
    order = pc.sort_indices(words)
    places = np.empty(len(words) + 1, dtype=np.int32)
    places[order.to_numpy()] = np.arange(len(words), dtype=np.int32)
    places[-1] = -1
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Values(kind, places[codes], None, StringDictionary(words.take(order).cast(pa.string())))


def empty_values(kind: PropertyType) -> Values:
    """An empty column of a type."""
    return values_of(pa.array([], type=kind.arrow_type()), kind)


def repeated(literal: Literal, rows: int) -> Values:
    """A literal as a column of ``rows`` rows."""
    value = list(literal.value) if isinstance(literal.value, tuple) else literal.value
    one = pa.array([value], type=literal.type.arrow_type())
    return values_of(one.take(pa.array(np.zeros(rows, dtype=np.int32))), literal.type)
