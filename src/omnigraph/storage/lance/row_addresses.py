"""Where rows are: from stable row ids to addresses, at a cost that follows the number of rows.

Lance answers this with an index that it makes anew for every version of a table, at a cost that
follows the table. Here what a fragment says about its row ids, which never changes, is kept per
fragment: mostly a plain range. A fragment that was rewritten names its rows again; fragment ids
only grow, so the newest fragment that names a row holds it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance.fragment import RowIdSequence

from omnigraph.errors import CorruptData
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, ROW_ID, PinnedTable

ADDRESS: Final = "_rowaddr"
BYTES_MAX: Final = 256 << 20
"""What is kept of all fragments together; a range takes next to nothing."""
_Numbers = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class _Range:
    """Row ids that follow each other, in the order of the rows."""

    start: int
    stop: int
    nbytes: int = 64

    def offsets(self, row_ids: _Numbers) -> tuple[Any, _Numbers]:
        there = (row_ids >= self.start) & (row_ids < self.stop)
        return there, row_ids[there] - np.uint64(self.start)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Row ids in their own order, with the offsets of their rows."""

    row_ids: _Numbers
    places: _Numbers

    @property
    def nbytes(self) -> int:
        return int(self.row_ids.nbytes + self.places.nbytes)

    def offsets(self, row_ids: _Numbers) -> tuple[Any, _Numbers]:
        at = np.searchsorted(self.row_ids, row_ids)
        at[at == len(self.row_ids)] = 0
        there = self.row_ids[at] == row_ids
        return there, self.places[at[there]]


class _Known:
    """What is known of fragments, by their files; the least recently used goes first."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, ...], _Range | _Listed] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, fragment: Any) -> _Range | _Listed:
        key = tuple(file.path for file in fragment.files)
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
        found = _read(fragment)
        with self._lock:
            if key not in self._found:
                self._found[key] = found
                self._bytes += found.nbytes
            while self._bytes > BYTES_MAX:
                self._bytes -= self._found.popitem(last=False)[1].nbytes
        return found


_known = _Known()


def addresses(table: PinnedTable, row_ids: pa.Array) -> _Numbers:
    """Where rows of a table are stored at its version, in the order of their row ids."""
    wanted = np.asarray(row_ids).astype(np.uint64)
    try:
        found, missing = _places(table, wanted)
    except ValueError:  # Lance keeps very long lists of row ids in files of their own
        return _asked(table, wanted)
    if missing:
        raise CorruptData(f"{table.ref.path} lacks {missing} rows that it should have")
    return found


def _places(table: PinnedTable, wanted: _Numbers) -> tuple[_Numbers, int]:
    found = np.zeros(len(wanted), dtype=np.uint64)
    waiting = np.arange(len(wanted))
    for fragment_id in sorted(table.fragments, reverse=True):
        if not len(waiting):
            break
        there, offsets = _known.of(table.fragments[fragment_id]).offsets(wanted[waiting])
        found[waiting[there]] = np.uint64(fragment_id << FRAGMENT_SHIFT) + offsets
        waiting = waiting[~there]
    return found, len(waiting)


def _asked(table: PinnedTable, wanted: _Numbers) -> _Numbers:
    """The same by Lance's own index."""
    found = table.take(wanted.tolist(), [ADDRESS, ROW_ID])
    order = np.argsort(found[ROW_ID].to_numpy())
    at = np.searchsorted(found[ROW_ID].to_numpy()[order], wanted)
    return np.asarray(found[ADDRESS].to_numpy()[order][at])


def _read(fragment: Any) -> _Range | _Listed:
    row_ids = RowIdSequence.from_inline_metadata(fragment.row_id_meta).to_pyarrow()
    numbers: _Numbers = np.asarray(row_ids).astype(np.uint64)
    if len(numbers) and (np.diff(numbers) == 1).all():
        return _Range(int(numbers[0]), int(numbers[-1]) + 1)
    order = np.argsort(numbers)
    return _Listed(numbers[order], order.astype(np.uint64))
