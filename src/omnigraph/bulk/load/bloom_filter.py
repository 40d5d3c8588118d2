"""Bloom filters of the ids that a load refers to, one per type: a semi-join before the shuffle.

A task adds the ids and the ends of edges that it reads; the driver merges the filters of all tasks.
Stored rows whose ids are not in the filter are not shuffled by id, so that a load into a large
graph moves only what it touches. False positives cost time and nothing else: ids are compared
exactly in their bucket.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.shuffle import hash_of
from omnigraph.model.ids import new_ulid
from omnigraph.storage.objects.store import ObjectStore

BITS: Final = 24
"""Size of a filter, as a power of two: two megabytes per type, one hash function. With a million
ids the false positive rate is 1/16, with ten million 1/2; a load of that size is dominated by its
own input."""

TASKS_MAX: Final = 256
"""No filters above this number of tasks (more than ten gigabytes of input): they would be full."""

_SHIFT: Final = 64 - BITS


@dataclass(frozen=True, slots=True)
class BloomFilterBuilder:
    """The filters of one task, by type key."""

    types: frozenset[str]
    """The types that have stored rows; other types have no filter."""
    positions: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)

    def add(self, key: str, ids: pa.Array | pa.ChunkedArray) -> None:
        if key in self.types and len(ids):
            self.positions.setdefault(key, []).append(_positions(ids))

    def write(self, objects: ObjectStore, prefix: str) -> str | None:
        """Write the filters of this task as one object; returns its path, or None without types."""
        if not self.types:
            return None
        content = {
            key: zlib.compress(_bits(positions), 1) for key, positions in self.positions.items()
        }
        path = f"{prefix}/{new_ulid()}"
        objects.put(path, pickle.dumps(content))
        return path


@dataclass(frozen=True, slots=True)
class BloomFilters:
    """The compressed filters of a whole load, by type key: a picklable value."""

    filters: Mapping[str, bytes]

    def may_contain(self, key: str, ids: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any] | None:
        """A mask of the ids that may be in the load; None when the type has no filter."""
        if key not in self.filters:
            return None
        bits = np.frombuffer(zlib.decompress(self.filters[key]), dtype=np.uint8)
        positions = _positions(ids)
        found = bits[positions >> 3] >> (7 - (positions & 7)).astype(np.uint8) & 1
        return np.asarray(found, dtype=bool)


def merge_filters(
    objects: ObjectStore, paths: Iterable[str | None], types: frozenset[str]
) -> BloomFilters | None:
    """The union of the filters of all tasks; None when there is nothing to filter by."""
    found = list(paths)
    if not types or len(found) > TASKS_MAX or None in found:
        return None
    joined = {key: np.zeros(1 << BITS >> 3, dtype=np.uint8) for key in sorted(types)}
    for path in found:
        assert path is not None
        for key, data in pickle.loads(objects.get(path)).items():
            joined[key] |= np.frombuffer(zlib.decompress(data), dtype=np.uint8)
    return BloomFilters({key: zlib.compress(bits.tobytes(), 1) for key, bits in joined.items()})


def _positions(ids: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    return (hash_of(ids) >> np.uint64(_SHIFT)).astype(np.uint32)


def _bits(positions: list[np.ndarray[Any, Any]]) -> bytes:
    marked = np.zeros(1 << BITS, dtype=bool)
    for part in positions:
        marked[part] = True
    return np.packbits(marked).tobytes()
