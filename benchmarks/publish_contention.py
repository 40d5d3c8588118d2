"""Eight processes publish at once: to a type each, and all to one type."""

from __future__ import annotations

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import omnigraph
from benchmarks.record import percentile, spread
from omnigraph.errors import Conflict

PROCESSES: Final = 8
COMMITS_EACH: Final = 50
WAIT_S: Final = 600
DATA: Final = f"{PROCESSES} processes, {COMMITS_EACH} one-node commits each, one branch, local disk"
WARM_UP: Final = "every process has opened the graph before the first commit"
REPETITIONS: Final = PROCESSES * COMMITS_EACH
BARS: Final = {"disjoint_types_not_landed": 0, "one_type_not_landed": 0}


def run() -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, types in (("disjoint_types", PROCESSES), ("one_type", 1)):
        with tempfile.TemporaryDirectory() as directory:
            numbers |= {f"{name}_{key}": v for key, v in _race(Path(directory), types).items()}
    return numbers


def _race(directory: Path, types: int) -> dict[str, Any]:
    schema = "\n".join(f"node T{n} {{ name: String @key }}" for n in range(types))
    graph = omnigraph.init(directory / "graph", schema)
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(PROCESSES, mp_context=context) as pool,
    ):
        barrier = manager.Barrier(PROCESSES)
        jobs = [
            pool.submit(_publish, graph.uri, f"T{n % types}", n, barrier) for n in range(PROCESSES)
        ]
        outcomes = [job.result(WAIT_S) for job in jobs]
    times_ms = list(chain.from_iterable(times for times, _, _ in outcomes))
    seconds = max(seconds for _, seconds, _ in outcomes)
    landed = len(graph.history.commits()) - 1
    return {
        "commit_ms": spread(times_ms),
        "p95_ms": round(percentile(times_ms, 95), 3),
        "commits_per_s": round(landed / seconds, 1),
        "conflicts_told": sum(conflicts for _, _, conflicts in outcomes),
        "not_landed": PROCESSES * COMMITS_EACH - landed,
    }


def _publish(
    uri: str, type_name: str, process: int, barrier: Any
) -> tuple[list[float], float, int]:
    """Commit until every node has landed; a typed conflict is retried."""
    graph = omnigraph.open(uri)
    barrier.wait(WAIT_S)
    times_ms, conflicts, began = [], 0, perf_counter()
    while len(times_ms) < COMMITS_EACH:
        started = perf_counter()
        try:
            with graph.write() as w:
                w.insert(type_name, {"name": f"{process} {len(times_ms)}"})
        except Conflict:
            conflicts += 1
            continue
        times_ms.append((perf_counter() - started) * 1000)
    return times_ms, perf_counter() - began, conflicts
