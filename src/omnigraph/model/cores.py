"""The cores that this process may use, and work on all of them in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

AHEAD_PER_CORE: Final = 2
"""Items that are worked on or done before they are asked for: bounds the memory."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_on_cores(function: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """``map`` on threads, one per core: for functions that release the interpreter's lock."""
    workers = cores()
    if workers == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="omnigraph-map") as pool:
        ahead: deque[Future[Made]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) >= workers * AHEAD_PER_CORE:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
