"""How fast a validated load on Spark is, beside Spark's own unvalidated one of the same file.

In one warm session, alternating: ``read.json`` to Parquet, which checks nothing, and a load with
every constraint as one commit, into an empty graph and into one that holds as many rows already.
Then an export of what was loaded, and a merge of a million rows into five million. Upkeep (indexes)
is measured apart: it is a write of its own, after the commit. With ``OMNIGRAPH_BENCH_LARGE=1`` ten
million nodes and fifty million edges are loaded as well, in one commit (some 8 GB of disk).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import psutil
from tests.support.internals import context_of

import omnigraph
from benchmarks.record import progress, spread
from benchmarks.writing import SCHEMA
from omnigraph import Graph
from omnigraph.spark.session.spark_session import session, stop

NODES: Final = 1_000_000
EDGES: Final = 4_000_000
STORED: Final = 5_000_000
REPETITIONS: Final = 3
WARM_UP: Final = "one load and one native job of the same file"
DATA: Final = "1M people and 4M follows as NDJSON (390 MB); 5M people for the merge"
LARGE: Final = os.environ.get("OMNIGRAPH_BENCH_LARGE", "") not in ("", "0")
LARGE_FACTOR: Final = 10  # ten times the nodes, and a little more than ten times the edges
LARGE_EDGES: Final = 50_000_000
BARS: Final = {
    "load_vs_native": 1.5,
    "load_into_filled_vs_native": 2.0,
    "peak_rss_mb": 4_096.0,
    "export_seconds_per_million": 1_000_000 / 300_000,  # 300,000 rows per second or more
    "upsert_seconds": 15.0,
    **({"large_time_per_row_vs_small": 1.3, "large_peak_rss_mb": 8_192.0} if LARGE else {}),
}
PLAIN: Final = "node Person { handle: String @key  age: I32?  email: String?  born: Date? }"
UNION: Final = (
    "type string, edge string, `from` string, `to` string, "
    "data struct<handle:string,age:int,email:string,born:date,since:int>"
)
SAMPLE_S: Final = 0.2  # how often memory is looked at


def run(*, nodes: int = NODES, edges: int = EDGES, stored: int = STORED) -> dict[str, Any]:
    """All numbers of one run."""
    with tempfile.TemporaryDirectory() as where:
        bench = _Bench(Path(where), nodes, edges)
        try:
            found = {**bench.loads(), **bench.upsert(stored, nodes)}
            if LARGE:
                small = found["load_seconds"]["median"] / (nodes + edges)
                found |= bench.large(nodes * LARGE_FACTOR, LARGE_EDGES, small)
            return found
        finally:
            stop()


class _Bench:
    def __init__(self, folder: Path, nodes: int, edges: int) -> None:
        self._folder = folder
        self._file = _write(folder / "data.jsonl", "p", "p", nodes, edges)
        self._more = _write(folder / "more.jsonl", "q", "p", nodes, edges)
        self._spark = session()
        self._made = 0

    def loads(self) -> dict[str, Any]:
        native: list[float] = []
        empty: list[float] = []
        filled: list[float] = []
        upkeep: list[float] = []
        export: list[float] = []
        peak = 0.0
        for number in range(REPETITIONS + 1):  # the first is the warm-up
            native.append(_timed(self._native))
            graph = self._graph(SCHEMA)
            with _peak_rss_mb() as seen:
                empty.append(_timed(lambda graph=graph: self._load(graph, self._file)))
            upkeep.append(_timed(lambda graph=graph: self._tend(graph)))
            filled.append(_timed(lambda graph=graph: self._load(graph, self._more)))
            export.append(self._exported(graph))
            peak = max(peak, *seen)
            shutil.rmtree(graph.uri)
            progress(
                f"  {number}: native {native[-1]:.1f} s, load {empty[-1]:.1f} s, into filled "
                f"{filled[-1]:.1f} s, indexes {upkeep[-1]:.1f} s, export {export[-1]:.2f} s per "
                f"million, load average {os.getloadavg()[0]:.1f}"
            )
        pairs = list(zip(native, empty, filled, strict=True))[1:]
        return {
            "load_vs_native": spread([load / base for base, load, _ in pairs]),
            "load_into_filled_vs_native": spread([load / base for base, _, load in pairs]),
            "native_seconds": spread(native[1:]),
            "load_seconds": spread(empty[1:]),
            "load_into_filled_seconds": spread(filled[1:]),
            "indexes_seconds": spread(upkeep[1:]),
            "export_seconds_per_million": spread(export[1:]),
            "peak_rss_mb": peak,
            "load_average_after": round(os.getloadavg()[0], 1),
        }

    def upsert(self, stored: int, rows: int) -> dict[str, Any]:
        graph = self._graph(PLAIN)
        frame = self._spark.range(stored).selectExpr(
            "concat('p', id) as handle", "cast(id % 100 as int) as age", "concat('e', id) as email"
        )
        graph.load({"Person": frame}, mode="append", upkeep=False)
        file = _write(self._folder / "upsert.jsonl", "p", "p", rows, 0, stored - rows // 2)
        took = [_timed(lambda: self._load(graph, file, "merge")) for _ in range(2)]
        progress(f"  merge of {rows} rows into {stored}: {took}")
        assert graph.snapshot().pin("node:Person").rows == stored + rows - rows // 2
        return {"upsert_seconds": took[-1], "upsert_seconds_cold": took[0]}

    def large(self, nodes: int, edges: int, small_seconds_per_row: float) -> dict[str, Any]:
        """Many more rows in one commit; what a row costs, beside the small run."""
        file = _write(self._folder / "large.jsonl", "p", "p", nodes, edges)
        graph = self._graph(SCHEMA)
        with _peak_rss_mb() as seen:
            took = _timed(lambda: self._load(graph, file))
        progress(f"  {nodes} nodes and {edges} edges: {took:.0f} s, {max(seen):.0f} MB")
        assert graph.snapshot().pin("edge:Follows").rows == edges
        per_row = took / (nodes + edges)
        return {
            "large_seconds": took,
            "large_time_per_row_vs_small": per_row / small_seconds_per_row,
            "large_peak_rss_mb": max(seen),
        }

    def _exported(self, graph: Graph) -> float:
        """Seconds per million rows of an export as NDJSON."""
        target = self._folder / "exported"
        rows = sum(pin.rows for pin in graph.snapshot().pins.values())
        took = _timed(lambda: graph.spark.export(target))
        shutil.rmtree(target)
        return took / rows * 1_000_000

    def _graph(self, schema: str) -> Graph:
        self._made += 1
        return omnigraph.init(self._folder / f"g{self._made}", schema)

    def _native(self) -> None:
        frame = self._spark.read.schema(UNION).json(str(self._file))
        frame.write.mode("overwrite").parquet(str(self._folder / "native"))

    def _load(self, graph: Graph, file: Path, mode: Any = "append") -> None:
        graph.load(file, mode=mode, engine="spark", upkeep=False)

    def _tend(self, graph: Graph) -> None:
        context_of(graph).run_upkeep("main", {"node:Person": NODES, "edge:Follows": EDGES})


def _timed(act: Callable[[], Any]) -> float:
    started = perf_counter()
    act()
    return perf_counter() - started


@contextmanager
def _peak_rss_mb() -> Iterator[list[float]]:
    """The most memory that this process and everything it started held at once."""
    seen: list[float] = [0.0]
    over = threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(SAMPLE_S):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue  # it ended
            seen.append(total / 2**20)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _write(path: Path, own: str, other: str, nodes: int, edges: int, first: int = 0) -> Path:
    """People called ``own``…, who follow people called ``other``…."""
    with path.open("w") as out:
        for i in range(first, first + nodes):
            out.write(
                f'{{"type":"Person","data":{{"handle":"{own}{i}","age":{i % 100},'
                f'"email":"{own}{i}@x.org","born":"2001-02-{i % 28 + 1:02d}"}}}}\n'
            )
        for i in range(edges):
            out.write(
                f'{{"edge":"Follows","from":"{own}{i % nodes}","to":"{other}{i * 7 % nodes}",'
                f'"data":{{"since":{i % 30 + 1990}}}}}\n'
            )
    return path
