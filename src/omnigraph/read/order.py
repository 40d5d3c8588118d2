"""Order: a total one, and only as much of it as the limit asks for.

Nulls are smaller than every value. Rows with equal keys are ordered by the ids of their entities;
ids are fetched only for rows that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from omnigraph.frozen import frozen
from omnigraph.read.values import Ints, Mask, Values

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION_ROWS_MIN: Final = 1_024
"""Fewer rows are sorted at once."""


class HasIds(Protocol):
    def ids(self, ordinals: Ints) -> pa.Array: ...


@frozen
class SortColumn:
    """Numbers that sort ascending like the rows should; ``present`` False sorts first or last."""

    data: Ints
    present: Mask | None = None
    nulls_last: bool = False

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
        return [~self.present if self.nulls_last else self.present, data]

    def take(self, rows: Ints) -> SortColumn:
        present = None if self.present is None else self.present[rows]
        return SortColumn(self.data[rows], present, self.nulls_last)


Key: TypeAlias = Callable[[Ints | None], SortColumn]
"""What to sort by: for some rows, or for all."""


def string_ranks(array: pa.Array) -> Ints:
    """Numbers that compare like strings do by their bytes; equal strings have equal numbers."""
    import pyarrow.compute as pc

    ranks = pc.rank(array, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    return np.asarray(ranks.to_numpy()).astype(np.int64)


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
    chosen: Ints | None = None
    columns = [keys[0](None)] if keys else []
    if columns and limit and limit < rows and rows >= PARTITION_ROWS_MIN:
        chosen = _possible(columns[0], limit)
    if chosen is not None:
        rows = len(chosen)
        columns = [columns[0].take(chosen)]
        ties = [(table, ordinals[chosen]) for table, ordinals in ties]
    columns += [key(chosen) for key in keys[1:]]
    found = first_rows(columns, ties, rows, limit)
    return found if chosen is None else chosen[found]


def _possible(key: SortColumn, limit: int) -> Ints | None:
    """Every row that can be among the first, judged by the first key alone; None for all."""
    if key.present is None:
        return _smallest(key.data, limit)
    first = ~key.present if not key.nulls_last else key.present
    count = int(first.sum())
    if count >= limit:
        inside = np.flatnonzero(first)
        return inside[_smallest(key.data[inside], limit)] if key.nulls_last else inside
    return None


def _smallest(data: Ints, limit: int) -> Ints:
    """The places of the smallest values, with everything equal to the last of them."""
    found = np.flatnonzero(data == data.min())  # where few values repeat, one is enough
    if len(found) >= limit:
        return found
    bound = np.partition(data, limit - 1)[limit - 1]
    return np.flatnonzero(data <= bound)


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
