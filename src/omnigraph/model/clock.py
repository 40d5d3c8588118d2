"""The machine's clock behind an interface, so that tests can replace it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The time functions that the engine uses."""

    def now_us(self) -> int:
        """Microseconds since the epoch: for display, never for decisions."""

    def monotonic(self) -> float:
        """Seconds that never step back and keep counting while the process is stopped."""


class SystemClock:
    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        # BOOTTIME also counts while the machine is suspended, so a lease expires meanwhile.
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


SYSTEM_CLOCK = SystemClock()
