"""Order: a total one, and only as much of it as the limit asks for.

Nulls are smaller than every value. Rows with equal keys are ordered by the ids of their entities;
ids are fetched only for rows that need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from omnigraph.frozen import frozen
from omnigraph.predicates.values import Ints, Mask, Values
from omnigraph.read.frame import BLOCK_ROWS, block_slices

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION_ROWS_MIN: Final = 1_024
"""Fewer rows are sorted at once."""
_BEGINNING: Final = 8
"""As many bytes of a string as a number has."""


class HasIds(Protocol):
    def ids(self, ordinals: Ints) -> pa.Array: ...


@frozen
class SortColumn:
    """Numbers that sort ascending like the rows should; ``present`` False sorts first or last.

    If it is not ``exact``, different values may have the same number.
    """

    data: Ints
    present: Mask | None = None
    nulls_last: bool = False
    exact: bool = True

    @classmethod
    def of(cls, values: Values, *, descending: bool) -> SortColumn:
        present = values.is_valid()
        if values.is_numpy:
            data = values.data
        else:
            data = list_ranks(values) if values.type.is_list else string_ranks(values.data)
        if data.dtype == np.bool_:
            data = data.view(np.int8)
        if descending:
            data = -data if data.dtype.kind == "f" else ~data
        return cls(data, present, descending)

    def levels(self) -> list[Ints]:
        """Arrays to sort by, the most significant first."""
        if self.present is None:
            return [self.data]
        data = np.where(self.present, self.data, self.data.dtype.type(0))
        return [(~self.present if self.nulls_last else self.present).view(np.int8), data]

    @property
    def has_nan(self) -> bool:
        """Whether some numbers are none, and equal to nothing."""
        return self.data.dtype.kind == "f" and bool(np.isnan(self.data).any())

    def take(self, rows: Ints | slice) -> SortColumn:
        present = None if self.present is None else self.present[rows]
        return SortColumn(self.data[rows], present, self.nulls_last, self.exact)


@frozen(slots=False)
class Strings:
    """A column of strings, of which some are compared by their beginnings."""

    column: Values

    def rough(self, rows: Ints, *, descending: bool) -> SortColumn:
        data = string_beginnings(self.column.data, rows)
        present = None if self._valid is None else self._valid[rows]
        return SortColumn(~data if descending else data, present, descending, exact=False)

    @cached_property
    def _valid(self) -> Mask | None:
        return self.column.is_valid()


class Key(Protocol):
    """What to sort by: for some rows, or for all. ``rough``: it need not be exact."""

    def __call__(self, rows: Ints | slice | None, *, rough: bool = False) -> SortColumn: ...


def string_ranks(array: pa.Array) -> Ints:
    """Numbers that compare like strings do by their bytes; equal strings have equal numbers."""
    import pyarrow.compute as pc

    ranks = pc.rank(array, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    return np.asarray(ranks.to_numpy()).astype(np.int64)


def string_beginnings(array: pa.Array, rows: Ints) -> Ints:
    """The first bytes of some strings as numbers that never compare the other way than they do."""
    import pyarrow as pa

    wide = pa.types.is_large_string(array.type)
    _, bounds, texts = array.buffers()
    every = np.frombuffer(bounds, dtype=np.int64 if wide else np.int32)[array.offset :]
    starts, stops = (every.take(rows + more).astype(np.int64) for more in (0, 1))
    letters = memoryview(b"" if texts is None else texts)
    if len(letters) < _BEGINNING:
        letters = memoryview(letters.tobytes().ljust(_BEGINNING, b"\0"))
    # The bytes from every place on as one number; a string near the end begins within the last.
    count = len(letters) - _BEGINNING + 1
    numbers = np.ndarray(count, dtype=">u8", buffer=letters, strides=(1,))
    places = np.minimum(starts, count - 1)
    found = numbers[places].astype(np.uint64) << _bits(starts - places)
    unused = _bits(_BEGINNING - np.minimum(stops - starts, _BEGINNING))
    return np.asarray(found >> unused << unused)


def _bits(count: Ints) -> Ints:
    """The bits in so many bytes; numpy shifts by as many as there are, and nothing is left."""
    return (8 * count).astype(np.uint64)


def list_ranks(values: Values) -> Ints:
    """Numbers that compare like lists do item by item; only ties between groups need them."""
    items = [
        tuple(item.encode() if isinstance(item, str) else item for item in found or ())
        for found in values.to_list()
    ]
    places = {item: at for at, item in enumerate(sorted(set(items)))}
    return np.array([places[item] for item in items], dtype=np.int64)


def first_rows(
    keys: Sequence[SortColumn],
    ties: Sequence[tuple[HasIds, Ints]],
    rows: int,
    limit: int | None,
) -> Ints:
    """The rows in order, as many as the limit allows."""
    limit = rows if limit is None else min(limit, rows)
    if limit == 0:
        return np.array([], dtype=np.int64)
    levels = [level for key in keys for level in key.levels()]
    order = np.lexsort(levels[::-1]) if levels else np.arange(rows)
    return _break_ties(order, levels, ties, limit)[:limit]


def ordered_rows(
    keys: Sequence[Key], ties: Sequence[tuple[HasIds, Ints]], rows: int, limit: int | None
) -> Ints:
    """The same, with keys that are computed only for rows that can be among the first."""
    if not keys or not limit or limit >= rows or rows < PARTITION_ROWS_MIN:
        return first_rows([key(None) for key in keys], ties, rows, limit)
    chosen = _among_the_first(keys, rows, limit)
    ties = [(table, ordinals[chosen]) for table, ordinals in ties]
    found = first_rows([key(chosen) for key in keys], ties, len(chosen), limit)
    return np.asarray(chosen[found])


def shortlist(key: Key, rows: int, limit: int, chosen: Mask | None = None) -> Ints:
    """Rows with all of those that can be among the first by this key, found block by block: of
    those that were chosen, where some were.
    """
    found: list[Ints] = []
    for block in block_slices(rows):
        column = key(block, rough=True)
        if chosen is None:
            found += [places + block.start for places in _cut(column, limit)]
        else:
            found.append(_cut_chosen(column, limit, chosen[block]) + block.start)
    return np.concatenate(found)


def _among_the_first(keys: Sequence[Key], rows: int, limit: int) -> Ints:
    """Rows with all of those that can be among the first, in their order."""
    left = shortlist(keys[0], rows, limit) if rows > BLOCK_ROWS else None
    found: list[Ints] = []
    for key in keys:
        column = key(left, rough=True)
        sure, tied = _cut(column, limit)
        found.append(sure if left is None else left[sure])
        left = tied if left is None else left[tied]
        limit -= len(sure)
        small = len(left) <= max(limit, PARTITION_ROWS_MIN)
        if small or not column.exact or column.has_nan:
            break
    return np.sort(np.concatenate([*found, left]))


def _cut(column: SortColumn, limit: int) -> tuple[Ints, Ints]:
    """The places of the first values, and of those that are equal to the last of them."""
    places = np.arange(0)
    left: Ints | None = None
    for level in column.levels():
        data = level if left is None else level[left]
        if len(data) <= limit:
            break
        last = data.min()
        equal = np.flatnonzero(data == last)
        if len(equal) < limit:
            last = np.partition(data, limit - 1)[limit - 1]
            if last != last:  # not a number is equal to nothing
                break
            below, equal = np.flatnonzero(data < last), np.flatnonzero(data == last)
            places = np.concatenate([places, below if left is None else left[below]])
            limit -= len(below)
        left = equal if left is None else left[equal]
    return places, np.arange(len(column.data)) if left is None else left


def _cut_chosen(column: SortColumn, limit: int, chosen: Mask) -> Ints:
    """The places of the first chosen values, and of those that are equal to the last of them."""
    kind = column.data.dtype
    if column.present is not None or kind.kind not in "iu":
        every = np.flatnonzero(chosen)
        return np.asarray(every[np.concatenate(_cut(column.take(every), limit))])
    # Nothing comes after the largest number, and the one after that is the smallest. Much quicker
    # than to gather what was chosen.
    others = chosen.astype(kind) + kind.type(np.iinfo(kind).max)
    places = np.concatenate(_cut(SortColumn(np.maximum(column.data, others)), limit))
    return np.asarray(places[chosen[places]])


def _break_ties(
    order: Ints, levels: Sequence[Ints], ties: Sequence[tuple[HasIds, Ints]], limit: int
) -> Ints:
    """Put rows with equal keys in the order of their ids."""
    if not ties or len(order) < 2:
        return order
    same = np.ones(len(order) - 1, dtype=bool)
    for level in levels:
        sorted_level = level[order]
        same &= sorted_level[1:] == sorted_level[:-1]
    if not same[: max(limit, 1)].any():
        return order
    groups = np.concatenate(([0], np.cumsum(~same)))
    end = int(np.searchsorted(groups, groups[limit - 1], side="right"))
    head, groups = order[:end], groups[:end]
    ranks = [string_ranks(table.ids(ordinals[head])) for table, ordinals in ties]
    inside = np.lexsort([*ranks[::-1], groups])
    return np.concatenate((head[inside], order[end:]))
