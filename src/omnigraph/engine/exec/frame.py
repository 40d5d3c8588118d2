"""Frames: partial answers, as positions of entities.

A frame has one row per partial match and one column of ordinals per variable. A row may stand for
several equal matches: its weight. Frames are immutable; every operation makes a new one.
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
"""More matches than this are not counted: sums of them must still fit into 64 bits."""
BLOCK_ROWS = 65_536
"""More rows than this are looked at in blocks of so many, where that is possible: what is computed
for one of them stays in the processor's cache, and memory is not asked for anew."""
HEAD_ROWS = 16
"""Among so many rows for each group most groups appear; otherwise among eight times as many."""
HEAD_GROWTH = 8
ORIGIN = "#origin"
"""The column of a negated pattern that says which outer row a match extends."""


class Chosen(Mapping[str, Ints]):
    """The only column of a frame: those of all entities of a type that a mask lets through.

    They are listed when somebody asks for the list. Whoever goes through a large frame in blocks
    looks at all entities and their mask instead (:meth:`Frame.origin`): that is quicker.
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
class Frame:
    rows: int
    columns: Mapping[str, Ints]
    weight: Ints | None = None
    """How many matches each row stands for; None means one each."""

    @property
    def matches(self) -> int:
        return self.rows if self.weight is None else _total(self.weight)

    def origin(self) -> tuple[Frame, Mask | None]:
        """What the rows were chosen from, and which of it they are: None for all of it. Rows that
        stand for several matches are what they are.
        """
        chosen = self.columns
        if not isinstance(chosen, Chosen) or self.weight is not None:
            return self, None
        return Frame(len(chosen.every), {chosen.name: chosen.every}), chosen.mask

    def take(self, rows: Ints) -> Frame:
        """Some rows, in this order; a row may be taken several times."""
        columns = {name: picked(column, rows) for name, column in self.columns.items()}
        return Frame(len(rows), columns, None if self.weight is None else picked(self.weight, rows))

    def keep(self, mask: Mask) -> Frame:
        if mask.all():
            return self
        return self.take(chunked.nonzero(mask))

    def part(self, rows: slice) -> Frame:
        """Some rows that follow each other."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        weight = None if self.weight is None else self.weight[rows]
        return Frame(len(range(self.rows)[rows]), columns, weight)

    def bind(self, name: str, ordinals: Ints) -> Frame:
        return Frame(self.rows, {**self.columns, name: ordinals}, self.weight)

    def only(self, names: frozenset[str]) -> Frame:
        """Without the columns that nobody asks for any more."""
        if names.issuperset(self.columns):
            return self
        kept = {name: column for name, column in self.columns.items() if name in names}
        return Frame(self.rows, kept, self.weight)

    def weigh(self, counts: Ints) -> Frame:
        """Every row stands for ``counts`` times as many matches; rows with none are dropped."""
        weight = chunked.mapped(lambda part: part.astype(np.int64), counts)
        if self.weight is not None and len(weight):
            _require_countable(float(weight.max()) * float(self.weight.max()))
            weight = chunked.mapped(np.multiply, weight, self.weight)
        return Frame(self.rows, self.columns, weight).keep(
            chunked.mapped(lambda part: part > 0, counts)
        )

    def spread(self) -> Frame:
        """One row per match."""
        if self.weight is None:
            return self
        return Frame(self.rows, self.columns).take(chunked.repeat(self.weight))

    def collapse(self) -> Frame:
        """Equal rows become one row of their common weight."""
        if self.rows < 2:
            return self
        groups, first = group_rows(list(self.columns.values()), self.rows)
        if len(first) == self.rows:
            return self
        columns = {name: chunked.take(column, first) for name, column in self.columns.items()}
        return Frame(len(first), columns, add_up(groups, len(first), self.weight))


def _total(weight: Ints) -> int:
    parts = (weight[part] for part in chunked.chunks(len(weight), chunked.LONG_ROWS))
    rough, exact = 0.0, 0
    for part in parts:
        rough += float(part.sum(dtype=np.float64))
        exact += int(part.sum())
    _require_countable(rough)
    return exact


def _require_countable(matches: float) -> None:
    """Refuse what does not fit into 64 bits: it would become another number, without a word."""
    if matches > MATCHES_MAX:
        raise ResourceLimit(
            "query_matches",
            MATCHES_MAX,
            int(matches),
            remedy="Make the pattern more specific, or connect its parts.",
        )


START = Frame(1, {})
"""The empty assignment: what every match begins with."""


def block_slices(rows: int, size: int | None = None) -> Iterator[slice]:
    """Consecutive slices of so many rows, a block unless said."""
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
    """Whole numbers from 0 that are equal where all columns are, and what they stay below."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), 1
    codes, count = _dense(columns[0])
    for column in columns[1:]:
        more, more_count = _dense(column)
        codes, count = _dense(chunked.mapped(partial(_pairs, more_count), codes, more))
    return codes, count


def first_rows_of(codes: Ints, count: int, sizes: Ints | None = None) -> Ints:
    """The first row of each code; the number of rows for a code that no row has. ``sizes``: how
    many rows each has, where that is known.
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
    """So that the first row of each code is what stays."""
    for part in reversed(list(block_slices(len(codes), chunked.CHUNK_ROWS))):
        checkpoint()
        found = codes[part][::-1]
        first[found] = np.arange(part.start + len(found) - 1, part.start - 1, -1)


def add_up(groups: Ints, count: int, weight: Ints | None) -> Ints:
    """How many matches each group has."""
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
    """Whole numbers from 0 that are equal where the column is, and what they stay below."""
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
