"""Merging and comparing: the cost follows what changed, not what is there."""

from __future__ import annotations

import random
import resource
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import omnigraph
from benchmarks.record import progress, spread

SCHEMA: Final = "node Item {\n  name: String @key\n  count: I64?\n  text: String?\n}\n"
SMALL: Final = 50_000
LARGE: Final = 5_000_000
CHANGED: Final = 1_000
BOTH: Final = 50_000
REPETITIONS: Final = 7
DATA: Final = (
    f"nodes with a key, a number and a text; {CHANGED} random ones updated on a branch of "
    f"{SMALL} and of {LARGE}; {BOTH} updated on each of two sides of {4 * BOTH}; local disk"
)
WARM_UP: Final = "2 merges in each graph, alternating"
BARS: Final = {
    "large_to_small_ratio": 2.0,
    "both_sides_s": 10.0,
    "both_sides_rss_growth_mib": 500.0,
    "diff_large_s": 1.0,
}


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        both_s, growth = _both_sides(place / "both")
        small = _graph(place / "small", SMALL)
        progress(f"  loading {LARGE} nodes ...")
        large = _graph(place / "large", LARGE)
        merges: dict[int, list[float]] = {SMALL: [], LARGE: []}
        diffs: dict[int, list[float]] = {SMALL: [], LARGE: []}
        for number in range(-2, REPETITIONS):
            for rows, graph in ((SMALL, small), (LARGE, large)):
                merge_s, diff_s = _merge(graph, rows, number)
                if number >= 0:
                    merges[rows].append(merge_s * 1000)
                    diffs[rows].append(diff_s)
    return {
        "merge_small_ms": spread(merges[SMALL]),
        "merge_large_ms": spread(merges[LARGE]),
        "large_to_small_ratio": round(median(merges[LARGE]) / median(merges[SMALL]), 3),
        "diff_small_s": spread(diffs[SMALL]),
        "diff_large_s": spread(diffs[LARGE]),
        "both_sides_s": round(both_s, 3),
        "both_sides_rss_growth_mib": round(growth, 1),
    }


def _merge(graph: omnigraph.Graph, rows: int, number: int) -> tuple[float, float]:
    """Update some random nodes on a branch; how long comparing and merging it take."""
    branch = f"work{number}"
    graph.branches.create(branch)
    chosen = random.Random(number).sample(range(rows), CHANGED)
    graph.load({"Item": _items(chosen, 10 + number)}, mode="merge", branch=branch)
    started = perf_counter()
    found = graph.diff("main", branch).stats
    diffed = perf_counter()
    assert found.counts["node:Item"] == {"update": CHANGED}
    result = graph.merge(branch)
    merged = perf_counter()
    assert result.outcome == "fast_forward"
    graph.branches.delete(branch)
    return merged - diffed, diffed - started


def _both_sides(place: Path) -> tuple[float, float]:
    graph = _graph(place, 4 * BOTH)
    graph.branches.create("work")
    order = list(range(4 * BOTH))
    random.Random(0).shuffle(order)
    graph.load({"Item": _items(order[:BOTH], 1)}, mode="merge", branch="work")
    graph.load({"Item": _items(order[BOTH : 2 * BOTH], 2)}, mode="merge")
    before = _rss_mib()
    started = perf_counter()
    result = graph.merge("work")
    took = perf_counter() - started
    assert result.outcome == "merged"
    return took, _rss_mib() - before


def _graph(place: Path, rows: int) -> omnigraph.Graph:
    graph = omnigraph.init(place, SCHEMA)
    graph.load({"Item": _items(range(rows), 0)}, mode="overwrite", engine="local")
    return graph


def _items(numbers: Any, value: int) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "name": [f"item-{number:08d}" for number in numbers],
            "count": [value * 10 + number for number in numbers],
            "text": [f"text of {number}, version {value}" for number in numbers],
        }
    )


def _rss_mib() -> float:
    """The most memory this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
