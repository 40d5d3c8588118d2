"""Queues of this process: threads that would only get into each other's way wait in order.

What makes concurrent writers safe is the strict table commit and the publish, which other processes
see, too. Queues spare the threads of one process the attempts that one of them would lose.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Final
from weakref import WeakValueDictionary

PATIENCE_S: Final = 5.0
"""Longer than what others do in a queue takes; short enough when one of them hangs."""


class FairLock:
    """A lock that is handed over in the order of those who wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self) -> None:
        mine = self._stand_in_line()
        if mine is not None:
            try:
                mine.acquire()
            except BaseException:
                self._give_up(mine)
                raise

    def acquire_within(self, seconds: float) -> bool:
        """The same for so long at most; whether it was handed over."""
        mine = self._stand_in_line()
        if mine is None:
            return True
        try:
            if mine.acquire(timeout=seconds):
                return True
        except BaseException:
            self._give_up(mine)
            raise
        self._give_up(mine)
        return False

    def _stand_in_line(self) -> Lock | None:
        """What to wait for; None when it is taken at once."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return None
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
            return mine

    def release(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def _give_up(self, mine: Lock) -> None:
        """Wait no longer; a lock that was handed over meanwhile is handed on."""
        with self._lock:
            waits = mine in self._waiting
            if waits:
                self._waiting.remove(mine)
        if not waits:
            self.release()


class Queue(FairLock):
    """The same for blocks of code; the thread that holds it may enter again.

    Whoever has waited for ``PATIENCE_S`` goes on all the same: somebody may hang in there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._owner: int | None = None

    def wait(self) -> None:
        """Wait for those who came before, and hold nothing."""
        if self._taken:
            with self.held():
                pass

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it while the block runs."""
        if self._owner == get_ident() or not self.acquire_within(PATIENCE_S):
            yield
            return
        self._owner = get_ident()
        try:
            yield
        finally:
            self._owner = None
            self.release()


_queues: WeakValueDictionary[Hashable, Queue] = WeakValueDictionary()
_queues_lock = Lock()


def queue(*name: Hashable) -> Queue:
    """The queue of this name, the same one for everybody who holds it at that time."""
    with _queues_lock:
        found = _queues.get(name)
        if found is None:
            found = _queues[name] = Queue()
        return found
