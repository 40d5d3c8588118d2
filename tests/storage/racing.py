"""Concurrent claimants in other threads and processes, started at the same time.

Lives in a module of its own because a spawned process imports it by name.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from omnigraph.errors import ObjectChanged, ObjectExists
from omnigraph.storage.objects.store import ObjectStore

WAIT_SECONDS_MAX = 60

_barrier: Any = None


def _join(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def claim(store: ObjectStore, name: str, rounds: int, barrier: Any = None) -> list[int]:
    """Try to create each round's object; return the rounds won."""
    won = []
    for number in range(rounds):
        (barrier or _barrier).wait(WAIT_SECONDS_MAX)
        try:
            store.put_if_absent(f"claims/{number}", name.encode() * 5000)
            won.append(number)
        except ObjectExists:
            pass
    return won


def increment(store: ObjectStore, name: str, rounds: int, barrier: Any = None) -> list[int]:
    """Add one to the counter ``rounds`` times, by read and conditional replace."""
    (barrier or _barrier).wait(WAIT_SECONDS_MAX)
    seen = []
    while len(seen) < rounds:
        data, tag = store.get_tagged("counter")
        try:
            store.replace("counter", b"%d" % (int(data) + 1), tag)
            seen.append(int(data))
        except ObjectChanged:
            continue
    return seen


def in_threads(job: Callable[..., list[int]], store: ObjectStore, n: int, rounds: int) -> list[Any]:
    barrier = threading.Barrier(n)
    with ThreadPoolExecutor(n) as pool:
        jobs = [pool.submit(job, store, f"thread {i}", rounds, barrier) for i in range(n)]
        return [job.result(WAIT_SECONDS_MAX) for job in jobs]


def in_processes(
    job: Callable[..., list[int]], store: ObjectStore, n: int, rounds: int
) -> list[Any]:
    """The store travels by pickle, as it does to Spark's workers."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, context, initializer=_join, initargs=(context.Barrier(n),)) as pool:
        jobs = [pool.submit(job, store, f"process {i}", rounds) for i in range(n)]
        return [job.result(WAIT_SECONDS_MAX) for job in jobs]


def flat(results: Iterable[Iterable[int]]) -> list[int]:
    return sorted(number for result in results for number in result)
