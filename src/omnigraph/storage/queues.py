"""Queues of this process: threads that would only get into each other's way wait in order.

What makes concurrent writers safe is the strict table commit and the publish, which other processes
see, too. Queues spare the threads of one process the attempts that one of them would lose.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import Lock, get_ident
from weakref import WeakValueDictionary


class FairLock:
    """A lock that is handed over in the order of those who wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._give_up(mine)
            raise

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
    """The same for blocks of code; the thread that holds it may enter again."""

    def __init__(self) -> None:
        super().__init__()
        self._owner: int | None = None
        self._depth = 0

    def wait(self) -> None:
        """Wait for those who came before, and hold nothing."""
        if self._taken:
            with self:
                pass

    def __enter__(self) -> None:
        if self._owner != get_ident():
            self.acquire()
            self._owner = get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
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
