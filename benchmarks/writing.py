"""How fast writing is: one insert, a hundred, a load with all checks, and the cost of stored rows.

The load runs in a process of its own, so that its peak memory is its own. Mutations of the small
and the large graph alternate, so that both run under the same load.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

import omnigraph
from benchmarks.record import progress, spread
from omnigraph import Graph

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
UPDATE: Final = """
query q($h: String, $e: String) { update Person set { email: $e } where handle = $h }
"""
DELETE: Final = "query q($h: String) { delete Person where handle = $h }"
NODES: Final = 100_000
EDGES: Final = 400_000
STORED: Final = (10_000, 5_000_000)
REPETITIONS: Final = 60
LOADS: Final = 3
DATA: Final = (
    f"Person with a key and a @unique string; a load of {NODES} nodes and {EDGES} edges as NDJSON; "
    f"inserts, updates and deletions of one among {STORED[0]} and {STORED[1]} stored rows"
)
BARS: Final = {
    "single_insert_ms": 30.0,
    "hundred_to_single_ratio": 3.0,
    "load_us_per_row": 1e6 / 150_000,
    "load_peak_rss_mb": 1_500.0,
    "large_to_small_ratio_of_insert": 1.5,
    "large_to_small_ratio_of_update": 1.5,
    "large_to_small_ratio_of_delete": 1.5,
}


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        one, many = omnigraph.init(folder / "one", SCHEMA), omnigraph.init(folder / "many", SCHEMA)
        single = _milliseconds(lambda n: _insert(one, n))
        hundred = _milliseconds(lambda n: _insert_hundred(many, n))
        loads = [_load_apart(folder / f"load{n}") for n in range(LOADS)]
        progress(f"  filling a graph with {STORED[1]} rows")
        graphs = {rows: _filled(folder / f"stored{rows}", rows) for rows in STORED}
        flatness = _flatness(graphs)
    return {
        "single_insert_ms": spread(single),
        "hundred_inserts_ms": spread(hundred),
        "hundred_to_single_ratio": round(median(hundred) / median(single), 3),
        "load_us_per_row": spread([load["us_per_row"] for load in loads]),
        "load_processor_us_per_row": spread([load["processor_us_per_row"] for load in loads]),
        "load_peak_rss_mb": max(load["peak_rss_mb"] for load in loads),
        **flatness,
    }


def _flatness(graphs: dict[int, Graph]) -> dict[str, Any]:
    """Each kind of mutation in the graphs of all sizes, alternating."""
    found: dict[str, Any] = {}
    for kind, act in (("insert", _insert), ("update", _update), ("delete", _delete)):
        times: dict[int, list[float]] = {rows: [] for rows in graphs}
        for n in range(-1, REPETITIONS):
            for rows, graph in graphs.items():
                took = _millisecond(partial(act, graph, n, rows))
                if n >= 0:
                    times[rows].append(took)
        for rows in STORED:
            found[f"{kind}_among_{rows}_ms"] = spread(times[rows])
        ratio = median(times[STORED[1]]) / median(times[STORED[0]])
        found[f"large_to_small_ratio_of_{kind}"] = round(ratio, 3)
    return found


def _milliseconds(act: Callable[[int], Any]) -> list[float]:
    act(-1)
    return [_millisecond(partial(act, n)) for n in range(REPETITIONS)]


def _millisecond(act: Callable[[], Any]) -> float:
    started = perf_counter()
    act()
    return (perf_counter() - started) * 1_000


def _insert(graph: Graph, number: int, _stored: int = 0) -> None:
    graph.mutate(INSERT, params={"h": f"x{number}", "e": f"y{number}"})


def _update(graph: Graph, number: int, stored: int) -> None:
    params = {"h": _spread_out(number, stored), "e": f"z{number}"}
    assert graph.mutate(UPDATE, params=params).affected_nodes == 1


def _delete(graph: Graph, number: int, stored: int) -> None:
    params = {"h": _spread_out(number, stored)}
    assert graph.mutate(DELETE, params=params).affected_nodes == 1


def _spread_out(number: int, stored: int) -> str:
    """One handle per repetition, from all over the stored rows."""
    return f"p{(number + 1) * (stored // (REPETITIONS + 1))}"


def _insert_hundred(graph: Graph, number: int) -> None:
    rows = (f'insert Person {{ handle: "{number}-{i}" }}' for i in range(100))
    graph.mutate(f"query q() {{ {' '.join(rows)} }}")


def _filled(where: Path, rows: int) -> Graph:
    graph = omnigraph.init(where, SCHEMA)
    handles = [f"p{i}" for i in range(rows)]
    table = pa.table({"handle": handles, "email": [f"{handle}@x" for handle in handles]})
    graph.load({"Person": table}, mode="append", engine="local")
    return graph


def _load_apart(folder: Path) -> dict[str, float]:
    folder.mkdir()
    _write_records(folder / "data.jsonl")
    command = [sys.executable, "-m", "benchmarks.writing", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _write_records(file: Path) -> None:
    with file.open("w") as out:
        for i in range(NODES):
            out.write(
                f'{{"type":"Person","data":{{"handle":"p{i}","age":{i % 100},'
                f'"email":"p{i}@x.org","born":"2001-02-{i % 28 + 1:02d}"}}}}\n'
            )
        for i in range(EDGES):
            out.write(
                f'{{"edge":"Follows","from":"p{i % NODES}","to":"p{i * 7 % NODES}",'
                f'"data":{{"since":{i % 30 + 1990}}}}}\n'
            )


def _load(folder: Path) -> dict[str, float]:
    graph = omnigraph.init(folder / "graph", SCHEMA)
    used = resource.getrusage(resource.RUSAGE_SELF)
    started = perf_counter()
    graph.load(folder / "data.jsonl", mode="append", upkeep=False, engine="local")
    seconds = perf_counter() - started
    now = resource.getrusage(resource.RUSAGE_SELF)
    processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    rows = NODES + EDGES
    return {
        "us_per_row": seconds * 1e6 / rows,
        "processor_us_per_row": processor * 1e6 / rows,
        "peak_rss_mb": now.ru_maxrss / 1_024,
    }


if __name__ == "__main__":
    print(json.dumps(_load(Path(sys.argv[1]))))
