"""Loads and exports in process beside DuckDB, which does the same work on the same file.

Alternating, in one process after imports. The load: parse, every constraint, one commit; DuckDB
parses the file into tables, runs the same checks as SQL and writes Parquet. The export: NDJSON in
the order of ids; DuckDB copies the same rows to JSON, unordered. And the export of entities with
random ids, beside reading rows in the order of their ids. Ratios are of processor time (user and
system), because wall time depends on what else runs; seconds of both are in the record.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Final

import duckdb
import pyarrow.compute as pc
from tests.support.internals import repository_of

import omnigraph
from benchmarks.record import progress, spread
from benchmarks.writing import SCHEMA
from omnigraph import Graph
from omnigraph.model.cores import cores
from omnigraph.snapshots.export import BATCH_ROWS, encode_rows

NODES: Final = 200_000
EDGES: Final = 2_000_000
RANDOM_EDGES: Final = 300_000
REPETITIONS: Final = 3
WARM_UP: Final = "one load, export and DuckDB run of the same file"
DATA: Final = "200k people and 2M follows as NDJSON (163 MB); 300k follows with random ids"
BARS: Final = {
    "load_vs_duckdb": 1.25,
    "load_peak_rss_mb": 700.0,
    "export_vs_duckdb": 3.0,
}
_COLUMNS: Final = (
    "{type: 'VARCHAR', edge: 'VARCHAR', 'from': 'VARCHAR', 'to': 'VARCHAR', data: "
    "'STRUCT(id VARCHAR, handle VARCHAR, age INTEGER, email VARCHAR, born DATE, since INTEGER)'}"
)
_CHECKS: Final = (
    "select id from person group by id having count(*) > 1",
    "select email from person where email is not null group by email having count(*) > 1",
    "select id from person where age not between 0 and 200",
    "select src from follows anti join person on src = id",
    "select dst from follows anti join person on dst = id",
    "select src from follows group by src having count(*) > 100",
)


def run(*, nodes: int = NODES, edges: int = EDGES, random: int = RANDOM_EDGES) -> dict[str, Any]:
    """All numbers of one run."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        file = folder / "data.jsonl"
        write_people(file, nodes, edges)
        numbers = {**_loads(folder, file), **_random_ids(folder, nodes, random)}
        numbers["load_peak_rss_mb"] = _peak_rss_mb(folder, file)
        return numbers


def write_people(path: Path, nodes: int, edges: int, *, random_ids: bool = False) -> None:
    """People who follow people; ``random_ids`` gives the follows ids in no order."""
    ids = Random(1)
    with path.open("w") as out:
        for i in range(nodes):
            out.write(
                f'{{"type":"Person","data":{{"handle":"p{i}","age":{i % 100},'
                f'"email":"p{i}@x.org","born":"2001-02-{i % 28 + 1:02d}"}}}}\n'
            )
        for i in range(edges):
            own = f'"id":"{ids.getrandbits(96):024x}",' if random_ids else ""
            out.write(
                f'{{"edge":"Follows","from":"p{i % nodes}","to":"p{i * 7 % nodes}",'
                f'"data":{{{own}"since":{i % 30 + 1990}}}}}\n'
            )


class _Times:
    """Processor and wall seconds of repeated calls, by name."""

    def __init__(self) -> None:
        self.cpu: dict[str, list[float]] = {}
        self.wall: dict[str, list[float]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        cpu, wall = _cpu_s(), perf_counter()
        yield
        self.cpu.setdefault(name, []).append(_cpu_s() - cpu)
        self.wall.setdefault(name, []).append(perf_counter() - wall)

    def ratio(self, name: str, base: str) -> dict[str, float]:
        pairs = zip(self.cpu[name][1:], self.cpu[base][1:], strict=True)  # the first is a warm-up
        return spread([own / other for own, other in pairs])

    def seconds(self) -> dict[str, Any]:
        found = {}
        for name in self.cpu:
            found[f"{name}_cpu_seconds"] = spread(self.cpu[name][1:] or self.cpu[name])
            found[f"{name}_seconds"] = spread(self.wall[name][1:] or self.wall[name])
        return found


def _loads(folder: Path, file: Path) -> dict[str, Any]:
    times, graph = _Times(), None
    for number in range(REPETITIONS + 1):
        with times.of("duckdb_load"):
            database = _duckdb_load(folder, file)
        graph = omnigraph.init(folder / f"g{number}", SCHEMA)
        with times.of("load"):
            graph.load(file, mode="append", engine="local", upkeep=False)
        with times.of("duckdb_export"):
            database.execute(f"copy raw to '{folder / 'duckdb.json'}' (format json)")
        with times.of("export"):
            _export(graph, folder / "own.jsonl")
        progress(f"  {number}: " + ", ".join(f"{k} {v[-1]:.2f}" for k, v in times.cpu.items()))
    return {
        "load_vs_duckdb": times.ratio("load", "duckdb_load"),
        "export_vs_duckdb": times.ratio("export", "duckdb_export"),
        **times.seconds(),
    }


def _duckdb_load(folder: Path, file: Path) -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute(f"set threads = {cores()}")
    found.execute(
        f"create table raw as select * from read_json('{file}', "
        f"format = 'newline_delimited', columns = {_COLUMNS})"
    )
    found.execute(
        "create table person as select data.handle as id, data.age as age, data.email as email, "
        "data.born as born from raw where type = 'Person'"
    )
    found.execute(
        'create table follows as select "from" as src, "to" as dst, data.since as since '
        "from raw where edge = 'Follows'"
    )
    for check in _CHECKS:
        assert found.execute(f"select count(*) from ({check})").fetchone() == (0,)
    for name in ("person", "follows"):
        found.execute(f"copy {name} to '{folder / name}.parquet' (format parquet)")
    return found


def _export(graph: Graph, path: Path) -> int:
    with path.open("wb") as out:
        return sum(out.write(chunk) for chunk in graph.export())


def _random_ids(folder: Path, nodes: int, edges: int) -> dict[str, Any]:
    """The export of edges whose ids have no order, beside rows looked up in the order of ids."""
    file = folder / "random.jsonl"
    write_people(file, nodes, edges, random_ids=True)
    graph = omnigraph.init(folder / "random", SCHEMA)
    graph.load(file, mode="append", engine="local", upkeep=False)
    times = _Times()
    for _ in range(2):
        with times.of("random_ids_export"):
            size = sum(map(len, graph.export(types=["Follows"])))
    with times.of("lookups"):
        assert _look_rows_up(graph) == size
    own, other = times.cpu["random_ids_export"][-1], times.cpu["lookups"][-1]
    return {"export_vs_lookups": round(own / other, 4), **times.seconds()}


def _look_rows_up(graph: Graph) -> int:
    """Bytes of the same export, of rows taken in the order of their ids."""
    table = repository_of(graph).tables.open(graph.snapshot().pin("edge:Follows").ref)
    order, size = pc.sort_indices(table.scan(["id"])["id"]), 0
    owner = graph.schema().type("edge:Follows")
    for start in range(0, len(order), BATCH_ROWS):
        rows = table.dataset.take(order[start : start + BATCH_ROWS], columns=table.schema.names)
        size += len(encode_rows(owner, table, rows))
    return size


_LOAD_ALONE: Final = """
import sys
import omnigraph
from benchmarks.writing import SCHEMA
graph = omnigraph.init(sys.argv[1], SCHEMA)
graph.load(sys.argv[2], mode="append", engine="local", upkeep=False)
with open("/proc/self/status") as status:  # getrusage would count the memory of the parent
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))
"""


def _peak_rss_mb(folder: Path, file: Path) -> float:
    """The most memory of a process that does nothing but the load."""
    command = [sys.executable, "-c", _LOAD_ALONE, str(folder / "alone"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def _cpu_s() -> float:
    found = os.times()
    return found.user + found.system
