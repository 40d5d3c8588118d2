"""numpy functions on long arrays, in chunks with a checkpoint between them.

One numpy call on a hundred million rows takes seconds and cannot be interrupted. Each function here
returns what numpy returns, and calls numpy directly for arrays that fit into a chunk. Long arrays
are sorted by a sample sort: chunks are sorted, split at common pivots, and each range between two
pivots is sorted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from omnigraph.model.checkpoint import checkpoint

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LONG_ROWS: Final = 1 << 20
"""Longer arrays are processed in chunks; a call on this many numbers takes milliseconds."""
CHUNK_ROWS: Final = 1 << 17
"""Numbers per chunk: intermediate arrays stay in the processor's cache."""
SORT_ROWS: Final = 1 << 21
"""Numbers that are sorted in one call."""
ORDER_ROWS: Final = 1 << 18
"""Rows that are ordered in one call: sorting by several columns is much slower."""
_EXACT_FLOAT_MAX: Final = 2**53
_SAMPLE: Final = 64
"""Numbers sampled from each sorted chunk for pivots."""


def chunks(rows: int, size: int | None = None) -> Iterator[slice]:
    """Consecutive slices of ``size`` rows, with a checkpoint before each."""
    size = CHUNK_ROWS if size is None else size
    for start in range(0, rows, size):
        checkpoint()
        yield slice(start, min(start + size, rows))


def mapped(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply an element-wise function to parallel arrays."""
    rows = len(arrays[0])
    if rows <= LONG_ROWS:
        return function(*arrays)
    found: Array | None = None
    for part in chunks(rows):
        made = function(*(array[part] for array in arrays))
        if found is None:
            found = np.empty(rows, dtype=made.dtype)
        found[part] = made
    assert found is not None
    return found


def take(array: Array, places: Array) -> Array:
    """``array[places]``."""
    if len(places) <= LONG_ROWS:
        return array.take(places)
    found = np.empty(len(places), dtype=array.dtype)
    for part in chunks(len(places)):
        # "wrap" counts negative places from the end, like indexing, and writes without a copy.
        array.take(places[part], out=found[part], mode="wrap")
    return found


def compress(mask: Array, *arrays: Array) -> tuple[Array, ...]:
    """``array[mask]`` for each array."""
    if len(mask) <= LONG_ROWS:
        return tuple(array[mask] for array in arrays)
    total = int(np.count_nonzero(mask))
    found = tuple(np.empty(total, dtype=array.dtype) for array in arrays)
    end = 0
    for part in chunks(len(mask)):
        chosen = mask[part]
        start, end = end, end + int(np.count_nonzero(chosen))
        for array, made in zip(arrays, found, strict=True):
            made[start:end] = array[part][chosen]
    return found


def nonzero(mask: Array) -> Array:
    """``np.flatnonzero(mask)``."""
    if len(mask) <= LONG_ROWS:
        return np.flatnonzero(mask)
    found = np.empty(int(np.count_nonzero(mask)), dtype=np.int64)
    end = 0
    for part in chunks(len(mask)):
        places = np.flatnonzero(mask[part])
        start, end = end, end + len(places)
        np.add(places, part.start, out=found[start:end])
    return found


def scatter(target: Array, places: Array, values: Array) -> None:
    """``target[places] = values``; of equal places the last value stays."""
    if len(places) <= LONG_ROWS:
        target[places] = values
        return
    for part in chunks(len(places)):
        target[places[part]] = values[part]


def concatenate(arrays: Sequence[Array]) -> Array:
    """``np.concatenate`` of arrays of one type."""
    total = sum(len(array) for array in arrays)
    if total <= LONG_ROWS:
        return np.concatenate(arrays)
    found = np.empty(total, dtype=np.result_type(*arrays))
    at = 0
    for array in arrays:
        for part in chunks(len(array)):
            found[at + part.start : at + part.stop] = array[part]
        at += len(array)
    return found


def cumsum(numbers: Array) -> Array:
    """``np.cumsum`` in 64 bits."""
    if len(numbers) <= LONG_ROWS:
        return np.cumsum(numbers, dtype=np.int64)
    found = np.empty(len(numbers), dtype=np.int64)
    total = 0
    for part in chunks(len(numbers)):
        np.cumsum(numbers[part], dtype=np.int64, out=found[part])
        found[part] += total
        total = int(found[part.stop - 1])
    return found


def repeat(counts: Array, dtype: Any = np.int64) -> Array:
    """``np.repeat(np.arange(len(counts)), counts)``: the row of each copy."""
    rows = len(counts)
    if rows <= LONG_ROWS and (not rows or int(counts.sum()) <= LONG_ROWS):
        return np.arange(rows, dtype=dtype).repeat(counts)
    ends = cumsum(counts)
    found = np.empty(int(ends[-1]), dtype=dtype)
    for part in output_chunks(ends):
        start = int(ends[part.start - 1]) if part.start else 0
        made = np.arange(part.start, part.stop, dtype=dtype)
        if part.stop - part.start == 1:
            for piece in chunks(int(ends[part.start]) - start):
                found[start + piece.start : start + piece.stop] = made[0]
        else:
            found[start : int(ends[part.stop - 1])] = made.repeat(counts[part])
    return found


def output_chunks(ends: Array, size: int | None = None) -> Iterator[slice]:
    """Slices of rows that make about a chunk of output; ``ends``: the output up to each row's end.

    A row that makes more than a chunk alone is a slice of its own.
    """
    size = CHUNK_ROWS if size is None else size
    rows, start = len(ends), 0
    while start < rows:
        checkpoint()
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + size, side="right"))
        stop = min(max(stop, start + 1), start + size, rows)
        yield slice(start, stop)
        start = stop


def product(rows: int, columns: Array) -> tuple[Array, Array]:
    """The cross product: ``np.repeat`` of the rows and ``np.tile`` of the columns."""
    width = len(columns)
    if rows * width <= LONG_ROWS:
        return np.repeat(np.arange(rows), width), np.tile(columns, rows)
    first = np.empty((rows, width), dtype=np.int64)
    second = np.empty((rows, width), dtype=columns.dtype)
    for down in chunks(rows, max(1, CHUNK_ROWS // max(1, width))):
        for across in chunks(width):
            first[down, across] = np.arange(down.start, down.stop)[:, None]
            second[down, across] = columns[across]
    return first.reshape(-1), second.reshape(-1)


def bincount(codes: Array, count: int) -> Array:
    """``np.bincount(codes, minlength=count)``; all codes are below ``count``."""
    if len(codes) <= LONG_ROWS:
        return np.bincount(codes, minlength=count)
    found = np.zeros(count, dtype=np.int64)
    for part in chunks(len(codes), LONG_ROWS):
        if count <= LONG_ROWS:
            found += np.bincount(codes[part], minlength=count)
        else:
            np.add.at(found, codes[part], 1)
    return found


def sums(codes: Array, numbers: Array, count: int) -> Array:
    """Sums of integers by code, in 64 bits."""
    found = np.zeros(count, dtype=np.int64)
    for part in chunks(len(codes), LONG_ROWS):
        wide = numbers[part].astype(np.int64, copy=False)
        largest = max(abs(int(wide.max())), abs(int(wide.min())))
        if count <= LONG_ROWS and largest * len(wide) < _EXACT_FLOAT_MAX:
            found += np.bincount(codes[part], weights=wide, minlength=count).astype(np.int64)
        else:
            np.add.at(found, codes[part], wide)
    return found


def search(known: Array, numbers: Array, side: Any = "left") -> Array:
    """``np.searchsorted(known, numbers)``."""
    return mapped(lambda part: np.asarray(np.searchsorted(known, part, side=side)), numbers)


# Sorting


def sort(numbers: Array) -> Array:
    """``np.sort(numbers)``."""
    if len(numbers) <= SORT_ROWS:
        return np.sort(numbers)
    runs = [np.sort(numbers[part]) for part in chunks(len(numbers), SORT_ROWS)]
    found = np.empty(len(numbers), dtype=numbers.dtype)
    start = end = 0
    for cuts, equal in _cuts(runs):
        start = end
        for run, cut in zip(runs, cuts, strict=True):
            found[end : end + cut.stop - cut.start] = run[cut]
            end += cut.stop - cut.start
            checkpoint()
        if not equal:
            found[start:end] = sort(found[start:end])
    return found


def order(levels: Sequence[Array]) -> Array:
    """``np.lexsort(levels[::-1])``: a stable order by several columns, the first one first."""
    first = levels[0]
    rows = len(first)
    if rows <= ORDER_ROWS:
        return np.lexsort(levels[::-1])
    if len(levels) == 1 and _is_sorted(first):
        return np.arange(rows)
    places, runs = [], []
    for part in chunks(rows, ORDER_ROWS):
        local = np.argsort(first[part], kind="stable")
        places.append(local + part.start)
        runs.append(first[part][local])
    found = np.empty(rows, dtype=np.int64)
    end = 0
    for cuts, equal in _cuts(runs):
        checkpoint()
        picked = concatenate([run[cut] for run, cut in zip(places, cuts, strict=True)])
        start, end = end, end + len(picked)
        left = levels[1:] if equal else levels
        if left and len(picked) > 1:
            picked = take(picked, order([take(level, picked) for level in left]))
        found[start:end] = picked
    return found


def _is_sorted(numbers: Array) -> bool:
    return all(
        bool((numbers[part] <= numbers[part.start + 1 : part.stop + 1]).all())
        for part in chunks(len(numbers) - 1)
    )


def unique(numbers: Array) -> Array:
    """The distinct numbers, sorted."""
    if len(numbers) < 2:
        return numbers
    found = sort(numbers)
    first = changes(found)
    return found if first.all() else compress(first, found)[0]


def unique_codes(column: Array) -> tuple[Array, Array]:
    """``np.unique(column, return_inverse=True)``."""
    if len(column) <= ORDER_ROWS:
        values, codes = np.unique(column, return_inverse=True)
        return values, np.asarray(codes)
    places = order([column])
    found = take(column, places)
    first = changes(found)
    codes = np.empty(len(column), dtype=np.int64)
    scatter(codes, places, mapped(lambda part: part - 1, cumsum(first)))
    return compress(first, found)[0], codes


def changes(found: Array) -> Array:
    """Where sorted numbers differ from the one before; NaNs are equal to each other."""
    first = np.empty(len(found), dtype=bool)
    first[0] = True
    for part in chunks(len(found) - 1):
        before, after = found[part], found[part.start + 1 : part.stop + 1]
        different = before != after
        if found.dtype.kind == "f":
            different &= ~((before != before) & (after != after))
        first[part.start + 1 : part.stop + 1] = different
    return first


def _cuts(runs: Sequence[Array]) -> Iterator[tuple[list[slice], bool]]:
    """Split sorted runs at common pivots: for each range a slice of every run, and whether all its
    numbers are equal.
    """
    sample = np.sort(np.concatenate([run[:: max(1, len(run) // _SAMPLE)] for run in runs]))
    pivots = sample[:: _SAMPLE // 2]
    pivots = pivots[pivots == pivots]  # NaNs come last, and are equal to nothing
    pivots = pivots[np.concatenate(([True], pivots[1:] != pivots[:-1]))] if len(pivots) else pivots
    lefts = [np.searchsorted(run, pivots, side="left") for run in runs]
    rights = [np.searchsorted(run, pivots, side="right") for run in runs]
    starts = [0] * len(runs)
    for at in range(len(pivots)):
        ends = [int(left[at]) for left in lefts]
        yield [slice(*pair) for pair in zip(starts, ends, strict=True)], False
        starts = [int(right[at]) for right in rights]
        yield [slice(*pair) for pair in zip(ends, starts, strict=True)], True
    # Without a pivot all values are NaN, in any order.
    last = [slice(start, len(run)) for start, run in zip(starts, runs, strict=True)]
    yield last, not len(pivots)
