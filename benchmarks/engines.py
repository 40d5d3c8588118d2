"""Runs several engines in processes of their own, alternating, so that all of them are measured
under the same load of the machine.

A workload is a module of this package with ``OPEN``: for each engine a function that opens the
data (loading it first if need be) and returns how to call one query. Times are taken inside the
process of the engine, from the call to the last row as a Python value.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

Rows = list[list[Any]]
Params = Mapping[str, Any]
Call = Callable[[str, Params], Rows]
Open = Callable[[Path, Path], Call]
"""From the folder of the source files and the folder of the engine to its queries."""

STOP_S = 300.0


class Engine:
    """One engine in a process of its own."""

    def __init__(self, workload: str, name: str, data: Path, where: Path) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engines", workload, name, str(data), str(where)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        try:
            self._response('{"ready"')
        except RuntimeError:
            self.close()
            raise

    def measure(self, query: str, params: Sequence[Params]) -> list[float]:
        """The time of each call, in ms: the query is called once with each of these parameters."""
        found: list[float] = self._request({"query": query, "params": list(params)})["ms"]
        return found

    def rows(self, query: str, params: Params) -> Rows:
        found: Rows = self._request({"query": query, "params": [params], "rows": True})["rows"]
        return found

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._response('{"ms"')

    def _response(self, start: str) -> dict[str, Any]:
        """The next line that begins with ``start``; engines print other lines, too."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError(f"{self.name} ended without an answer")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=STOP_S)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def graph_call(folder: Path, queries: Mapping[str, str], fill: Callable[[Any], None]) -> Call:
    """The queries of a workload on Omnigraph; the graph is created if it does not exist."""
    import omnigraph

    if not folder.exists():
        schema = queries["schema"]
        graph = omnigraph.init(folder, schema)
        fill(graph)
        graph.maintenance.build_indexes()
    else:
        graph = omnigraph.open(folder)

    def call(name: str, params: Params) -> Rows:
        return graph.query(queries[name], params=params).rows()

    return call


def cypher_call(connection: Any, queries: Mapping[str, str]) -> Call:
    """Prepared statements of Kuzu or Ladybug, whose dialects are the same."""
    ready = {name: connection.prepare(text) for name, text in queries.items()}

    def call(name: str, params: Params) -> Rows:
        rows: Rows = connection.execute(ready[name], dict(params)).get_all()
        return rows

    return call


def serve(workload: str, name: str, data: Path, where: Path) -> None:
    """Answer one request to a line until there are no more."""
    open_: Open = import_module(f"benchmarks.{workload}").OPEN[name]
    call = open_(data, where)
    print(json.dumps({"ready": name}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        query, times, rows = request["query"], [], []
        for params in request["params"]:
            started = perf_counter()
            rows = call(query, params)
            times.append((perf_counter() - started) * 1000)
        body: dict[str, Any] = {"ms": times}
        if request.get("rows"):
            body["rows"] = [list(row.values() if isinstance(row, dict) else row) for row in rows]
        print(json.dumps(body, default=str), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
