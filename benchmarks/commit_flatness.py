"""Five thousand one-row commits to one type: does the last cost what the first did?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import omnigraph
from benchmarks.record import flatness, progress

SCHEMA: Final = "node Event { name: String @key\n n: I64? }"
COMMITS: Final = 5_000
WINDOW: Final = 100
BLOCK: Final = 500
DATA: Final = f"{COMMITS} commits of one new node each, one type, local disk, upkeep included"
WARM_UP: Final = "30 commits to another graph"
REPETITIONS: Final = COMMITS
BARS: Final = {"last_to_first_ratio": 1.5, "p50_ms": 30.0}


def run(commits: int = COMMITS) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        _commit(Path(directory) / "warm", 30)
        times_ms = _commit(Path(directory) / "measured", commits)
    return {
        **flatness(times_ms, WINDOW),
        "p50_ms_per_500": [
            round(median(times_ms[start : start + BLOCK]), 2)
            for start in range(0, len(times_ms), BLOCK)
        ],
    }


def _commit(place: Path, commits: int) -> list[float]:
    graph = omnigraph.init(place, SCHEMA)
    times_ms = []
    for number in range(commits):
        started = perf_counter()
        with graph.write() as w:
            w.insert("Event", {"name": f"event {number:06}", "n": number})
        times_ms.append((perf_counter() - started) * 1000)
        if number and number % 1_000 == 0:
            progress(f"  {number} commits")
    return times_ms
