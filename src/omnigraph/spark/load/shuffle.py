"""The exchange: tables divided by the value of a column, left for tasks that take one bucket each.

Rows with equal values meet in the same bucket, whichever task wrote them; that is all that checks
across a whole input need. A *shelf* is what one task leaves behind: one object per bucket, with any
number of named tables. Objects are named by chance, so that two attempts at one task never meet,
and only the shelves of successful attempts are ever read.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.model.ids import new_ulid
from omnigraph.spark.load.partitions import packed, unpacked
from omnigraph.storage.objects.store import ObjectStore

BUCKETS_MAX: Final = 1_024
_WORD: Final = 8
_MIX: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

Shelf = dict[int, str]
"""The object of each bucket that has rows."""


def bucket_of(values: pa.Array | pa.ChunkedArray, buckets: int) -> np.ndarray[Any, Any]:
    """The bucket of every string: a function of the string alone."""
    if buckets == 1:
        return np.zeros(len(values), dtype=np.uint16)
    return (hash_of(values) % np.uint64(buckets)).astype(np.uint16)


def hash_of(values: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """A number for every string: a function of the string alone, cheap and well spread.

    It looks at the beginning, the middle and the end of a string: enough to spread keys of every
    common form, and never wrong, because equality is decided where strings meet.
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
    for factor, offset in zip(_MIX, (0 * spare, spare // 2, spare), strict=True):
        word = words[starts + offset]
        word = np.where(kept == 0, 0, (word << shift) >> shift)  # only this string's own bytes
        mixed = (mixed ^ word) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@dataclass
class Shelving:
    """Tables on their way to a shelf."""

    buckets: int
    tables: dict[int, list[tuple[str, pa.Table]]] = field(default_factory=dict)

    def add(self, name: str, table: pa.Table, by: pa.Array | pa.ChunkedArray) -> None:
        """Divide a table by a parallel column, keeping the order of rows inside each bucket."""
        if table.num_rows:
            self.add_to(name, table, bucket_of(by, self.buckets))

    def add_to(self, name: str, table: pa.Table, numbers: np.ndarray[Any, Any]) -> None:
        """The same for a table whose rows have their buckets already."""
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

    def write(self, objects: ObjectStore, prefix: str) -> Shelf:
        """Write one object per bucket; returns where they are."""
        stem = f"{prefix}/{new_ulid()}"
        shelf = {}
        for bucket, tables in sorted(self.tables.items()):
            path = f"{stem}.{bucket}"
            content = [(name, packed(table)) for name, table in tables]
            objects.put(path, pickle.dumps(content))
            shelf[bucket] = path
        self.tables.clear()
        return shelf


def read_bucket(
    objects: ObjectStore, paths: Iterable[str], wanted: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """The tables of one bucket by name, rows in the order of the shelves."""

    parts: dict[str, list[pa.Table]] = {}
    for path in paths:
        for name, data in pickle.loads(objects.get(path)):
            if wanted is None or name.startswith(tuple(wanted)):
                parts.setdefault(name, []).append(unpacked(data))
    return {name: _joined(tables) for name, tables in parts.items()}


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of all; a column that some lack is null there."""
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def bucket_paths(shelves: Iterable[Mapping[int, str]], bucket: int) -> list[str]:
    """The objects of one bucket, in the order of the shelves."""
    return [shelf[bucket] for shelf in shelves if bucket in shelf]
