"""Fair, named in-process locks that spare the threads of one process avoidable conflicts.

They do not make concurrent writers safe, because other processes do not see them: the strict table
commit and the publish do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Final
from weakref import WeakValueDictionary

ACQUIRE_TIMEOUT_S: Final = 5.0
"""How long a thread waits for a lock whose holder may hang; longer than any work under a lock."""


class FairLock:
    """A lock that is granted in order of arrival."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self) -> None:
        ticket = self._enqueue()
        if ticket is not None:
            try:
                ticket.acquire()
            except BaseException:
                self._cancel(ticket)
                raise

    def acquire_within(self, seconds: float) -> bool:
        """Acquire with a timeout; False when the lock was not granted in time."""
        ticket = self._enqueue()
        if ticket is None:
            return True
        try:
            if ticket.acquire(timeout=seconds):
                return True
        except BaseException:
            self._cancel(ticket)
            raise
        self._cancel(ticket)
        return False

    def _enqueue(self) -> Lock | None:
        """The lock to wait for; None when it was granted at once."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return None
            ticket = Lock()
            ticket.acquire()
            self._waiting.append(ticket)
            return ticket

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def _cancel(self, ticket: Lock) -> None:
        """Stop waiting; a lock that was granted meanwhile is passed on."""
        with self._lock:
            waits = ticket in self._waiting
            if waits:
                self._waiting.remove(ticket)
        if not waits:
            self.release()


class NamedLock(FairLock):
    """A re-entrant, advisory fair lock.

    A thread that has waited for ``ACQUIRE_TIMEOUT_S`` proceeds without it: the holder may hang.
    """

    def __init__(self) -> None:
        super().__init__()
        self._owner: int | None = None

    def wait(self) -> None:
        """Wait until the lock is free, without holding it."""
        if self._taken:
            with self.held():
                pass

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock while the block runs."""
        if self._owner == get_ident() or not self.acquire_within(ACQUIRE_TIMEOUT_S):
            yield
            return
        self._owner = get_ident()
        try:
            yield
        finally:
            self._owner = None
            self.release()


_locks: WeakValueDictionary[Hashable, NamedLock] = WeakValueDictionary()
_locks_lock = Lock()


def named_lock(*name: Hashable) -> NamedLock:
    """The lock of this name, shared by all threads of the process."""
    with _locks_lock:
        found = _locks.get(name)
        if found is None:
            found = _locks[name] = NamedLock()
        return found
