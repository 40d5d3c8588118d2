"""Small graphs that many tests start from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.repository import Repository
from omnigraph.storage import failpoints
from omnigraph.storage.locations import parse_location

PEOPLE = """
node Person {
  name: String @key
  age: I32?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""


def people_graph(where: Path | str) -> Graph:
    """Two people who know each other, one of them in a city: three commits."""
    graph = omnigraph.init(where, PEOPLE, actor="tester")
    with graph.write(message="people", actor="tester") as w:
        w.insert("Person", {"name": "ana", "age": 30})
        w.insert("Person", {"name": "bo"})
        w.insert("City", {"name": "Oslo"})
    with graph.write(message="ties") as w:
        w.insert_edge("Knows", "ana", "bo", {"since": 2020})
        w.insert_edge("LivesIn", "ana", "Oslo")
    return graph


def many_types(count: int) -> str:
    """A schema with this many node types, ``T0`` and so on."""
    return "\n".join(f"node T{i} {{ name: String @key\n n: I64? }}" for i in range(count))


def repository(graph: Graph) -> Repository:
    """A second, independent view of a graph's storage."""
    return Repository.open(parse_location(graph.uri))


def rows(graph: Graph, key: str, branch: str = "main") -> dict[str, dict[str, object]]:
    """All rows of a type by id."""
    view = repository(graph)
    pin = view.snapshot(view.branch(branch)).pin(key)
    return {row["id"]: row for row in view.tables.open(pin.ref).scan().to_pylist()}


def die_writing(uri: str, failpoint: str) -> None:
    """Let SIGKILL take a process that inserts the city Rome, at a failpoint."""
    text = (
        "import omnigraph, sys\n"
        "with omnigraph.open(sys.argv[1]).write() as w: w.insert('City', {'name': 'Rome'})"
    )
    environment = {**os.environ, failpoints.ENVIRONMENT: f"{failpoint}=kill"}
    command = [sys.executable, "-c", text, uri]
    assert subprocess.run(command, env=environment, check=False).returncode == -9


def files_below(where: Path) -> dict[str, int]:
    """Every file and its size: what must not change when nothing happened."""
    return {
        str(path.relative_to(where)): path.stat().st_size
        for path in sorted(where.rglob("*"))
        if path.is_file()
    }


def grow_old(graph: Graph, days: float = 8, below: str = "") -> None:
    """Make every file of the graph look as if it had been written days ago."""
    then = time.time() - days * 86_400
    for path in (Path(graph.uri) / below).rglob("*"):
        os.utime(path, (then, then))
