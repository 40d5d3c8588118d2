"""Shuffle through the object store: tables are hash partitioned into buckets, one object per task.

Rows with equal values are in the same bucket, whichever task wrote them, so a task that reads one
bucket of all objects can check uniqueness and references over the whole input. An object holds any
number of named tables per bucket, bucket after bucket, and at its end an index of where each bucket
begins; a reader asks for the index entries and the bytes of its buckets and nothing else. Object
names are random, so that two attempts of a task never collide; only the objects of successful
attempts are read.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.partitions import from_ipc, to_ipc
from omnigraph.model.ids import new_ulid
from omnigraph.storage.objects.store import ObjectStore

BUCKETS_PER_TASK_MAX: Final = 16
TASKS_MAX: Final = 1_024
"""Above this number of buckets a task reads several adjacent ones, at most the number above: every
reader asks every object for its bytes, so the requests grow with the readers."""

READS_AT_ONCE: Final = 16
"""Concurrent requests of one task: they wait for the network, not for a core."""

SPILL_BYTES: Final = 64 << 20
"""Bytes of its buckets that a task keeps in memory until it works on them; more go to a file."""

_ENTRY: Final = 8
"""Bytes of an index entry: where a bucket begins. One more entry says where the last one ends."""

_WORD: Final = 8
_MIX: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


@dataclass(frozen=True, slots=True)
class ShuffleFile:
    """One object with the buckets that a task wrote."""

    path: str
    size: int


def bucket_of(values: pa.Array | pa.ChunkedArray, buckets: int) -> np.ndarray[Any, Any]:
    """The bucket of every string: its hash modulo the number of buckets."""
    if buckets == 1:
        return np.zeros(len(values), dtype=np.uint32)
    return (hash_of(values) % np.uint64(buckets)).astype(np.uint32)


def hash_of(values: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """A 64-bit hash of every string: deterministic, vectorised, not cryptographic.

    It mixes the length with the first, middle and last eight bytes, which spreads keys of every
    common form. Collisions are harmless: strings are compared exactly in their bucket.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not len(array):
        return np.zeros(0, dtype=np.uint64)
    _, offset_buffer, data = array.buffers()
    at = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    first, last = int(at[0]), int(at[-1])
    text = np.zeros(last - first + _WORD, dtype=np.uint8)  # room for a word after the last string
    if data is not None:
        text[:-_WORD] = np.frombuffer(data, dtype=np.uint8)[first:last]
    words = np.ndarray((len(text) - _WORD + 1,), dtype="<u8", buffer=text, strides=(1,))
    starts = at[:-1].astype(np.int64) - first
    sizes = np.diff(at).astype(np.int64)
    kept = np.minimum(sizes, _WORD)
    shift = ((_WORD - kept) * 8).astype(np.uint64)
    spare = np.maximum(sizes - _WORD, 0)
    mixed = sizes.astype(np.uint64)
    word = _own_bytes(words[starts], kept, shift)
    for factor, offset in zip(_MIX, (None, spare // 2, spare), strict=True):
        if offset is not None and sizes.max() > _WORD:  # else it is the same word
            word = _own_bytes(words[starts + offset], kept, shift)
        mixed = (mixed ^ word) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _own_bytes(word: Any, kept: Any, shift: Any) -> Any:
    """The words without the bytes that follow their string."""
    own = (word << shift) >> shift
    own[kept == 0] = 0
    return own


@dataclass(frozen=True, slots=True)
class ShuffleWriter:
    """Collects the partitioned tables of one task and writes them, one object per bucket."""

    buckets: int
    tables: dict[int, list[tuple[str, pa.Table]]] = field(default_factory=dict)

    def add(self, name: str, table: pa.Table, by: pa.Array | pa.ChunkedArray) -> None:
        """Hash partition a table by a parallel column; rows keep their order within a bucket."""
        if table.num_rows:
            self.add_to_buckets(name, table, bucket_of(by, self.buckets))

    def add_to_buckets(self, name: str, table: pa.Table, numbers: np.ndarray[Any, Any]) -> None:
        """Add a table whose bucket numbers are given."""
        if not table.num_rows:
            return
        if self.buckets == 1:
            self.tables.setdefault(0, []).append((name, table))
            return
        ordered = table.take(np.argsort(numbers, kind="stable"))
        counts = np.bincount(numbers, minlength=self.buckets)
        start = 0
        for bucket in np.flatnonzero(counts).tolist():
            size = int(counts[bucket])
            self.tables.setdefault(bucket, []).append((name, ordered.slice(start, size)))
            start += size

    def write(self, objects: ObjectStore, prefix: str) -> ShuffleFile | None:
        """Write the buckets as one object; None when there are no rows."""
        if not self.tables:
            return None
        contents: list[bytes] = []
        sizes = np.zeros(self.buckets + 1, dtype="<u8")
        for bucket, tables in sorted(self.tables.items()):
            contents.append(pickle.dumps([(name, to_ipc(table)) for name, table in tables]))
            sizes[bucket + 1] = len(contents[-1])
        self.tables.clear()
        data = b"".join([*contents, np.cumsum(sizes, dtype="<u8").tobytes()])
        path = f"{prefix}/{new_ulid()}"
        objects.put(path, data)
        return ShuffleFile(path, len(data))


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The objects of a finished shuffle, in the order of the tasks."""

    buckets: int
    files: tuple[ShuffleFile, ...] = ()

    def and_(self, files: Iterable[ShuffleFile | None]) -> Shuffled:
        """With the objects of more tasks."""
        return Shuffled(self.buckets, self.files + tuple(file for file in files if file))

    def ranges(self) -> list[range]:
        """The buckets of each task that reads them; none when nothing was written."""
        if not self.files:
            return []
        step = min(-(-self.buckets // TASKS_MAX), BUCKETS_PER_TASK_MAX)
        return [range(at, min(at + step, self.buckets)) for at in range(0, self.buckets, step)]

    def read(
        self, objects: ObjectStore, buckets: range, prefixes: Sequence[str] | None = None
    ) -> Iterator[dict[str, pa.Table]]:
        """The tables of some adjacent buckets by name, one bucket after the other.

        Tables are concatenated in the order of the tasks. ``prefixes`` selects them by the
        beginning of their names. Buckets without rows are left out.
        """
        with tempfile.SpooledTemporaryFile(SPILL_BYTES) as spool:
            pieces = self._fetch(objects, buckets, spool)
            for number in range(len(buckets)):
                found = _tables(spool, [piece for piece in pieces[number] if piece[1]], prefixes)
                if found:
                    yield found

    def _fetch(
        self, objects: ObjectStore, buckets: range, spool: IO[bytes]
    ) -> list[list[tuple[int, int]]]:
        """Copy these buckets of all objects to ``spool``; returns where, per bucket, and how
        long each piece is."""

        def read(file: ShuffleFile) -> tuple[np.ndarray[Any, Any], bytes]:
            index = file.size - _ENTRY * (self.buckets + 1) + _ENTRY * buckets.start
            entries = objects.get_range(file.path, index, _ENTRY * (len(buckets) + 1))
            starts = np.frombuffer(entries, dtype="<u8").astype(np.int64)
            size = int(starts[-1] - starts[0])
            return starts, objects.get_range(file.path, int(starts[0]), size) if size else b""

        pieces: list[list[tuple[int, int]]] = [[] for _ in buckets]
        at = 0
        with ThreadPoolExecutor(min(READS_AT_ONCE, len(self.files))) as threads:
            for first in range(0, len(self.files), READS_AT_ONCE):
                some = self.files[first : first + READS_AT_ONCE]
                for starts, data in threads.map(read, some):
                    spool.write(data)
                    for number in range(len(buckets)):
                        begin = int(starts[number] - starts[0])
                        length = int(starts[number + 1] - starts[number])
                        pieces[number].append((at + begin, length))
                    at += len(data)
        return pieces


def _tables(
    spool: IO[bytes], pieces: Iterable[tuple[int, int]], prefixes: Sequence[str] | None
) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {}
    for start, size in pieces:
        spool.seek(start)
        for name, data in pickle.loads(spool.read(size)):
            if prefixes is None or name.startswith(tuple(prefixes)):
                parts.setdefault(name, []).append(from_ipc(data))
    return {name: _joined(tables) for name, tables in parts.items()}


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; a missing column is null."""
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
