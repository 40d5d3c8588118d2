"""Turns: short queries of many threads, one after the other.

Python runs one thread at a time. Queries of a tenth of a millisecond that all run at once interrupt
each other at every step, and the slowest of them wait for many others; in turns each waits for
those that came before it, and no longer. Queries that take longer spend their time outside of
Python and take no turns, and a short one that has to load something first ends its turn.
"""

from __future__ import annotations

from typing import Final

from omnigraph.storage.thread_queues import FairLock

SHORT_S: Final = 0.001
"""A query that took less than this the last time takes turns."""
KNOWN_MAX: Final = 4_096
"""Texts whose last time is remembered."""


class Turn:
    """The turn of one query, or none."""

    def __init__(self, turns: Turns | None) -> None:
        self._turns = turns

    def end(self) -> None:
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.release()


class Turns(FairLock):
    """Handed over in the order of those who wait. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[object, float] = {}

    def of(self, text: object) -> Turn:
        """Wait for a turn, if the text is one of a short query."""
        if self._last.get(text, SHORT_S) >= SHORT_S:
            return Turn(None)
        self.acquire()
        return Turn(self)

    def note(self, text: str, seconds: float) -> None:
        """How long a query took."""
        if len(self._last) >= KNOWN_MAX and text not in self._last:
            self._last.clear()
        self._last[text] = seconds
