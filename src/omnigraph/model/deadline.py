"""When a long call must stop: its time has passed, or nobody waits for it any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import QueryCancelled, QueryTimeout
from omnigraph.model.checkpoint import install, remove

Value = TypeVar("Value")


class Deadline:
    """The end of one read. ``timeout_ms`` 0 means that only ``cancelled`` ends it."""

    __slots__ = ("_ends_at", "_started_at", "cancelled", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.cancelled = threading.Event()
        self._started_at = time.monotonic()
        self._ends_at = self._started_at + timeout_ms / 1000 if timeout_ms else None

    @property
    def remaining_ms(self) -> int:
        """What is left of the time, at least 1; 0 where there is no end."""
        if self._ends_at is None:
            return 0
        return max(1, int((self._ends_at - time.monotonic()) * 1000))

    def check(self) -> None:
        """Raise when the read must stop."""
        if self.cancelled.is_set():
            raise QueryCancelled("the request was cancelled")
        now = time.monotonic()
        if self._ends_at is not None and now > self._ends_at:
            raise QueryTimeout(self.timeout_ms, int((now - self._started_at) * 1000))

    def bounding(self, work: Callable[[], Value]) -> Callable[[], Value]:
        """The function with a check at every checkpoint of the computation inside it."""

        def run() -> Value:
            self.check()
            token = install(self.check)
            try:
                return work()
            finally:
                remove(token)

        return run
