"""Limits of one query: time, memory, rows, and somebody who no longer wants the answer.

Checked before something large is made, not after. A limit that is reached is a typed error; nothing
else happens.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from omnigraph.engine.cache.cache import memory_bytes
from omnigraph.errors import QueryCancelled, QueryTimeout, ResourceLimit
from omnigraph.model.checkpoint import Check

MEMORY_SHARE: Final = 4
"""One query may use a quarter of the machine."""
ROW_BYTES: Final = 48
"""Working memory of one row of a frame, generously: ordinals, places, a mask."""
ROWS_MAX: Final = 10_000_000
"""More rows than this are not an answer but an export."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``timeout_ms`` 0 means no end."""

    timeout_ms: int = 0
    memory_bytes: int = field(default_factory=lambda: memory_bytes() // MEMORY_SHARE)
    rows_max: int = ROWS_MAX


__all__ = ["Check", "Guard", "Limits"]


class Guard:
    """Watches the limits of one execution."""

    def __init__(self, limits: Limits, cancelled: threading.Event | None = None) -> None:
        self._limits = limits
        self._cancelled = cancelled
        self._started = time.monotonic()

    def check(self) -> None:
        """Go on, or say why not. Called between steps, and between parts of long ones."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise QueryCancelled("the query was cancelled")
        limit = self._limits.timeout_ms
        if limit:
            passed = int((time.monotonic() - self._started) * 1000)
            if passed > limit:
                raise QueryTimeout(limit, passed)

    @property
    def can_stop(self) -> bool:
        """Whether there is anything that ``check`` could refuse."""
        return self._limits.timeout_ms > 0 or self._cancelled is not None

    @property
    def frame_rows_max(self) -> int:
        return max(1, self._limits.memory_bytes // ROW_BYTES)

    def has_room(self, rows: int) -> bool:
        """Whether a frame of this many rows is allowed, without refusing it."""
        return rows * ROW_BYTES <= self._limits.memory_bytes

    def allow_frame(self, rows: int) -> None:
        """Before a frame of this many rows is made."""
        self.check()
        if rows > self.frame_rows_max:
            raise ResourceLimit(
                "query_memory_bytes",
                self._limits.memory_bytes,
                rows * ROW_BYTES,
                remedy="Make the pattern more specific, connect its parts, or raise the limit.",
            )

    def allow_result(self, rows: int) -> None:
        """Before this many rows are answered."""
        self.check()
        if rows > self._limits.rows_max:
            raise ResourceLimit(
                "query_result_rows",
                self._limits.rows_max,
                rows,
                remedy="Add a limit or an aggregate, or use an export.",
            )
