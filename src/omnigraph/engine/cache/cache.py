"""Derived data kept in memory: bounded by bytes, what was not used for long goes first.

Keys name immutable things (a version of a table and what was made of it), so an entry is never
wrong, only gone. Something that several threads want at once is made once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar, cast

from omnigraph.model.checkpoint import checkpoint
from omnigraph.model.integers import whole_number

MEMORY_SHARE: Final = 4
"""A quarter of the machine's memory, unless said otherwise."""
WAIT_SECONDS: Final = 0.05
"""How long to wait for another thread between two checkpoints."""
BYTES_ENVIRONMENT: Final = "OMNIGRAPH_CACHE_BYTES"


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)


class _Entry:
    """What is kept, and whether somebody asked for it since an eviction last passed by."""

    __slots__ = ("nbytes", "used", "value")

    def __init__(self, value: Sized) -> None:
        self.value = value
        self.nbytes = value.nbytes
        self.used = True


class Cache:
    """Thread-safe. An entry larger than the whole budget is handed out, but not kept.

    A hit takes no lock: it only marks the entry. Eviction goes from the oldest on and lets entries
    that were used since it last met them stay one more round.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.drops = 0
        """Grows whenever something goes: as long as it stands still, what was there still is."""
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._clears = 0
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    @property
    def nbytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def peek(self, key: Hashable) -> Any | None:
        """What is there, without making it."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = True
        return entry.value

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What is there, or what ``make`` returns."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.used = True
            return cast(_T, entry.value)
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        while not turn.acquire(timeout=WAIT_SECONDS):
            checkpoint()  # somebody else makes it
        try:
            found = self.peek(key)
            if found is None:
                clears = self._clears
                found = make()
                self._keep(key, found, clears)
            with self._lock:
                self._making.pop(key, None)
            return cast(_T, found)
        finally:
            turn.release()

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0
            self._clears += 1
            self.drops += 1

    def _keep(self, key: Hashable, made: Sized, clears: int) -> None:
        """Keep what was made since so many clears, unless another one came meanwhile."""
        entry = _Entry(made)
        with self._lock:
            if self._clears != clears:
                return
            if key in self._entries:
                self._drop(key)
            self._entries[key] = entry
            self._bytes += entry.nbytes
            if entry.nbytes > self.bytes_max:
                self._drop(key)
            while self._bytes > self.bytes_max:
                oldest = next(iter(self._entries))
                if self._entries[oldest].used:
                    self._entries[oldest].used = False
                    self._entries.move_to_end(oldest)
                else:
                    self._drop(oldest)

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._entries.pop(key).nbytes
        self.drops += 1


_shared: Cache | None = None
_shared_lock = threading.Lock()


def shared_cache() -> Cache:
    """The cache of this process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Cache(_default_bytes())
        return _shared


def _default_bytes() -> int:
    configured = whole_number(os.environ.get(BYTES_ENVIRONMENT, ""))
    return memory_bytes() // MEMORY_SHARE if configured is None else configured


def memory_bytes() -> int:
    """The memory of this machine, as far as it says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
