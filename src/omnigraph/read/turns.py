"""Turns: short queries of many threads, one after the other.

Python runs one thread at a time. Queries of a tenth of a millisecond that all run at once interrupt
each other at every step, and the slowest of them wait for many others; in turns each waits for
those that came before it, and no longer. Queries that take longer spend their time outside of
Python and take no turns, and a short one that has to load something first ends its turn.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final

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
            turns.pass_on()


class Turns:
    """Passed on in the order of those who wait. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()
        self._last: dict[object, float] = {}

    def of(self, text: object) -> Turn:
        """Wait for a turn, if the text is one of a short query."""
        if self._last.get(text, SHORT_S) >= SHORT_S:
            return Turn(None)
        self._wait()
        return Turn(self)

    def note(self, text: str, seconds: float) -> None:
        """How long a query took."""
        if len(self._last) >= KNOWN_MAX and text not in self._last:
            self._last.clear()
        self._last[text] = seconds

    def _wait(self) -> None:
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

    def _give_up(self, mine: Lock) -> None:
        """Wait no longer; a turn that came meanwhile is passed on."""
        with self._lock:
            waits = mine in self._waiting
            if waits:
                self._waiting.remove(mine)
        if not waits:
            self.pass_on()

    def pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
