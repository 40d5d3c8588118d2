"""Shuffle through the object store: tables are hash partitioned into buckets, one object each.

Rows with equal values are in the same bucket, whichever task wrote them, so one task per bucket can
check uniqueness and references over the whole input. A task writes one object per bucket, with any
number of named tables. Object names are random, so that two attempts of a task never collide; only
the objects of successful attempts are read.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.partitions import from_ipc, to_ipc
from omnigraph.model.ids import new_ulid
from omnigraph.storage.objects.store import ObjectStore

BUCKETS_MAX: Final = 1_024
_WORD: Final = 8
_MIX: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

BucketFiles = dict[int, str]
"""Paths of the objects that one task wrote, by bucket; empty buckets have none."""


def bucket_of(values: pa.Array | pa.ChunkedArray, buckets: int) -> np.ndarray[Any, Any]:
    """The bucket of every string: its hash modulo the number of buckets."""
    if buckets == 1:
        return np.zeros(len(values), dtype=np.uint16)
    return (hash_of(values) % np.uint64(buckets)).astype(np.uint16)


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

    def write(self, objects: ObjectStore, prefix: str) -> BucketFiles:
        """Write one object per bucket; returns their paths."""
        stem = f"{prefix}/{new_ulid()}"
        bucket_files = {}
        for bucket, tables in sorted(self.tables.items()):
            path = f"{stem}.{bucket}"
            content = [(name, to_ipc(table)) for name, table in tables]
            objects.put(path, pickle.dumps(content))
            bucket_files[bucket] = path
        self.tables.clear()
        return bucket_files


def read_bucket(
    objects: ObjectStore, paths: Iterable[str], prefixes: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """The tables of one bucket by name, concatenated in the order of ``paths``.

    ``prefixes`` selects tables by the beginning of their names.
    """
    parts: dict[str, list[pa.Table]] = {}
    for path in paths:
        for name, data in pickle.loads(objects.get(path)):
            if prefixes is None or name.startswith(tuple(prefixes)):
                parts.setdefault(name, []).append(from_ipc(data))
    return {name: _joined(tables) for name, tables in parts.items()}


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; a missing column is null."""
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def bucket_paths(shuffled: Iterable[Mapping[int, str]], bucket: int) -> list[str]:
    """The objects of one bucket, in the order of the tasks."""
    return [bucket_files[bucket] for bucket_files in shuffled if bucket in bucket_files]
