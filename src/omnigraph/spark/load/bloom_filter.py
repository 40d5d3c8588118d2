"""Which ids a load may ask the stored rows for, as small filters that are wrong in one way only.

A task notes the ids and the ends of edges it has read; joined, a filter says of a stored id that it
is certainly not among them, or that it may be. What is certainly not asked for need not travel to
the task that would look for it: a load into a large graph then moves what it touches. Nothing here
decides anything: ids that may be asked for are compared where they meet.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.model.ids import new_ulid
from omnigraph.spark.load.shuffle import hash_of
from omnigraph.storage.objects.store import ObjectStore

BITS: Final = 24
"""Two megabytes per type: a million ids let one other in sixteen through, ten million every second
one. Then a load is so large that what is stored beside it is not what takes its time."""

TASKS_MAX: Final = 256
"""More tasks than this read more than ten gigabytes: their filters would let everything through,
and the driver would read them in vain."""

_SHIFT: Final = 64 - BITS


@dataclass
class Asking:
    """What one task asks for, by type."""

    types: frozenset[str]
    """The types that have stored rows: of others nothing is noted."""
    places: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)

    def note(self, key: str, ids: pa.Array | pa.ChunkedArray) -> None:
        if key in self.types and len(ids):
            self.places.setdefault(key, []).append(_places(ids))

    def write(self, objects: ObjectStore, prefix: str) -> str | None:
        """Leave the filters of this task as one object; returns where it is."""
        if not self.types:
            return None
        content = {key: zlib.compress(_bits(places), 1) for key, places in self.places.items()}
        path = f"{prefix}/{new_ulid()}"
        objects.put(path, pickle.dumps(content))
        return path


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters of a whole load, by type, as they travel to tasks."""

    filters: Mapping[str, bytes]

    def may_be(self, key: str, ids: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any] | None:
        """Which of these ids may be asked for; None when nothing is known of their type."""
        if key not in self.filters:
            return None
        bits = np.frombuffer(zlib.decompress(self.filters[key]), dtype=np.uint8)
        places = _places(ids)
        found = bits[places >> 3] >> (7 - (places & 7)).astype(np.uint8) & 1
        return np.asarray(found, dtype=bool)


def join_asked(
    objects: ObjectStore, paths: Iterable[str | None], types: frozenset[str]
) -> Asked | None:
    """The filters of all tasks as one; None when that would say nothing."""
    found = list(paths)
    if not types or len(found) > TASKS_MAX or None in found:
        return None
    joined = {key: np.zeros(1 << BITS >> 3, dtype=np.uint8) for key in sorted(types)}
    for path in found:
        assert path is not None
        for key, data in pickle.loads(objects.get(path)).items():
            joined[key] |= np.frombuffer(zlib.decompress(data), dtype=np.uint8)
    return Asked({key: zlib.compress(bits.tobytes(), 1) for key, bits in joined.items()})


def _places(ids: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    return (hash_of(ids) >> np.uint64(_SHIFT)).astype(np.uint32)


def _bits(places: list[np.ndarray[Any, Any]]) -> bytes:
    marked = np.zeros(1 << BITS, dtype=bool)
    for part in places:
        marked[part] = True
    return np.packbits(marked).tobytes()
