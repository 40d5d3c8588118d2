"""Maps stable row ids to row addresses, at a cost proportional to the number of row ids.

Lance builds an index for this per table version, at a cost proportional to the table. Here the row
ids of each fragment, which never change, are cached: mostly a plain range. A rewritten fragment
lists its rows again; fragment ids only grow, so the newest fragment that lists a row holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance.fragment import RowIdSequence

from omnigraph.errors import CorruptData
from omnigraph.model.lru import LruCache
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, ROW_ID, PinnedTable

ADDRESS: Final = "_rowaddr"
BYTES_MAX: Final = 256 << 20
"""The size of the cache for all fragments together; a range takes 64 bytes."""
_Numbers = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class _RowIdRange:
    """The row ids of a fragment whose ids are consecutive."""

    start: int
    stop: int
    nbytes: int = 64

    def offsets(self, row_ids: _Numbers) -> tuple[Any, _Numbers]:
        there = (row_ids >= self.start) & (row_ids < self.stop)
        return there, row_ids[there] - np.uint64(self.start)


@dataclass(frozen=True, slots=True)
class _RowIdList:
    """The row ids of any other fragment, sorted, with the offsets of their rows."""

    row_ids: _Numbers
    row_offsets: _Numbers

    @property
    def nbytes(self) -> int:
        return int(self.row_ids.nbytes + self.row_offsets.nbytes)

    def offsets(self, row_ids: _Numbers) -> tuple[Any, _Numbers]:
        at = np.searchsorted(self.row_ids, row_ids)
        at[at == len(self.row_ids)] = 0
        there = self.row_ids[at] == row_ids
        return there, self.row_offsets[at[there]]


_row_ids: LruCache[tuple[str, ...], _RowIdRange | _RowIdList] = LruCache(BYTES_MAX)
"""The cached row ids of fragments; the key is the files of a fragment."""


def addresses(table: PinnedTable, row_ids: pa.Array) -> _Numbers:
    """The addresses of rows at the table's version, in the order of ``row_ids``."""
    wanted = np.asarray(row_ids).astype(np.uint64)
    try:
        found, missing = _from_fragments(table, wanted)
    except ValueError:  # Lance stores very long lists of row ids in separate files
        return _from_lance(table, wanted)
    if missing:
        raise CorruptData(f"{table.ref.path} lacks {missing} rows that it should have")
    return found


def _from_fragments(table: PinnedTable, wanted: _Numbers) -> tuple[_Numbers, int]:
    found = np.zeros(len(wanted), dtype=np.uint64)
    waiting = np.arange(len(wanted))
    for fragment_id in sorted(table.fragments, reverse=True):
        if not len(waiting):
            break
        there, offsets = _row_ids_of(table, fragment_id).offsets(wanted[waiting])
        found[waiting[there]] = np.uint64(fragment_id << FRAGMENT_SHIFT) + offsets
        waiting = waiting[~there]
    return found, len(waiting)


def _from_lance(table: PinnedTable, wanted: _Numbers) -> _Numbers:
    """``addresses`` by Lance's own index."""
    found = table.take(wanted.tolist(), [ADDRESS, ROW_ID])
    order = np.argsort(found[ROW_ID].to_numpy())
    at = np.searchsorted(found[ROW_ID].to_numpy()[order], wanted)
    return np.asarray(found[ADDRESS].to_numpy()[order][at])


def _row_ids_of(table: PinnedTable, fragment_id: int) -> _RowIdRange | _RowIdList:
    key = table.fragment_files[fragment_id]
    found = _row_ids.get(key)
    if found is None:
        found = _read(table.fragments[fragment_id])
        _row_ids.put(key, found, found.nbytes)
    return found


def _read(fragment: Any) -> _RowIdRange | _RowIdList:
    row_ids = RowIdSequence.from_inline_metadata(fragment.row_id_meta).to_pyarrow()
    numbers: _Numbers = np.asarray(row_ids).astype(np.uint64)
    if len(numbers) and (np.diff(numbers) == 1).all():
        return _RowIdRange(int(numbers[0]), int(numbers[-1]) + 1)
    order = np.argsort(numbers)
    return _RowIdList(numbers[order], order.astype(np.uint64))
