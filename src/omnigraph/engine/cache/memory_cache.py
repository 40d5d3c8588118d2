"""The in-memory cache of derived data, bounded by bytes.

Keys name immutable things (a version of a table and what was made of it), so an entry is never
stale, only evicted. A value that several threads need at once is made once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar, cast

from omnigraph.model.checkpoint import checkpoint
from omnigraph.model.lru import LruCache

MEMORY_SHARE: Final = 4
"""The default limit is a quarter of the machine's memory."""
WAIT_SECONDS: Final = 0.05
"""How long to wait for another thread between two checkpoints."""


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)


class MemoryCache(LruCache[Hashable, Any]):
    """An LRU cache of sized values that are made on demand. Thread-safe.

    A value larger than the whole cache is returned, but not kept.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max)
        self._making: dict[Hashable, threading.Lock] = {}
        self._making_lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self.used

    def get_or_make(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key, made by one thread while others wait for it."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.used = True
            return cast(_T, entry.value)
        with self._making_lock:
            making = self._making.setdefault(key, threading.Lock())
        while not making.acquire(timeout=WAIT_SECONDS):
            checkpoint()  # another thread is making it
        try:
            found = self.get(key)
            if found is None:
                generation = self.generation
                found = make()
                self.put(key, found, found.nbytes, generation)
            with self._making_lock:
                self._making.pop(key, None)
            return cast(_T, found)
        finally:
            making.release()


_shared: dict[int, MemoryCache] = {}
_shared_lock = threading.Lock()


def shared_cache(bytes_max: int | None = None) -> MemoryCache:
    """The cache of this process with this limit; None: a share of the machine's memory."""
    limit = memory_bytes() // MEMORY_SHARE if bytes_max is None else bytes_max
    with _shared_lock:
        return _shared.setdefault(limit, MemoryCache(limit))


def memory_bytes() -> int:
    """The memory of this machine, as far as the system reports it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
