"""Sorting: a total order of rows, with top-k selection where there is a limit.

Nulls sort before every value. Ties are broken by the ids of the entities, which are fetched only
for tied rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.exec.match_frame import BLOCK_ROWS, block_slices, first_rows_of
from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask, StringDictionary, Values

PARTITION_ROWS_MIN: Final = 1_024
"""Fewer rows are sorted without a top-k selection."""
RANKED_MAX: Final = 1 << 16
"""Strings that are ranked in one Arrow call."""
LISTS_ROWS: Final = 1 << 14
"""Lists that are processed between two checkpoints."""
_PREFIX_BYTES: Final = 8
"""Bytes of a string prefix that fit into one 64-bit integer."""


class HasIds(Protocol):
    def ids(self, ordinals: Ints) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A numeric sort key, ascending; nulls (``present`` False) come first, or last.

    If it is not ``exact``, different values may have equal keys.
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
            data = chunked.mapped(np.negative if data.dtype.kind == "f" else np.invert, data)
        return cls(data, present, descending)

    def levels(self) -> list[Ints]:
        """The arrays to sort by, most significant first."""
        if self.present is None:
            return [self.data]
        zero = self.data.dtype.type(0)
        data = chunked.mapped(
            lambda present, part: np.where(present, part, zero), self.present, self.data
        )
        return [(~self.present if self.nulls_last else self.present).view(np.int8), data]

    @property
    def has_nan(self) -> bool:
        """Whether there is a NaN, which is equal to nothing."""
        return self.data.dtype.kind == "f" and bool(np.isnan(self.data).any())

    def take(self, rows: Ints | slice) -> SortColumn:
        if isinstance(rows, slice):
            present = None if self.present is None else self.present[rows]
            return SortColumn(self.data[rows], present, self.nulls_last, self.exact)
        present = None if self.present is None else chunked.take(self.present, rows)
        return SortColumn(chunked.take(self.data, rows), present, self.nulls_last, self.exact)


@dataclass(frozen=True)
class Strings:
    """A column of strings that can be compared roughly, by prefix."""

    column: Values

    def rough(self, rows: Ints, *, descending: bool) -> SortColumn:
        data = string_prefixes(self.column.data, rows)
        present = None if self._valid is None else self._valid[rows]
        return SortColumn(~data if descending else data, present, descending, exact=False)

    @cached_property
    def _valid(self) -> Mask | None:
        return self.column.is_valid()


class SortKeys(Protocol):
    """Computes a sort key for some rows, or for all. ``rough``: it need not be exact."""

    def __call__(self, rows: Ints | slice | None, *, rough: bool = False) -> SortColumn: ...


def string_ranks(array: pa.Array) -> Ints:
    """Dense ranks of strings in byte order; equal strings have equal ranks."""
    if len(array) > RANKED_MAX:
        return _ranks_by_parts(array)
    ranks = pc.rank(array, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    return np.asarray(ranks.to_numpy()).astype(np.int64)


def _ranks_by_parts(array: pa.Array) -> Ints:
    """Ranks of many strings: a radix sort by 8-byte pieces, continued where pieces are equal."""
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    ranks = valid.astype(np.int64)
    open_, skipped = chunked.nonzero(valid), 0
    while len(open_):
        checkpoint()
        letters = chunked.mapped(partial(string_prefixes, array, skipped=skipped), open_)
        sizes = chunked.mapped(partial(_sizes, array, skipped), open_)
        known = chunked.take(ranks, open_)
        order = chunked.order((known, letters, sizes))
        columns = [chunked.take(column, order) for column in (known, letters, sizes)]
        first = _different(columns)
        # The rank of the first equal string, which leaves room for those that differ later.
        starts = chunked.nonzero(first)
        place = chunked.mapped(lambda part: part - 1, chunked.cumsum(first))
        begins = chunked.nonzero(_different(columns[:1]))
        before = chunked.take(begins, chunked.search(begins, starts, side="right") - 1)
        offset = chunked.take(chunked.mapped(np.subtract, starts, before), place)
        open_ = chunked.take(open_, order)
        chunked.scatter(ranks, open_, chunked.mapped(np.add, columns[0], offset))
        ends = chunked.concatenate((starts[1:], np.array([len(order)])))
        left = chunked.take(columns[2], starts)
        going_on = chunked.mapped(
            lambda start, end, size: (end - start > 1) & (size > _PREFIX_BYTES), starts, ends, left
        )
        going_on = chunked.take(going_on, place)
        open_, skipped = chunked.compress(going_on, open_)[0], skipped + _PREFIX_BYTES
    return ranks


def _sizes(array: pa.Array, skipped: int, rows: Ints) -> Ints:
    """The remaining bytes of strings, capped at one more than a prefix holds."""
    starts, stops = _bounds(array, rows)
    return np.asarray(np.clip(stops - starts - skipped, 0, _PREFIX_BYTES + 1))


def _different(columns: Sequence[Ints]) -> Mask:
    """Where a row differs from the row before."""

    def differ(*pairs: Ints) -> Ints:
        half = len(pairs) // 2
        found = pairs[0] != pairs[half]
        for at in range(1, half):
            found |= pairs[at] != pairs[half + at]
        return np.asarray(found)

    after, before = [c[1:] for c in columns], [c[:-1] for c in columns]
    return chunked.concatenate((np.ones(1, dtype=bool), chunked.mapped(differ, *after, *before)))


def _bounds(array: pa.Array, rows: Ints) -> tuple[Ints, Ints]:
    """The byte offsets at which some strings start and end."""
    wide = pa.types.is_large_string(array.type)
    every = np.frombuffer(array.buffers()[1], dtype=np.int64 if wide else np.int32)[array.offset :]
    return every.take(rows).astype(np.int64), every.take(rows + 1).astype(np.int64)


def string_prefixes(array: pa.Array, rows: Ints, *, skipped: int = 0) -> Ints:
    """The 8-byte prefixes of some strings as big-endian integers, in an order consistent with the
    strings. ``skipped``: bytes to skip first.
    """
    texts = array.buffers()[2]
    starts, stops = _bounds(array, rows)
    starts = np.minimum(starts + skipped, stops)
    letters = memoryview(b"" if texts is None else texts)
    if len(letters) < _PREFIX_BYTES:
        letters = memoryview(letters.tobytes().ljust(_PREFIX_BYTES, b"\0"))
    # A view with one integer per byte offset; a string near the end starts within the last one.
    count = len(letters) - _PREFIX_BYTES + 1
    numbers = np.ndarray(count, dtype=">u8", buffer=letters, strides=(1,))
    places = np.minimum(starts, count - 1)
    found = numbers[places].astype(np.uint64) << _bits(starts - places)
    unused = _bits(_PREFIX_BYTES - np.minimum(stops - starts, _PREFIX_BYTES))
    return np.asarray(found >> unused << unused)


def _bits(count: Ints) -> Ints:
    """Bytes as bits to shift by; numpy shifts by 64 bits to zero."""
    return (8 * count).astype(np.uint64)


def dictionary_encoded(values: Values) -> Values:
    """Dictionary-encode strings with a sorted dictionary, for a column that is gathered often."""
    if values.is_numpy:
        return values
    unique, codes = chunked.unique_codes(string_ranks(values.data))
    first = first_rows_of(codes, len(unique))
    missing = int(values.data.null_count > 0)  # null has the smallest rank
    words = values.data.take(pa.array(first[missing:])).cast(pa.string())
    places = chunked.mapped(lambda part: (part - missing).astype(np.int32), codes)
    return Values(values.type, places, None, StringDictionary(words))


def list_ranks(values: Values) -> Ints:
    """Dense ranks of lists, compared item by item; needed for ties between groups only."""
    items: list[tuple[Any, ...]] = []
    runs: list[list[tuple[Any, ...]]] = []
    for part in chunked.chunks(len(values), LISTS_ROWS):
        made = [
            tuple(item.encode() if isinstance(item, str) else item for item in found or ())
            for found in values.part(part.start, part.stop).to_list()
        ]
        items += made
        runs.append(sorted(set(made)))
    places: dict[tuple[Any, ...], int] = {}
    for at, item in enumerate(heapq.merge(*runs)):
        if not at % LISTS_ROWS:
            checkpoint()
        places.setdefault(item, len(places))
    ranks = np.empty(len(items), dtype=np.int64)
    for part in chunked.chunks(len(items), LISTS_ROWS):
        ranks[part] = [places[item] for item in items[part]]
    return ranks


def first_rows(
    keys: Sequence[SortColumn],
    ties: Sequence[tuple[HasIds, Ints]],
    rows: int,
    limit: int | None,
) -> Ints:
    """The rows in sorted order, up to the limit."""
    limit = rows if limit is None else min(limit, rows)
    if limit == 0:
        return np.array([], dtype=np.int64)
    levels = [level for key in keys for level in key.levels()]
    order = chunked.order(levels) if levels else np.arange(rows)
    return _break_ties(order, levels, ties, limit)[:limit]


def ordered_rows(
    keys: Sequence[SortKeys], ties: Sequence[tuple[HasIds, Ints]], rows: int, limit: int | None
) -> Ints:
    """The same, with exact keys computed only for rows that can be within the limit."""
    if not keys or not limit or limit >= rows or rows < PARTITION_ROWS_MIN:
        return first_rows([key(None) for key in keys], ties, rows, limit)
    chosen = _among_the_first(keys, rows, limit)
    ties = [(table, ordinals[chosen]) for table, ordinals in ties]
    found = first_rows([key(chosen) for key in keys], ties, len(chosen), limit)
    return np.asarray(chosen[found])


def shortlist(key: SortKeys, rows: int, limit: int, chosen: Mask | None = None) -> Ints:
    """A superset of the first ``limit`` rows by this key, found block by block.

    ``chosen``: a mask of the rows to consider.
    """
    found: list[Ints] = []
    for block in block_slices(rows):
        column = key(block, rough=True)
        if chosen is None:
            found += [places + block.start for places in _cut(column, limit)]
        else:
            found.append(_cut_chosen(column, limit, chosen[block]) + block.start)
    return chunked.concatenate(found)


def _among_the_first(keys: Sequence[SortKeys], rows: int, limit: int) -> Ints:
    """A superset of the first ``limit`` rows, in row order."""
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
    assert left is not None
    return chunked.sort(chunked.concatenate([*found, left]))


def _cut(column: SortColumn, limit: int) -> tuple[Ints, Ints]:
    """The positions of the first ``limit`` values, and of those equal to the last of them."""
    places = np.arange(0)
    left: Ints | None = None
    for level in column.levels():
        data = level if left is None else chunked.take(level, left)
        if len(data) <= limit:
            break
        last = data.min()
        equal = _places(data, np.equal, last)
        if len(equal) < limit:
            last = _smallest(data, limit)
            if last != last:  # NaN is equal to nothing
                break
            below, equal = _places(data, np.less, last), _places(data, np.equal, last)
            places = np.concatenate([places, below if left is None else left[below]])
            limit -= len(below)
        left = equal if left is None else left[equal]
    return places, np.arange(len(column.data)) if left is None else left


def _places(data: Ints, compare: Any, value: Any) -> Ints:
    return chunked.nonzero(chunked.mapped(lambda part: compare(part, value), data))


def _smallest(data: Ints, count: int) -> Any:
    """The ``count``-th smallest number."""
    if len(data) <= chunked.LONG_ROWS:
        return np.partition(data, count - 1)[count - 1]
    return chunked.sort(data)[count - 1]


def _cut_chosen(column: SortColumn, limit: int, chosen: Mask) -> Ints:
    """The same for the values that a mask selects."""
    kind = column.data.dtype
    if column.present is not None or kind.kind not in "iu":
        every = np.flatnonzero(chosen)
        return np.asarray(every[np.concatenate(_cut(column.take(every), limit))])
    # Values that are not selected become the largest integer; adding 1 for selected ones wraps to
    # the smallest, which ``maximum`` ignores. Much faster than gathering the selected values.
    others = chosen.astype(kind) + kind.type(np.iinfo(kind).max)
    places = np.concatenate(_cut(SortColumn(np.maximum(column.data, others)), limit))
    return np.asarray(places[chosen[places]])


def _id_ranks(table: HasIds, ordinals: Ints) -> Ints:
    """Ranks of the ids of entities; repeated entities are ranked once."""
    count = int(ordinals.max()) + 1 if len(ordinals) else 0
    if count >= len(ordinals):
        return string_ranks(table.ids(ordinals))
    return chunked.take(string_ranks(table.ids(np.arange(count, dtype=np.int32))), ordinals)


def _break_ties(
    order: Ints, levels: Sequence[Ints], ties: Sequence[tuple[HasIds, Ints]], limit: int
) -> Ints:
    """Order rows with equal keys by the ids of their entities."""
    if not ties or len(order) < 2:
        return order
    same = np.ones(len(order) - 1, dtype=bool)
    for level in levels:
        sorted_level = chunked.take(level, order)
        same &= chunked.mapped(np.equal, sorted_level[1:], sorted_level[:-1])
    if not same[: max(limit, 1)].any():
        return order
    groups = chunked.concatenate((np.zeros(1, dtype=np.int64), chunked.cumsum(~same)))
    end = int(np.searchsorted(groups, groups[limit - 1], side="right"))
    head, groups = order[:end], groups[:end]
    ranks = [_id_ranks(table, chunked.take(ordinals, head)) for table, ordinals in ties]
    inside = chunked.order([groups, *ranks])
    return chunked.concatenate((chunked.take(head, inside), order[end:]))
