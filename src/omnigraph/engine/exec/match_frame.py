"""Match frames: partial matches of a pattern, as ordinals of entities.

A frame has one row per partial match and one column of ordinals per variable. The weight of a row
is the number of equal matches it stands for. Frames are immutable; every operation makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from omnigraph.errors import ResourceLimit
from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask, picked

_EXACT_FLOAT_MAX = 2**53
_INT32_MAX = 2**31 - 1
MATCHES_MAX = 2**62
"""The largest number of matches that is counted: sums of weights must fit into 64 bits."""
BLOCK_ROWS = 65_536
"""Larger frames are processed in blocks of this many rows where possible: intermediate arrays of a
block stay in the processor's cache and their memory is reused."""
DENSE_SHARE = 4
"""Ordinals below this many times the rows are counted in an array of all of them."""
HEAD_ROWS = 16
"""Rows per group that are searched first for the first row of every group."""
HEAD_GROWTH = 8
"""Factor by which the searched rows grow while a group has no first row."""
ORIGIN = "#origin"
"""The column of a negated pattern that holds the outer row a match extends."""


class MaskedColumn(Mapping[str, Ints]):
    """The only column of a frame, as a selection mask over all entities of a type.

    The ordinals are materialised on first access. Blockwise operators work on all entities and the
    mask instead (:meth:`MatchFrame.selection`), which is faster than gathering the selected ones.
    """

    def __init__(self, name: str, every: Ints, mask: Mask) -> None:
        self.name = name
        self.every = every
        self.mask = mask

    @cached_property
    def _ordinals(self) -> Ints:
        return chunked.mapped(lambda part: part.astype(np.int32), chunked.nonzero(self.mask))

    def __getitem__(self, name: str) -> Ints:
        if name != self.name:
            raise KeyError(name)
        return self._ordinals

    def __iter__(self) -> Iterator[str]:
        yield self.name

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class MatchFrame:
    """Partial matches: one column of ordinals per bound variable."""

    rows: int
    columns: Mapping[str, Ints]
    weight: Ints | None = None
    """The number of matches per row; None means one each."""

    @property
    def matches(self) -> int:
        return self.rows if self.weight is None else _total(self.weight)

    def selection(self) -> tuple[MatchFrame, Mask | None]:
        """The frame of all entities with the mask that selects the rows, or the frame itself and
        None if it is not a masked column.
        """
        chosen = self.columns
        if not isinstance(chosen, MaskedColumn) or self.weight is not None:
            return self, None
        return MatchFrame(len(chosen.every), {chosen.name: chosen.every}), chosen.mask

    def take(self, rows: Ints) -> MatchFrame:
        """Some rows, in this order; a row may be taken several times."""
        columns = {name: picked(column, rows) for name, column in self.columns.items()}
        return MatchFrame(
            len(rows), columns, None if self.weight is None else picked(self.weight, rows)
        )

    def keep(self, mask: Mask) -> MatchFrame:
        if mask.all():
            return self
        return self.take(chunked.nonzero(mask))

    def part(self, rows: slice) -> MatchFrame:
        """A slice of consecutive rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        weight = None if self.weight is None else self.weight[rows]
        return MatchFrame(len(range(self.rows)[rows]), columns, weight)

    def bind(self, name: str, ordinals: Ints) -> MatchFrame:
        return MatchFrame(self.rows, {**self.columns, name: ordinals}, self.weight)

    def only(self, names: frozenset[str]) -> MatchFrame:
        """The frame with only these columns."""
        if names.issuperset(self.columns):
            return self
        kept = {name: column for name, column in self.columns.items() if name in names}
        return MatchFrame(self.rows, kept, self.weight)

    def multiply(self, counts: Ints) -> MatchFrame:
        """Multiply the weight of every row by its count; rows with count 0 are dropped."""
        weight = chunked.mapped(lambda part: part.astype(np.int64), counts)
        if self.weight is not None and len(weight):
            _require_countable(float(weight.max()) * float(self.weight.max()))
            weight = chunked.mapped(np.multiply, weight, self.weight)
        return MatchFrame(self.rows, self.columns, weight).keep(
            chunked.mapped(lambda part: part > 0, counts)
        )

    def expand_weights(self) -> MatchFrame:
        """One row per match."""
        if self.weight is None:
            return self
        return MatchFrame(self.rows, self.columns).take(chunked.repeat(self.weight))

    def _collapse_column(self, name: str, column: Ints) -> MatchFrame:
        """Merge equal rows of a single column; they come in the order of ordinals."""
        weight = add_up(column, int(column.max()) + 1, self.weight)
        found = chunked.nonzero(weight)
        if len(found) == self.rows:
            return self
        weight = chunked.take(weight, found)
        return MatchFrame(len(found), {name: found.astype(column.dtype)}, weight)

    def collapse(self) -> MatchFrame:
        """Merge equal rows; their weights are added up."""
        if self.rows < 2:
            return self
        if len(self.columns) == 1:
            ((name, column),) = self.columns.items()
            if int(column.max()) <= DENSE_SHARE * self.rows:
                return self._collapse_column(name, column)
        groups, first = group_rows(list(self.columns.values()), self.rows)
        if len(first) == self.rows:
            return self
        columns = {name: chunked.take(column, first) for name, column in self.columns.items()}
        return MatchFrame(len(first), columns, add_up(groups, len(first), self.weight))


def _total(weight: Ints) -> int:
    parts = (weight[part] for part in chunked.chunks(len(weight), chunked.LONG_ROWS))
    rough, exact = 0.0, 0
    for part in parts:
        rough += float(part.sum(dtype=np.float64))
        exact += int(part.sum())
    _require_countable(rough)
    return exact


def _require_countable(matches: float) -> None:
    """Refuse more matches than fit into 64 bits, which would overflow silently."""
    if matches > MATCHES_MAX:
        raise ResourceLimit(
            "query_matches",
            MATCHES_MAX,
            int(matches),
            remedy="Make the pattern more specific, or connect its parts.",
        )


START = MatchFrame(1, {})
"""The frame with one row and no bindings, which every match starts from."""


def block_slices(rows: int, size: int | None = None) -> Iterator[slice]:
    """Consecutive slices of ``size`` rows, by default of a block."""
    size = BLOCK_ROWS if size is None else size
    for start in range(0, rows, size):
        checkpoint()
        yield slice(start, start + size)


def group_rows(columns: list[Ints], rows: int) -> tuple[Ints, Ints]:
    """The group of each row, numbered by first appearance, and the first row of each group."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), np.zeros(min(rows, 1), dtype=np.int64)
    codes, count = dense_codes(columns, rows)
    first = first_rows_of(codes, count)
    present = chunked.nonzero(chunked.mapped(lambda part: part < rows, first))
    order = chunked.take(present, chunked.order([chunked.take(first, present)]))
    place = np.empty(len(first), dtype=np.int64)
    chunked.scatter(place, order, np.arange(len(order)))
    return picked(place, codes), chunked.take(first, order)


def dense_codes(columns: list[Ints], rows: int) -> tuple[Ints, int]:
    """Dense codes of the rows, equal where all columns are equal, and their upper bound."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), 1
    codes, count = _dense(columns[0])
    for column in columns[1:]:
        more, more_count = _dense(column)
        codes, count = _dense(chunked.mapped(partial(_pairs, more_count), codes, more))
    return codes, count


def first_rows_of(codes: Ints, count: int, sizes: Ints | None = None) -> Ints:
    """The first row of each code, or the number of rows for a code that does not occur.

    ``sizes``: the number of rows per code, where it is known.
    """
    rows = len(codes)
    first = np.full(count, rows, dtype=np.int64)
    head = count * HEAD_ROWS
    _write_backwards(first, codes[:head])
    if head < rows:
        sizes = chunked.bincount(codes, count) if sizes is None else sizes
        present = sizes > 0
        while head < rows and (first[present] == rows).any():
            head *= HEAD_GROWTH
            _write_backwards(first, codes[:head])
    return first


def _write_backwards(first: Ints, codes: Ints) -> None:
    """Write rows in reverse order, so that the first row of each code is written last."""
    for part in reversed(list(block_slices(len(codes), chunked.CHUNK_ROWS))):
        checkpoint()
        found = codes[part][::-1]
        first[found] = np.arange(part.start + len(found) - 1, part.start - 1, -1)


def add_up(groups: Ints, count: int, weight: Ints | None) -> Ints:
    """The number of matches per group."""
    if count == 1:
        total = len(groups) if weight is None else _total(weight)
        return np.array([total], dtype=np.int64)
    if weight is None:
        return chunked.bincount(groups, count).astype(np.int64)
    if len(groups) <= chunked.LONG_ROWS and _total(weight) < _EXACT_FLOAT_MAX:
        return np.bincount(groups, weights=weight, minlength=count).astype(np.int64)
    _total(weight)
    return chunked.sums(groups, weight, count)


def _dense(column: Ints) -> tuple[Ints, int]:
    """Dense codes of one column, equal where its values are equal, and their upper bound."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < min(max(1024, 4 * len(column)), _INT32_MAX):
            if column.dtype.itemsize < 4:
                column = column.astype(np.int32)
            if low or column.dtype.kind == "u":
                column = chunked.mapped(partial(_from_zero, low), column)
            return column, high - low + 1
    unique, codes = chunked.unique_codes(column)
    return codes.astype(np.int64, copy=False), len(unique)


def _from_zero(low: int, column: Ints) -> Ints:
    codes = column - column.dtype.type(low) if low else column
    return codes.astype(np.int64) if codes.dtype.kind == "u" else codes


def _pairs(more_count: int, codes: Ints, more: Ints) -> Ints:
    return np.asarray(codes.astype(np.int64) * more_count + more)
