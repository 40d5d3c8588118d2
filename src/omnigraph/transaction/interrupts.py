"""Defers SIGINT while an interrupted write is rolled back.

A second Ctrl-C must not stop the roll-back that the first one started. A roll-back that hangs must
remain interruptible, so the ``INTERRUPTS_MAX``-th Ctrl-C is not deferred. Only the main thread
receives SIGINT; in other threads this does nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTS_MAX: Final = 3


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defer SIGINT while the block runs; the previous handler is restored afterwards."""
    previous = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if previous is None or not in_main_thread:
        yield
        return
    pressed = 0

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed >= INTERRUPTS_MAX:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, count)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
