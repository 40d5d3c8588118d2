"""A FIFO queue for short queries: threads run them one after the other.

The interpreter lock lets one thread run at a time. Queries of a tenth of a millisecond that run at
once preempt each other at every step, which makes the slowest of them wait for many others. Queued,
a query waits only for those before it. Longer queries spend their time outside of Python and do not
queue; a short query that has to load something leaves the queue first.
"""

from __future__ import annotations

from typing import Final

from omnigraph.storage.named_locks import FairLock

SHORT_S: Final = 0.001
"""A query whose last run took less than this is queued."""
RECORDED_MAX: Final = 4_096
"""Query texts whose last duration is recorded."""


class QueueSlot:
    """The place of one query in the queue, or none."""

    def __init__(self, queue: ShortQueryQueue | None) -> None:
        self._queue = queue

    def leave(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.release()


class ShortQueryQueue(FairLock):
    """Runs short queries in the order of their arrival. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[object, float] = {}

    def enter(self, text: object) -> QueueSlot:
        """Wait for a slot, if the last run of the text was short."""
        if self._last.get(text, SHORT_S) >= SHORT_S:
            return QueueSlot(None)
        self.acquire()
        return QueueSlot(self)

    def record(self, text: str, seconds: float) -> None:
        """Record how long a query took."""
        if len(self._last) >= RECORDED_MAX and text not in self._last:
            self._last.clear()
        self._last[text] = seconds
