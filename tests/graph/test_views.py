"""Views: one branch, and one state that does not change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graphs import people_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchNotFound, NotFound, ReadOnly

CITIES = "query q() { match { $c: City } return { $c.name as name } order { $c.name } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("dev")
    with graph.branch("dev").write(message="a city") as batch:
        batch.insert("City", {"name": "Rome"})
    graph.tags.create("v1")
    return graph


def test_a_branch_view_reads_and_writes_its_branch(graph: Graph) -> None:
    dev = graph.branch("dev")
    assert [row["name"] for row in dev.query(CITIES).rows()] == ["Oslo", "Rome"]
    assert dev.entity("node:City", "Rome") == graph.entity("node:City", "Rome", "dev")
    assert dev.snapshot() == graph.snapshot("dev")
    assert b"".join(dev.export()) == b"".join(graph.export("dev"))
    assert dev.mutate('query q() { insert City { name: "Lima" } }').commit is not None
    dev.load([{"type": "City", "data": {"name": "Bern"}}], mode="append")
    assert [row["name"] for row in dev.query(CITIES).rows()] == ["Bern", "Lima", "Oslo", "Rome"]
    assert [row["name"] for row in graph.query(CITIES).rows()] == ["Oslo"]
    assert repr(dev) == f"<BranchView 'dev' of {graph.uri!r}>"


def test_a_branch_view_of_a_missing_branch_fails_when_it_is_used(graph: Graph) -> None:
    view = graph.branch("none")
    with pytest.raises(BranchNotFound):
        view.schema()


@pytest.mark.parametrize("ref", ["v1", "main"])
def test_a_snapshot_view_stays_what_it_was(graph: Graph, ref: str) -> None:
    view = graph.at(ref)
    before = b"".join(view.export())
    with graph.write() as batch:
        batch.insert("City", {"name": "Lima"})
        batch.update("Person", "ana", {"age": 99})
    assert [row["name"] for row in view.query(CITIES).rows()] == ["Oslo"]
    assert view.entity("node:Person", "ana")["age"] == 30
    assert b"".join(view.export()) == before
    assert view.schema().source == graph.schema().source
    assert view.commit_id in repr(view)


def test_a_state_that_does_not_exist_has_no_view(graph: Graph) -> None:
    with pytest.raises(NotFound):
        graph.at("v2")


def test_a_handle_for_reading_gives_views_for_reading(graph: Graph) -> None:
    with omnigraph.open(graph.uri, read_only=True) as reader, pytest.raises(ReadOnly):
        reader.branch("dev").mutate('query q() { insert City { name: "Lima" } }')
