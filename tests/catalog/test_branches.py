"""Branches: cheap to make, isolated both ways, and never mixed up with an older one."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.graphs import files_below, people_graph, repository, rows

from omnigraph.errors import AlreadyExists, BranchExists, BranchNotFound, InvalidInput, RefNotFound


def test_G_1_a_new_branch_shares_everything_until_it_is_written(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("exp/1")
    assert graph.branches.list() == ["exp/1", "main"]
    assert graph.snapshot("exp/1").pins == graph.snapshot().pins
    assert graph.snapshot("exp/1").commit_id == graph.snapshot().commit_id
    tables = [path for path in files_below(tmp_path / "g") if "tree/" in path]
    assert all(path.startswith("__manifest/") for path in tables)


def test_B_3_branches_are_isolated_both_ways(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("exp")
    with graph.write("exp") as w:
        w.insert("Person", {"name": "on exp"})
        w.delete("City", "Oslo")
    with graph.write() as w:
        w.insert("Person", {"name": "on main"})
    assert set(rows(graph, "node:Person")) == {"ana", "bo", "on main"}
    assert set(rows(graph, "node:Person", "exp")) == {"ana", "bo", "on exp"}
    assert set(rows(graph, "node:City")) == {"Oslo"}
    assert rows(graph, "edge:LivesIn", "exp") == {}
    assert len(rows(graph, "edge:LivesIn")) == 1


def test_only_the_written_types_are_forked(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("exp")
    with graph.write("exp") as w:
        w.insert("City", {"name": "Rome"})
    pins = graph.snapshot("exp").pins
    assert pins["node:City"].ref.branch is not None
    assert pins["node:Person"].ref.branch is None
    first = pins["node:City"].ref.branch
    with graph.write("exp") as w:
        w.insert("City", {"name": "Bern"})
    assert graph.snapshot("exp").pins["node:City"].ref.branch == first


def test_a_branch_of_a_branch_sees_its_parents_state(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("one")
    with graph.write("one") as w:
        w.insert("City", {"name": "Rome"})
    graph.branches.create("two", "one")
    with graph.write("two") as w:
        w.insert("City", {"name": "Bern"})
    assert set(rows(graph, "node:City", "two")) == {"Oslo", "Rome", "Bern"}
    assert set(rows(graph, "node:City", "one")) == {"Oslo", "Rome"}
    chain = graph.history.commits("two")
    assert [c.parent for c in chain[:-1]] == [c.commit_id for c in chain[1:]]
    assert [c.branch for c in chain] == ["two", "one", "main", "main", "main"]


def test_a_commit_is_found_on_whichever_branch_has_it(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("exp")
    with graph.write("exp", message="only here") as w:
        w.insert("City", {"name": "Rome"})
    commit = graph.history.commits("exp", limit=1)[0]
    assert graph.history.commit(commit.commit_id).to_json()["graph_branch"] == "exp"


def test_time_travel_works_on_a_branch_across_its_fork(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("exp")
    with graph.write("exp") as w:
        w.insert("City", {"name": "Rome"})
    counts = [
        graph.snapshot("exp", commit=c.commit_id).pins["node:City"].rows
        for c in graph.history.commits("exp")
    ]
    assert counts == [2, 1, 1, 0]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "a b",
        "a//b",
        "/a",
        "a/",
        "..",
        "a/../b",
        "a:b",
        "x" * 300,
        "__schema_apply_lock__",
    ],
)
def test_bad_names_are_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    graph = people_graph(tmp_path / "g")
    with pytest.raises(InvalidInput, match="cannot be a branch name"):
        graph.branches.create(name)


def test_B_1_names_in_use_main_and_path_parts_of_names_are_refused(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("review/1")
    with pytest.raises(AlreadyExists):
        graph.branches.create("main")
    for taken in ("review/1", "review", "review/1/a", " review/1 "):
        with pytest.raises(BranchExists):
            graph.branches.create(taken)
    with pytest.raises(BranchNotFound):
        graph.snapshot("ghost")
    with pytest.raises(RefNotFound):
        graph.branches.create("x", "ghost")


def test_two_creators_of_one_name_have_one_winner(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    from omnigraph.catalog.branches import changes as branching
    from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch

    slow, fast = repository(graph), repository(graph)
    slow.main.current()
    branching.create_branch(fast, "exp")
    late = Branch("exp", "01LATE", "main", None, 1)
    with pytest.raises(BranchExists):
        branching.register_branch(slow, late, MAIN_BRANCH)
    assert slow.branch("exp").incarnation != "01LATE"


def test_a_handle_survives_pickling(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.snapshot() == graph.snapshot()
