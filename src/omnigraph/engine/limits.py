"""Limits of one query: time, memory, rows, and cancellation.

Checked before something large is allocated, not after. Exceeding a limit raises a typed error and
has no other effect.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Final

from omnigraph.engine.cache.memory_cache import memory_bytes
from omnigraph.errors import QueryCancelled, QueryTimeout, ResourceLimit
from omnigraph.model.checkpoint import Check

MEMORY_SHARE: Final = 4
"""The default memory limit is a quarter of the machine's memory."""
ROW_BYTES: Final = 48
"""An upper estimate of the working memory per row of a frame: ordinals, positions, a mask."""
ROWS_MAX: Final = 10_000_000
"""A larger result is better served by an export."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one query. ``timeout_ms`` 0 means no timeout."""

    timeout_ms: int = 0
    memory_bytes: int = field(default_factory=lambda: memory_bytes() // MEMORY_SHARE)
    rows_max: int = ROWS_MAX


__all__ = ["Check", "Guard", "Limits"]


class Guard:
    """Enforces the limits of one execution."""

    def __init__(self, limits: Limits, cancelled: threading.Event | None = None) -> None:
        self._limits = limits
        self._cancelled = cancelled
        self._started = time.monotonic()

    def check(self) -> None:
        """Raise if the query was cancelled or timed out. Called often, also within long steps."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise QueryCancelled("the query was cancelled")
        limit = self._limits.timeout_ms
        if limit:
            passed = int((time.monotonic() - self._started) * 1000)
            if passed > limit:
                raise QueryTimeout(limit, passed)

    def remaining(self) -> Limits:
        """The limits with the time that is left, at least a millisecond where there is an end."""
        limit = self._limits.timeout_ms
        if not limit:
            return self._limits
        passed = int((time.monotonic() - self._started) * 1000)
        return replace(self._limits, timeout_ms=max(1, limit - passed))

    @property
    def can_stop(self) -> bool:
        """Whether ``check`` can raise at all."""
        return self._limits.timeout_ms > 0 or self._cancelled is not None

    @property
    def frame_rows_max(self) -> int:
        return max(1, self._limits.memory_bytes // ROW_BYTES)

    def has_room(self, rows: int) -> bool:
        """Whether a frame of this many rows fits into the memory limit."""
        return rows * ROW_BYTES <= self._limits.memory_bytes

    def allow_frame(self, rows: int) -> None:
        """Raise if a frame of this many rows exceeds the memory limit."""
        self.check()
        if rows > self.frame_rows_max:
            raise ResourceLimit(
                "query_memory_bytes",
                self._limits.memory_bytes,
                rows * ROW_BYTES,
                remedy="Make the pattern more specific, connect its parts, or raise the limit.",
            )

    def allow_result(self, rows: int) -> None:
        """Raise if a result of this many rows exceeds the row limit."""
        self.check()
        if rows > self._limits.rows_max:
            raise ResourceLimit(
                "query_result_rows",
                self._limits.rows_max,
                rows,
                remedy="Add a limit or an aggregate to the query, or export the data.",
            )
