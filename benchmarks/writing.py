"""How fast writing is: one insert, a hundred, a load with all checks, and the cost of stored rows.

``run()`` measures and returns numbers; nothing is printed or written here. Times are medians, with
the fastest and slowest beside them; processor time is given too, because it says more on a machine
that is shared.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

import pyarrow as pa

import omnigraph
from omnigraph.graph import Graph

SCHEMA: Final = """
node Person {
  handle: String @key
  age: I32?
  email: String? @unique
  born: Date?
  @range(age, 0..200)
}
edge Follows: Person -> Person @card(0..100) { since: I32? }
"""
INSERT: Final = "query q($h: String, $e: String) { insert Person { handle: $h, email: $e } }"
NODES: Final = 100_000
EDGES: Final = 400_000
STORED: Final = (10_000, 1_000_000)


def run(*, inserts: int = 60, nodes: int = NODES, edges: int = EDGES) -> dict[str, Any]:
    """All numbers of one run."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        return {
            "single_insert": _inserts(omnigraph.init(folder / "one", SCHEMA), inserts),
            "hundred_inserts": _hundred(omnigraph.init(folder / "many", SCHEMA)),
            "load": _load(omnigraph.init(folder / "load", SCHEMA), folder, nodes, edges),
            "insert_by_stored_rows": {
                str(rows): _inserts(_filled(folder / f"stored-{rows}", rows), inserts)
                for rows in STORED
            },
        }


def _timed(times: int, act: Callable[[int], Any]) -> dict[str, float]:
    wall, processor = [], []
    for number in range(times):
        started, used = perf_counter(), process_time()
        act(number)
        wall.append((perf_counter() - started) * 1_000)
        processor.append((process_time() - used) * 1_000)
    return {
        "median_ms": median(wall),
        "fastest_ms": min(wall),
        "slowest_ms": max(wall),
        "median_processor_ms": median(processor),
    }


def _inserts(graph: Graph, times: int) -> dict[str, float]:
    graph.mutate(INSERT, params={"h": "warm", "e": "warm"})
    return _timed(times, lambda i: graph.mutate(INSERT, params={"h": f"x{i}", "e": f"y{i}"}))


def _hundred(graph: Graph) -> dict[str, float]:
    def act(number: int) -> None:
        rows = (f'insert Person {{ handle: "{number}-{i}" }}' for i in range(100))
        graph.mutate(f"query q() {{ {' '.join(rows)} }}")

    act(-1)
    return _timed(10, act)


def _filled(where: Path, rows: int) -> Graph:
    graph = omnigraph.init(where, SCHEMA)
    handles = [f"p{i}" for i in range(rows)]
    table = pa.table({"handle": handles, "email": [f"{handle}@x" for handle in handles]})
    graph.load({"Person": table}, mode="append")
    return graph


def _load(graph: Graph, folder: Path, nodes: int, edges: int) -> dict[str, float]:
    file = folder / "data.jsonl"
    with file.open("w") as out:
        for i in range(nodes):
            out.write(
                f'{{"type":"Person","data":{{"handle":"p{i}","age":{i % 100},'
                f'"email":"p{i}@x.org","born":"2001-02-{i % 28 + 1:02d}"}}}}\n'
            )
        for i in range(edges):
            out.write(
                f'{{"edge":"Follows","from":"p{i % nodes}","to":"p{i * 7 % nodes}",'
                f'"data":{{"since":{i % 30 + 1990}}}}}\n'
            )
    started, used = perf_counter(), process_time()
    graph.load(file, mode="append", upkeep=False)
    seconds, processor = perf_counter() - started, process_time() - used
    return {
        "rows": nodes + edges,
        "rows_per_second": (nodes + edges) / seconds,
        "rows_per_processor_second": (nodes + edges) / processor,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
    }
