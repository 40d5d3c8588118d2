"""Graphs of the Rust original are read as they are, at every supported version (ADR 35)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.graphs import files_below
from tests.support.original_graphs import (
    TOLD,
    Told,
    aged,
    by_id,
    exported,
    exported_form,
    lineage,
    parsed,
    pinned,
    relocated,
    stored_rows,
    unpacked,
)

import omnigraph
from omnigraph.errors import CorruptData, FormatUnsupported, TypeNotFound

MUSEUM = Told("museum", "main")


def opened(name: str, where: Path) -> omnigraph.Graph:
    return omnigraph.open(unpacked(name, where), read_only=True)


@pytest.mark.parametrize("told", TOLD, ids=lambda t: f"{t.name}-{t.branch}")
def test_a_branch_exports_what_the_original_exports_though_the_graph_was_moved(
    told: Told, tmp_path: Path
) -> None:
    graph = opened(told.name, tmp_path)
    assert exported(graph, told.branch) == parsed(told.entities, graph, told.branch)


@pytest.mark.parametrize("told", TOLD[:3], ids=lambda t: f"{t.name}-{t.branch}")
def test_commits_and_snapshots_are_those_that_the_original_lists(
    told: Told, tmp_path: Path
) -> None:
    graph = opened(told.name, tmp_path)
    assert lineage(graph, told.branch) == told.commits
    assert pinned(graph, told.branch) == told.snapshot


@pytest.mark.parametrize("told", TOLD, ids=lambda t: f"{t.name}-{t.branch}")
def test_the_state_at_every_commit_is_what_its_table_versions_hold(
    told: Told, tmp_path: Path
) -> None:
    graph = opened(told.name, tmp_path)
    beside = relocated(told.name, tmp_path / "beside")
    for commit in graph.history.commits(told.branch):
        version = commit.manifest_version
        assert version is not None
        branch = commit.branch or "main"
        stored = stored_rows(beside, branch, version)
        schema = graph.schema(at=commit.commit_id)
        assert {kind.key for kind in schema.types()} == stored.keys()
        shown = exported(graph, at=commit.commit_id)
        assert by_id(shown) == {
            row["id"]: exported_form(kind, row)
            for kind in schema.types()
            for row in stored[kind.key]
        }
        at_version = graph.snapshot(branch, version=version)
        for kind in schema.types():
            assert at_version.pins[kind.key].rows == len(stored[kind.key])


def test_nothing_is_written_by_any_reading(tmp_path: Path) -> None:
    graph = opened("museum", tmp_path)
    before = files_below(tmp_path)
    first = graph.history.commits()[-1].commit_id
    assert graph.branches.list() == ["feature/x", "main"]
    assert list(graph.diff(first, "feature/x").changes())
    query = "query q() { match { $c: Curator } return { $c.handle, $c.age } order { $c.handle } }"
    assert [row["c.handle"] for row in graph.query(query, branch="feature/x")] == [
        "ana", "bo", "dï-ø", "eve", "fay",
    ]  # fmt: skip
    graph.history.log()
    graph.maintenance.upgrade()
    assert files_below(tmp_path) == before


def test_writing_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(FormatUnsupported, match="can be read, not written") as refusal:
        omnigraph.open(root)
    assert "omnigraph upgrade --apply" in (refusal.value.remedy or "")
    assert files_below(tmp_path) == before


def test_a_state_before_a_schema_change_has_the_schema_it_had(tmp_path: Path) -> None:
    graph = opened("evolved", tmp_path)
    loaded = graph.history.commits()[-2].commit_id
    older, newer = graph.schema(at=loaded), graph.schema()
    assert "age" in older.nodes["Curator"].properties
    assert "wing" not in older.nodes["Hall"].properties
    renamed = newer.nodes["Curator"].properties["years"]
    assert older.nodes["Curator"].properties["age"].property_id == renamed.property_id
    assert older.nodes["Curator"].key_columns == ("handle",)
    assert "age: I32?" in older.source
    ages = graph.query("query q() { match { $c: Curator } return { $c.age } }", at=loaded)
    assert sorted(row["c.age"] or 0 for row in ages) == [0, 0, 29, 41]
    changed = graph.diff(loaded, "main")
    assert {c.id for c in changed.changes()} == {"zed"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_versions_read_alike(version: int, tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    aged(root, version)
    shutil.move(root, tmp_path / "elsewhere")
    before = files_below(tmp_path)
    graph = omnigraph.open(tmp_path / "elsewhere", read_only=True)
    assert graph.branches.list() == ["feature/x", "main"]
    for told in TOLD[:2]:
        assert lineage(graph, told.branch) == told.commits
        assert exported(graph, told.branch) == parsed(told.entities, graph, told.branch)
    assert graph.snapshot().format == version
    first = MUSEUM.commits[1][0]
    assert len(exported(graph, at=first)) == 12
    assert files_below(tmp_path) == before


def test_a_graph_without_recorded_commits_begins_with_one(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    aged(root, 3, legacy=False)
    graph = omnigraph.open(root, read_only=True)
    assert [c.message for c in graph.history.commits()] == [
        "what was there before commits were recorded"
    ]
    assert exported(graph) == parsed(Told("evolved", "main").entities, graph)


def test_I_3_commits_that_cannot_be_read_are_no_absent_commits(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    aged(root, 3)
    for path in (root / "_graph_commits.lance" / "data").glob("*.lance"):
        path.write_bytes(b"")
    with pytest.raises(CorruptData):
        omnigraph.open(root, read_only=True)


def test_types_are_those_of_the_state(tmp_path: Path) -> None:
    graph = opened("museum", tmp_path)
    with pytest.raises(TypeNotFound):
        graph.snapshot().pin("node:Visitor")
