"""Folding rows of values that occur very often, before the shuffle.

All rows of one value go to one bucket. An edge whose end is a node with millions of edges needs
nothing of its row there but the value, so a task sends the first rows of such a value, from which
violations are shown, and the number of the others.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.shuffle import hash_of
from omnigraph.constraints import COUNT
from omnigraph.storage.lance.arrays import as_array

HOT_ROWS_MIN: Final = 1_000
"""Rows of one value in one batch above which they are folded."""

_SLOT_BITS: Final = 20


def fold_hot_values(rows: pa.Table, column: str, shown_max: int) -> pa.Table:
    """The rows, and of a hot value only the first ``shown_max``; the last one of them counts the
    rows that were left out (column ``COUNT``)."""
    limit = max(HOT_ROWS_MIN, shown_max)
    if rows.num_rows <= limit:
        return rows
    slots = (hash_of(rows[column]) >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    crowded = np.flatnonzero((np.bincount(slots) > limit)[slots])
    if not len(crowded):
        return rows
    codes = _codes(as_array(rows[column]).take(pa.array(crowded)))
    sizes = np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - (np.cumsum(sizes) - sizes)[codes[order]]
    hot = sizes[codes] > limit
    counts = np.ones(rows.num_rows, dtype=np.int64)
    last = hot & (rank == shown_max - 1)
    counts[crowded[last]] = sizes[codes[last]] - (shown_max - 1)
    kept = np.ones(rows.num_rows, dtype=bool)
    kept[crowded[hot & (rank >= shown_max)]] = False
    return rows.append_column(COUNT, pa.array(counts)).filter(pa.array(kept))


def counted(rows: pa.Table, column: str) -> pa.Table:
    """The distinct values of a column and how often each occurs."""
    found = as_array(rows[column]).value_counts()
    return pa.table({column: found.field("values"), COUNT: found.field("counts")})


def _codes(values: pa.Array) -> np.ndarray[Any, Any]:
    """Equal numbers for equal values."""
    found: np.ndarray[Any, Any] = values.dictionary_encode().indices.to_numpy()
    return found
