"""The first queries on 1M nodes and 10M edges, and a cold point query on the command line.

Every measurement is a new process. The graph is that of ``peers`` (``OMNIGRAPH_BENCH_DIR`` keeps
it). The cache folder is empty before the first query and must be empty after it. The command line
is measured relative to importing the libraries it needs, in alternation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.engines import Engine
from benchmarks.folders import bench_folder
from benchmarks.peers import SIZES
from benchmarks.people import GQ, handle, make_files
from benchmarks.record import alternating, spread

DATA: Final = "seeded people: 1M nodes and 10M edges; files in the page cache"
WARM_UP: Final = "one process of each kind, so that modules are compiled"
REPETITIONS: Final = 9
BARS: Final = {
    "point_ms": 25.0,
    "hop1_ms": 25.0,
    "cli_point_to_imports_ratio": 1.5,
    "cache_files": 0,
}
_FIRST: Final = """
import sys, time, omnigraph
graph = omnigraph.open(sys.argv[1], read_only=True)
started = time.perf_counter()
rows = graph.query(sys.argv[2], params={"h": sys.argv[3]}).rows()
print((time.perf_counter() - started) * 1000)
assert rows
"""
_IMPORTS: Final = "import lance, pyarrow.compute, numpy"
_CLI: Final = "import sys; from omnigraph.cli.main import run; sys.argv[0] = 'omnigraph'; run()"


def run() -> dict[str, Any]:
    nodes, edges = SIZES["large"]
    with bench_folder(f"{nodes}-{edges}") as folder, tempfile.TemporaryDirectory() as cache:
        make_files(folder, nodes, edges)
        Engine("people", "omnigraph", folder, folder).close()
        uri = str(folder / "omnigraph")
        environment = {**os.environ, "OMNIGRAPH_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
        numbers = {
            "point_ms": _first(uri, GQ["point"], nodes, environment),
            "hop1_ms": _first(uri, GQ["hop1_out"], nodes, environment),
            **_command_line(uri, nodes, environment),
        }
        made = [path for path in Path(cache).rglob("*") if path.is_file()]
        return {**numbers, "cache_files": len(made)}


def _handles(nodes: int) -> list[str]:
    """Different people: repeated reads of one would hit cached pages."""
    return [handle(at * nodes // (REPETITIONS + 2)) for at in range(1, REPETITIONS + 2)]


def _first(uri: str, query: str, nodes: int, environment: dict[str, str]) -> dict[str, float]:
    found = []
    for at in _handles(nodes):
        command = [sys.executable, "-c", _FIRST, uri, query, at]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        found.append(float(done.stdout))
    return spread(found[1:])


def _command_line(uri: str, nodes: int, environment: dict[str, str]) -> dict[str, Any]:
    handles = iter(_handles(nodes))

    def imports() -> None:
        _run([_IMPORTS], environment)

    def point_query() -> None:
        parameters = json.dumps({"h": next(handles)})
        _run([_CLI, "query", "--uri", uri, "-e", GQ["point"], "--params", parameters], environment)

    queries, alone = alternating([point_query, imports], REPETITIONS, warm_up=1)
    return {
        "cli_point_ms": spread(queries),
        "imports_ms": spread(alone),
        "cli_point_to_imports_ratio": round(median(queries) / median(alone), 3),
    }


def _run(arguments: list[str], environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
