"""Admission of writes: how many, and how many bytes, an actor may have in flight.

Counted per worker process. Callers without a token share one actor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import TooManyRequests

ANONYMOUS: Final = "anonymous"


class Admission:
    """The writes in flight by actor. Used on the event loop only."""

    def __init__(self, inflight_max: int, bytes_max: int) -> None:
        self._inflight_max = inflight_max
        self._bytes_max = bytes_max
        self._inflight: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def inflight(self) -> int:
        return self._inflight.total()

    @contextmanager
    def admitted(self, actor: str | None, size: int) -> Iterator[None]:
        """Count one write of about ``size`` bytes while the block runs, or refuse it."""
        who = ANONYMOUS if actor is None else actor
        if self._inflight[who] >= self._inflight_max:
            raise TooManyRequests(
                f"actor {who!r} has {self._inflight_max} writes in flight already",
                details={"limit": self._inflight_max},
            )
        if self._inflight[who] and self._bytes[who] + size > self._bytes_max:
            raise TooManyRequests(
                f"the writes of actor {who!r} in flight would exceed {self._bytes_max} bytes",
                details={"limit": self._bytes_max},
            )
        self._inflight[who] += 1
        self._bytes[who] += size
        try:
            yield
        finally:
            self._inflight[who] -= 1
            self._bytes[who] -= size
            if not self._inflight[who]:
                del self._inflight[who], self._bytes[who]
