"""Creating and deleting a branch in a graph of one type and in one of a hundred types."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import omnigraph
from benchmarks.record import spread

REPETITIONS: Final = 30
TYPES_MANY: Final = 100
DATA: Final = "graphs of 1 and 100 types with one node each, calls alternating, local disk"
WARM_UP: Final = "3 branches in each graph"
BARS: Final = {
    "one_type_ms": 10.0,
    "hundred_types_ms": 10.0,
    "many_to_one_ratio": 1.5,
    "delete_one_type_ms": 10.0,
    "delete_hundred_types_ms": 10.0,
}


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        one = _graph(Path(directory) / "one", 1)
        many = _graph(Path(directory) / "many", TYPES_MANY)
        times_ms: dict[int, list[float]] = {1: [], TYPES_MANY: []}
        deletes_ms: dict[int, list[float]] = {1: [], TYPES_MANY: []}
        for number in range(-3, REPETITIONS):
            for types, graph in ((1, one), (TYPES_MANY, many)):
                started = perf_counter()
                graph.branches.create(f"branch{number}")
                created = perf_counter()
                graph.branches.delete(f"branch{number}")
                if number >= 0:
                    times_ms[types].append((created - started) * 1000)
                    deletes_ms[types].append((perf_counter() - created) * 1000)
    return {
        "one_type_ms": spread(times_ms[1]),
        "hundred_types_ms": spread(times_ms[TYPES_MANY]),
        "many_to_one_ratio": round(median(times_ms[TYPES_MANY]) / median(times_ms[1]), 3),
        "delete_one_type_ms": spread(deletes_ms[1]),
        "delete_hundred_types_ms": spread(deletes_ms[TYPES_MANY]),
    }


def _graph(place: Path, types: int) -> omnigraph.Graph:
    schema = "\n".join(f"node T{n} {{ name: String @key }}" for n in range(types))
    graph = omnigraph.init(place, schema)
    with graph.write() as w:
        for number in range(types):
            w.insert(f"T{number}", {"name": "first"})
    return graph
