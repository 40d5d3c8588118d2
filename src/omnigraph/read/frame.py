"""Frames: partial answers, as positions of entities.

A frame has one row per partial match and one column of ordinals per variable. A row may stand for
several equal matches: its weight. Frames are immutable; every operation makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from omnigraph.read.values import Ints, Mask

ORIGIN = "#origin"
"""The column of a negated pattern that says which outer row a match extends."""


@dataclass(frozen=True, slots=True)
class Frame:
    rows: int
    columns: Mapping[str, Ints]
    weight: Ints | None = None
    """How many matches each row stands for; None means one each."""

    @property
    def matches(self) -> int:
        return self.rows if self.weight is None else int(self.weight.sum())

    def take(self, rows: Ints) -> Frame:
        """Some rows, in this order; a row may be taken several times."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Frame(len(rows), columns, None if self.weight is None else self.weight[rows])

    def keep(self, mask: Mask) -> Frame:
        if mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def bind(self, name: str, ordinals: Ints) -> Frame:
        return Frame(self.rows, {**self.columns, name: ordinals}, self.weight)

    def only(self, names: Iterable[str]) -> Frame:
        """Without the columns that nobody asks for any more."""
        wanted = set(names)
        if wanted.issuperset(self.columns):
            return self
        kept = {name: column for name, column in self.columns.items() if name in wanted}
        return Frame(self.rows, kept, self.weight)

    def weigh(self, counts: Ints) -> Frame:
        """Every row stands for ``counts`` times as many matches; rows with none are dropped."""
        weight = counts.astype(np.int64)
        if self.weight is not None:
            weight = weight * self.weight
        return Frame(self.rows, self.columns, weight).keep(counts > 0)

    def spread(self) -> Frame:
        """One row per match."""
        if self.weight is None:
            return self
        rows = np.repeat(np.arange(self.rows), self.weight)
        plain = Frame(self.rows, self.columns)
        return plain.take(rows)

    def collapse(self) -> Frame:
        """Equal rows become one row of their common weight, in the order of their first."""
        if self.rows < 2:
            return self
        groups, first = group_rows(list(self.columns.values()), self.rows)
        if len(first) == self.rows:
            return self
        weight = self.weight if self.weight is not None else None
        if weight is None:
            counts = np.bincount(groups, minlength=len(first)).astype(np.int64)
        else:
            counts = np.zeros(len(first), dtype=np.int64)
            np.add.at(counts, groups, weight)
        columns = {name: column[first] for name, column in self.columns.items()}
        return Frame(len(first), columns, counts)


START = Frame(1, {})
"""The empty assignment: what every match begins with."""


def group_rows(columns: list[Ints], rows: int) -> tuple[Ints, Ints]:
    """The group of each row, numbered by first appearance, and the first row of each group."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), np.zeros(min(rows, 1), dtype=np.int64)
    codes = _dense(columns[0])
    for column in columns[1:]:
        more = _dense(column)
        codes = codes * (int(more.max(initial=0)) + 1) + more
        codes = _dense(codes)
    _, first, groups = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.arange(len(first))
    return place[groups], first[order]


def _dense(column: Ints) -> Ints:
    """Whole numbers from 0 that are equal where the column is."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < max(1024, 4 * len(column)):
            return np.asarray(column - column.dtype.type(low)).astype(np.int64)
    return np.asarray(np.unique(column, return_inverse=True)[1]).astype(np.int64)
