"""Holding Ctrl-C back for the moment in which an interrupted write is undone.

People press Ctrl-C twice. The second one must not stop the undo that the first one began, and one
that hangs must still be left: the ``BREAKS_OUT``-th gets through. Only the main thread is ever
interrupted, so elsewhere there is nothing to do.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

BREAKS_OUT: Final = 3


@contextmanager
def held_back() -> Iterator[None]:
    """Let the block run to its end although SIGINT arrives; a program's own handler comes back."""
    previous = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if previous is None or not in_main_thread:
        yield
        return
    pressed = 0

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed >= BREAKS_OUT:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, count)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
