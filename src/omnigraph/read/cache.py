"""Derived data kept in memory: bounded by bytes, least recently used goes first.

Keys name immutable things (a version of a table and what was made of it), so an entry is never
wrong, only gone. Something that several threads want at once is made once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar, cast

MEMORY_SHARE: Final = 4
"""A quarter of the machine's memory, unless said otherwise."""
BYTES_ENVIRONMENT: Final = "OMNIGRAPH_CACHE_BYTES"


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)


class Cache:
    """Thread-safe. An entry larger than the whole budget is handed out, but not kept."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._entries: OrderedDict[Hashable, Sized] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    @property
    def nbytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def peek(self, key: Hashable) -> Any | None:
        """What is there, without making it."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What is there, or what ``make`` returns."""
        found = self.peek(key)
        if found is not None:
            return cast(_T, found)
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        with turn:
            found = self.peek(key)
            if found is None:
                found = make()
                self._keep(key, found)
            with self._lock:
                self._making.pop(key, None)
            return cast(_T, found)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _keep(self, key: Hashable, made: Sized) -> None:
        with self._lock:
            self._entries[key] = made
            self._bytes += made.nbytes
            while self._bytes > self.bytes_max:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.nbytes


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
    configured = os.environ.get(BYTES_ENVIRONMENT, "")
    if configured.isdigit():
        return int(configured)
    return memory_bytes() // MEMORY_SHARE


def memory_bytes() -> int:
    """The memory of this machine, as far as it says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
