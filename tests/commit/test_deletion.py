"""Deleting branches: what it takes along, what keeps it from happening, and what it survives."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph, repository

import omnigraph
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    InvalidInput,
)
from omnigraph.graph import Graph
from omnigraph.manifest.branches import deleting_branches
from omnigraph.storage import failpoints
from omnigraph.testing.promises import broken_promises


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    graph.create_branch("dev")
    with graph.write("dev") as w:
        w.insert("Person", {"name": "eve"})
        w.insert("City", {"name": "Rome"})
    return graph


def trees(graph: Graph) -> set[str]:
    return {path.name for path in Path(graph.uri).glob("**/tree/*")} | {
        path.stem for path in Path(graph.uri).glob("**/_refs/branches/*.json")
    }


def test_g2_nothing_of_a_deleted_branch_is_left(graph: Graph) -> None:
    assert trees(graph)
    graph.delete_branch("dev")
    assert graph.branches() == ["main"]
    assert trees(graph) == set()
    assert broken_promises(graph.uri) == []


def test_b4_a_recreated_name_is_a_different_branch(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    head = other.snapshot("dev").commit_id
    graph.delete_branch("dev")
    graph.create_branch("dev")
    assert head not in {commit.commit_id for commit in other.commits("dev")}
    with other.write("dev") as w:
        w.insert("Person", {"name": "new"})
    assert "new" in b"".join(graph.export("dev")).decode()


def test_b4_what_others_depend_on_stays(graph: Graph) -> None:
    graph.create_branch("child", "dev")
    with pytest.raises(BranchInUse) as caught:
        graph.delete_branch("dev")
    assert caught.value.details["descendants"] == ["child"]
    graph.delete_branch("child")
    graph.tag("kept", "dev")
    with pytest.raises(BranchInUse) as caught:
        graph.delete_branch("dev")
    assert caught.value.details["tags"] == ["kept"]
    graph.delete_tag("kept")
    graph.delete_branch("dev")


def test_a_tag_on_an_inherited_commit_keeps_no_branch(graph: Graph) -> None:
    inherited = graph.commits("dev")[-1].commit_id
    graph.tag("first", inherited)
    graph.delete_branch("dev")
    assert graph.diff("first", "main").stats.total > 0


def test_main_and_unknown_branches_cannot_be_deleted(graph: Graph) -> None:
    with pytest.raises(InvalidInput):
        graph.delete_branch("main")
    for _ in range(2):
        with pytest.raises(BranchNotFound):
            graph.delete_branch("ghost")


def test_protection_is_enforced_and_can_be_lifted(graph: Graph) -> None:
    graph.protect_branch("dev", merges_only=True)
    graph.protect_branch("main")
    assert graph.is_protected("dev")
    first = graph.commits("dev")[-1].commit_id
    refused: list[Any] = [
        lambda: graph.delete_branch("dev"),
        lambda: graph.reset(first, "dev"),
        lambda: graph.reset(first, "main"),
        lambda: graph.mutate('query q() { insert City { name: "x" } }', branch="dev"),
    ]
    for call in refused:
        with pytest.raises(BranchProtected):
            call()
    with graph.write() as w:
        w.insert("City", {"name": "Bonn"})
    assert graph.merge("main", "dev").outcome == "merged"
    graph.protect_branch("dev", False)
    graph.delete_branch("dev")


@pytest.mark.parametrize("place", ["branch.after_mark", "branch.after_forks", "branch.after_files"])
@pytest.mark.parametrize("heal", ["open", "create", "delete"])
def test_an_interrupted_deletion_is_gone_at_once_and_finished_later(
    graph: Graph, place: str, heal: str
) -> None:
    failpoints.arm(place, "error")
    with contextlib.suppress(failpoints.FailpointError):
        graph.delete_branch("dev")
    failpoints.disarm_all()
    assert graph.branches() == ["main"]
    if heal == "open":
        omnigraph.open(graph.uri)
    elif heal == "create":
        graph.create_branch("dev")
        with graph.write("dev") as w:
            w.insert("Person", {"name": "again"})
        graph.delete_branch("dev")
    else:
        graph.create_branch("other")
        graph.delete_branch("other")
    assert deleting_branches(repository(graph).main.current()) == []
    assert broken_promises(graph.uri) == []


def test_a_write_to_a_branch_that_goes_away_is_refused(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)

    def write() -> None:
        with other.write("dev") as w:
            w.insert("Person", {"name": "late"})
            graph.delete_branch("dev")

    with pytest.raises(BranchNotFound):
        write()
    assert broken_promises(graph.uri) == []


def test_a_deleter_leaves_files_alone_while_a_writer_is_under_way(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer has its record; the deletion comes between its look and its first step."""
    other = omnigraph.open(graph.uri)
    transaction = other._transaction
    look = transaction._require_live

    def and_then(branch: Any) -> None:
        look(branch)
        graph.delete_branch("dev")

    monkeypatch.setattr(transaction, "_require_live", and_then)
    with other.write("dev") as w:
        w.insert("Person", {"name": "late"})
    assert graph.branches() == ["main"]
    assert broken_promises(graph.uri) == []
