"""Tags: names for commits that stay where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graphs import people_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchExists, InvalidInput, RefNotFound, TagExists, TagNotFound


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


def test_a_tag_stays_when_its_branch_moves_on(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    tag = graph.tags.create("v1", actor="me", message="first")
    with graph.write() as w:
        w.insert("Person", {"name": "new"})

    (found,) = omnigraph.open(graph.uri, read_only=True).tags.list()

    assert found == tag
    assert (found.commit_id, found.actor, found.message) == (head, "me", "first")
    assert [c.id for c in graph.diff("v1", "main")] == ["new"]
    ask = "query q() { match { $p: Person } return { $p.name } }"
    assert [len(graph.query(ask, at=at)) for at in ("v1", None)] == [2, 3]


def test_a_tag_moves_only_by_force(graph: Graph) -> None:
    first = graph.history.commits()[-1].commit_id
    graph.tags.create("v1")
    with pytest.raises(TagExists):
        graph.tags.create("v1", first)
    assert graph.tags.create("v1", first, force=True).commit_id == first
    assert [tag.commit_id for tag in graph.tags.list()] == [first]


def test_tags_name_commits_tags_and_branches(graph: Graph) -> None:
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("Person", {"name": "new"})
    of_branch = graph.tags.create("a", "dev")
    assert of_branch.commit_id == graph.snapshot("dev").commit_id
    assert graph.tags.create("b", "a").commit_id == of_branch.commit_id
    graph.branches.create("again", "tag:b")
    assert graph.snapshot("again").commit_id == of_branch.commit_id


def test_names_that_cannot_be_are_refused(graph: Graph) -> None:
    graph.branches.create("dev")
    graph.tags.create("v1")
    for name in ("", " ", "a b", "a//b", "..", "x" * 300):
        with pytest.raises(InvalidInput):
            graph.tags.create(name)
    with pytest.raises(TagExists):
        graph.tags.create("dev")
    with pytest.raises(BranchExists):
        graph.branches.create("v1")
    with pytest.raises(RefNotFound):
        graph.tags.create("v2", "nowhere")
    with pytest.raises(TagNotFound):
        graph.tags.delete("nowhere")
    with pytest.raises(TagNotFound):
        graph.branches.create("x", "tag:nowhere")


def test_two_who_make_one_tag_have_one_winner(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    other.tags.list()
    graph.tags.create("v1")
    with pytest.raises(TagExists):
        other.tags.create("v1")
