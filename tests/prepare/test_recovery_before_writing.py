"""R-9: unfinished writes of dead processes are resolved before a write reads the schema.

A schema change whose process died after it moved its tables is rolled forward by the next write.
That write must already see the new schema, also on a handle that was opened before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.inline_tasks import InlineTasks, bulk_graph
from tests.support.internals import backend_of, graph_on
from tests.support.promises import Expected, broken_promises, pending_operations

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.assign import AssignedProperties, PropertyAssignment
from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.bulk.load.partitions import to_ipc
from omnigraph.catalog.repository import Repository
from omnigraph.model.requests import CommitOptions
from omnigraph.storage import failpoints
from omnigraph.storage.locations import parse_location

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person\n"
WIDER = (
    "node Person { name: String @key\n age: I32?\n rank: F64?\n photo: Blob? }\n"
    "node City { name: String @key }\nedge Knows: Person -> Person\n"
)
APPLY = """
import omnigraph, sys
omnigraph.open(sys.argv[1]).apply_schema(sys.argv[3], branch=sys.argv[2], actor="dead")
"""
TOWN = [{"type": "City", "data": {"name": "Oslo"}}]


def make(where: Path) -> Graph:
    made = omnigraph.init(where, SCHEMA)
    with made.write() as w:
        w.insert("Person", {"name": "ana"})
    return made


def die_applying(graph: Graph, branch: str = "main") -> str:
    """Kill a process that changes the schema when every table has moved; its operation."""
    environment = {**os.environ, failpoints.ENVIRONMENT: "publish.before_commit=kill"}
    command = [sys.executable, "-c", APPLY, graph.uri, branch, WIDER]
    assert subprocess.run(command, env=environment, check=False).returncode == -9
    (operation,) = pending_operations(graph.uri)
    return operation


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph as the dead process left it."""
    place = tmp_path_factory.mktemp("left") / "g"
    die_applying(make(place))
    return place


@pytest.fixture
def graph(left: Path, tmp_path: Path) -> Graph:
    """A handle on it that resolved nothing when it was opened."""
    shutil.copytree(left, tmp_path / "g")
    return graph_on(Repository.open(parse_location(tmp_path / "g")))


def by_batch(graph: Graph, branch: str) -> None:
    with graph.write(branch) as w:
        w.insert("City", {"name": "Oslo"})


def by_load(graph: Graph, branch: str) -> None:
    graph.load(TOWN, mode="append", branch=branch)


def by_table(graph: Graph, branch: str) -> None:
    graph.load(pa.table({"name": ["Oslo"]}), mode="merge", type="City", branch=branch)


def by_bulk_load(graph: Graph, branch: str) -> None:
    data = b'{"type": "City", "data": {"name": "Oslo"}}\n'
    bulk_graph(graph).load(data, mode="append", branch=branch)


def by_mutation(graph: Graph, branch: str) -> None:
    graph.mutate('query q() { insert City { name: "Oslo" } }', branch=branch)


def by_assignment(graph: Graph, branch: str) -> None:
    """What an analysis writes back, and what ``embed`` does."""
    data = to_ipc(pa.table({"id": ["ana"], "rank": [0.5]}))
    part = InputPart(0, "<ranks>", None, data, "arrow", "node:Person", len(data))
    assignment = PropertyAssignment({"node:Person": AssignedProperties(("rank",))}, (part,))
    bulk = backend_of(graph).bulk
    bulk.assign(InlineTasks(), assignment, branch, "analyze", {}, CommitOptions())


def by_blob(graph: Graph, branch: str) -> None:
    with graph.write(branch) as w:
        w.update("Person", "ana", {"photo": "base64:aGk="})


def by_schema(graph: Graph, branch: str) -> None:
    graph.apply_schema(WIDER + "node Town { name: String @key }\n", branch=branch)


def by_merge(graph: Graph, branch: str) -> None:
    graph.merge("ahead", branch)


def by_revert(graph: Graph, branch: str) -> None:
    graph.revert(graph.history.commits(branch, limit=1)[0].commit_id, branch)


def by_upkeep(graph: Graph, branch: str) -> None:
    graph.maintenance.optimize(branch)


def by_indexes(graph: Graph, branch: str) -> None:
    graph.maintenance.build_indexes(branch)


def by_reset(graph: Graph, branch: str) -> None:
    graph.reset(graph.history.commits(branch)[-1].commit_id, branch)


WRITES: list[Callable[[Graph, str], None]] = [
    by_batch,
    by_load,
    by_table,
    by_bulk_load,
    by_mutation,
    by_assignment,
    by_blob,
    by_schema,
    by_revert,
    by_upkeep,
    by_indexes,
    by_reset,
]


def require_healed(graph: Graph, branch: str, operation: str) -> None:
    assert pending_operations(graph.uri) == set()
    assert operation in {commit.commit_id for commit in graph.history.commits(branch)}
    assert not broken_promises(graph.uri, Expected(recovered=frozenset({operation})))
    assert graph.maintenance.check().findings == []


@pytest.mark.parametrize("write", WRITES)
def test_R_9_a_write_sees_the_schema_that_it_finished(
    graph: Graph, write: Callable[[Graph, str], None]
) -> None:
    (operation,) = pending_operations(graph.uri)
    write(graph, "main")
    assert write is by_reset or "City" in graph.schema().nodes
    require_healed(graph, "main", operation)


@pytest.mark.parametrize("write", [by_batch, by_bulk_load, by_merge])
def test_R_9_so_does_a_write_to_another_branch(
    tmp_path: Path, write: Callable[[Graph, str], None]
) -> None:
    graph = make(tmp_path / "g")
    graph.branches.create("side")
    with graph.write("side") as w:
        w.insert("Person", {"name": "bo"})
    graph.branches.create("ahead", "side")
    with graph.write("ahead") as w:
        w.insert("Person", {"name": "cy"})
    operation = die_applying(graph, "side")
    write(graph, "side")
    assert "City" in graph.schema("side").nodes
    assert "City" not in graph.schema("main").nodes
    require_healed(graph, "side", operation)


@pytest.mark.parametrize("bulk", [False, True])
def test_R_9_a_load_into_a_new_branch_heals_the_one_it_comes_from(graph: Graph, bulk: bool) -> None:
    handle: Any = bulk_graph(graph) if bulk else graph
    data = b'{"type": "City", "data": {"name": "Oslo"}}\n'
    handle.load(data, mode="append", branch="new", from_="main")
    assert "City" in graph.schema("new").nodes
    assert pending_operations(graph.uri) == set()


def test_R_9_a_write_that_is_refused_has_healed_all_the_same(graph: Graph) -> None:
    with pytest.raises(omnigraph.errors.OmnigraphError):
        graph.load([{"type": "Nowhere", "data": {}}], mode="append")
    assert pending_operations(graph.uri) == set()
    assert "City" in graph.schema().nodes
