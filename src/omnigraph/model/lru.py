"""The LRU cache of the package: bounded by entries or by bytes, safe for threads.

Eviction is second chance (CLOCK), the usual approximation of least recently used. A hit marks its
entry and takes no lock, so that threads which only read never wait for each other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(Generic[V]):
    __slots__ = ("size", "used", "value")

    def __init__(self, value: V, size: int) -> None:
        self.value = value
        self.size = size
        self.used = False


class LruCache(Generic[K, V]):
    """A mapping that evicts the least recently used entries. Values are never None.

    The sum of the sizes of all entries stays within ``limit``. With the default size of 1 the limit
    is a number of entries; with sizes in bytes it is a number of bytes. A value larger than the
    limit is not stored.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.removals = 0
        """Counts evicted, replaced and invalidated entries. While it does not change, every entry
        that was found before is still there."""
        self.generation = 0
        """Counts invalidations."""
        self._used = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def used(self) -> int:
        """The sum of the sizes of all entries."""
        return self._used

    def get(self, key: K) -> V | None:
        """The value of a key, marked as used; None when there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = True
        return entry.value

    def put(self, key: K, value: V, size: int = 1, generation: int | None = None) -> None:
        """Store a value, evicting others where there is no room.

        A value that was made while ``generation`` was current is not stored after a later
        invalidation, which may have been meant for it.
        """
        entry = _Entry(value, size)
        with self._lock:
            if generation is not None and generation != self.generation:
                return
            if key in self._entries:
                self._remove(key)
            if entry.size > self.limit:
                self.removals += 1
                return
            while self._used + entry.size > self.limit:
                oldest, candidate = next(iter(self._entries.items()))
                if candidate.used:
                    candidate.used = False
                    self._entries.move_to_end(oldest)
                else:
                    self._remove(oldest)
            self._entries[key] = entry
            self._used += entry.size

    def invalidate(self, matches: Callable[[K], bool]) -> None:
        """Remove the entries of all keys that match."""
        with self._lock:
            self.generation += 1
            for key in [key for key in self._entries if matches(key)]:
                self._remove(key)

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self.generation += 1
            self.removals += 1
            self._entries.clear()
            self._used = 0

    def _remove(self, key: K) -> None:
        self._used -= self._entries.pop(key).size
        self.removals += 1
