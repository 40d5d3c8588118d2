"""Deleting branches: what is removed, what prevents it, and crashes in between."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import files_below, grow_old, people_graph
from tests.support.internals import transaction_of
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    BranchUnmerged,
    InvalidInput,
)
from omnigraph.merge.authorship import MergedHistory
from omnigraph.storage import failpoints


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("Person", {"name": "eve"})
        w.insert("City", {"name": "Rome"})
    return graph


def trees(graph: Graph) -> set[str]:
    """The physical branches that files belong to."""
    files = [path.split("/") for path in files_below(Path(graph.uri))]
    return {parts[parts.index("tree") + 1] for parts in files if "tree" in parts} | {
        parts[-1].removesuffix(".json") for parts in files if parts[-3:-1] == ["_refs", "branches"]
    }


def test_g2_nothing_of_a_deleted_branch_is_left(graph: Graph) -> None:
    assert trees(graph)
    graph.branches.delete("dev", force=True)
    assert graph.branches.list() == ["main"]
    assert trees(graph) == set()
    assert broken_promises(graph.uri) == []


def test_b4_a_recreated_name_is_a_different_branch(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    head = other.snapshot("dev").commit_id
    graph.branches.delete("dev", force=True)
    graph.branches.create("dev")
    assert head not in {commit.commit_id for commit in other.history.commits("dev")}
    with other.write("dev") as w:
        w.insert("Person", {"name": "new"})
    assert "new" in b"".join(graph.export("dev")).decode()


def test_b4_what_others_depend_on_stays(graph: Graph) -> None:
    graph.branches.create("child", "dev")
    with pytest.raises(BranchInUse) as caught:
        graph.branches.delete("dev", force=True)
    assert caught.value.details["descendants"] == ["child"]
    graph.branches.delete("child")
    graph.tags.create("kept", "dev")
    with pytest.raises(BranchInUse) as caught:
        graph.branches.delete("dev", force=True)
    assert caught.value.details["tags"] == ["kept"]
    graph.tags.delete("kept")
    graph.branches.delete("dev", force=True)


def test_a_tag_on_an_inherited_commit_keeps_no_branch(graph: Graph) -> None:
    inherited = graph.history.commits("dev")[-1].commit_id
    graph.tags.create("first", inherited)
    graph.branches.delete("dev", force=True)
    assert graph.diff("first", "main").stats.total > 0


def test_main_and_unknown_branches_cannot_be_deleted(graph: Graph) -> None:
    with pytest.raises(InvalidInput):
        graph.branches.delete("main")
    for _ in range(2):
        with pytest.raises(BranchNotFound):
            graph.branches.delete("ghost")


def test_protection_is_enforced_and_can_be_lifted(graph: Graph) -> None:
    graph.branches.protect("dev", merges_only=True)
    graph.branches.protect("main")
    assert graph.branches.is_protected("dev")
    first = graph.history.commits("dev")[-1].commit_id
    refused: list[Any] = [
        lambda: graph.branches.delete("dev", force=True),
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
    graph.branches.protect("dev", False)
    graph.branches.delete("dev", force=True)


@pytest.mark.parametrize("place", ["branch.after_unregister", "branch.after_forks"])
def test_an_interrupted_deletion_is_in_nobodys_way_and_leaves_files_to_cleanup(
    graph: Graph, place: str
) -> None:
    failpoints.arm(place, "error")
    with contextlib.suppress(failpoints.FailpointError):  # a failure to remove files is a warning
        graph.branches.delete("dev", force=True)
    failpoints.disarm_all()
    assert graph.branches.list() == ["main"]
    assert graph.maintenance.check().findings == []
    left = trees(graph)
    assert left
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("Person", {"name": "again"})
    assert broken_promises(graph.uri) == []
    grow_old(graph)
    graph.maintenance.cleanup(keep=100, confirm=True)
    assert not trees(graph) & left
    assert trees(graph)  # those of the new branch
    assert broken_promises(graph.uri) == []


def test_a_write_to_a_branch_that_goes_away_is_refused(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)

    def write() -> None:
        with other.write("dev") as w:
            w.insert("Person", {"name": "late"})
            graph.branches.delete("dev", force=True)

    with pytest.raises(BranchNotFound):
        write()
    assert broken_promises(graph.uri) == []


def test_a_deleter_leaves_files_alone_while_a_writer_is_under_way(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer has its record; the deletion comes between its look and its first step."""
    other = omnigraph.open(graph.uri)
    transaction = transaction_of(other)
    look = transaction._require_live

    def and_then(branch: Any) -> None:
        look(branch)
        graph.branches.delete("dev", force=True)

    monkeypatch.setattr(transaction, "_require_live", and_then)
    with other.write("dev") as w:
        w.insert("Person", {"name": "late"})
    assert graph.branches.list() == ["main"]
    assert broken_promises(graph.uri) == []


class TestUnmergedCommits:
    def test_a_branch_with_commits_of_its_own_is_refused_and_told_what_goes(
        self, graph: Graph
    ) -> None:
        with graph.write("dev", actor="ann", message="the last word") as w:
            w.insert("Person", {"name": "late"})
        with pytest.raises(BranchUnmerged) as caught:
            graph.branches.delete("dev")

        newest = graph.history.commits("dev", limit=1)[0]
        own = len(graph.history.commits("dev")) - len(graph.history.commits())
        assert caught.value.details == {
            "branch": "dev",
            "unmerged_commits": own,
            "newest_commit_id": newest.commit_id,
            "newest_message": "the last word",
            "newest_actor_id": "ann",
        }
        assert "the last word" in caught.value.message
        assert "dev" in graph.branches.list()

    def test_a_merged_branch_goes_without_force(self, graph: Graph) -> None:
        graph.merge("dev")
        graph.branches.delete("dev")
        assert graph.branches.list() == ["main"]

    def test_a_branch_that_was_merged_into_one_that_was_merged(self, graph: Graph) -> None:
        graph.branches.create("other")
        graph.merge("dev", "other", delete_branch=True)
        with pytest.raises(BranchUnmerged):
            graph.branches.delete("other")
        assert graph.merge("other", delete_branch=True).branch_deleted
        assert graph.branches.list() == ["main"]

    def test_what_came_after_the_merge_counts(self, graph: Graph) -> None:
        graph.merge("dev")
        with graph.write("dev") as w:
            w.insert("Person", {"name": "late"})
        with pytest.raises(BranchUnmerged) as caught:
            graph.branches.delete("dev")
        assert caught.value.details["unmerged_commits"] == 1

    def test_a_merge_that_kept_no_commits_counts_as_one(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(MergedHistory, "rows", lambda *_: ())
        graph.merge("dev")
        graph.branches.delete("dev")
        assert graph.branches.list() == ["main"]
