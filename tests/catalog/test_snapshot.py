"""Snapshots and time travel: one commit at a time, now or then."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.graphs import PEOPLE, people_graph, repository

import omnigraph
from omnigraph.errors import CommitNotFound, EntityNotFound, InvalidInput, NotFound, TypeNotFound


def test_a_snapshot_has_the_wire_form(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    body = graph.snapshot().to_json()
    assert body["graph_branch"] == "main"
    assert body["graph_manifest_version"] == 3
    assert body["internal_schema_version"] == 4
    person = body["datasets"][-1]
    assert person == {
        "entity_kind": "node",
        "type_name": "Person",
        "dataset_path": "nodes/40d76f1f51639ec0",
        "published_dataset_version": 2,
        "native_dataset_branch": None,
        "entity_count": 2,
    }


def test_D_7_a_warm_handle_on_an_unchanged_graph_does_not_scan(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    view = repository(graph)
    view.main.current()
    counters = view.tables.counters
    scans, opens, probes = counters.scans, counters.opens, counters.probes
    for _ in range(5):
        view.snapshot(view.branch("main"))
    assert (counters.scans, counters.opens) == (scans, opens)
    assert counters.probes == probes + 5


def test_a_stale_handle_reads_only_what_changed(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    view = repository(graph)
    view.main.current()
    for i in range(7):
        with graph.write() as w:
            w.insert("City", {"name": f"c{i}"})
    scans = view.tables.counters.scans
    assert view.snapshot(view.branch("main")).pins["node:City"].rows == 8
    assert view.tables.counters.scans == scans + 1


def test_G_4_a_snapshot_by_commit_shows_what_the_commit_made(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    genesis, people, ties = reversed(graph.history.commits())
    counts = [
        {key: pin.rows for key, pin in graph.snapshot(commit=c.commit_id).pins.items()}
        for c in (genesis, people, ties)
    ]
    assert [c["node:Person"] for c in counts] == [0, 2, 2]
    assert [c["edge:Knows"] for c in counts] == [0, 0, 1]
    assert graph.snapshot(commit=people.commit_id).commit_id == people.commit_id


def test_G_4_a_snapshot_by_manifest_version_agrees_with_the_commit(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    for commit in graph.history.commits():
        by_commit = graph.snapshot(commit=commit.commit_id)
        by_version = graph.snapshot(version=commit.manifest_version)
        assert by_commit == by_version
    with pytest.raises(NotFound, match="99"):
        graph.snapshot(version=99)


def test_G_4_one_entity_at_a_version(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.update("Person", "ana", {"age": 31})
    _, ties, people, genesis = graph.history.commits()
    assert graph.entity("node:Person", "ana")["age"] == 31
    for commit in (ties, people):
        assert graph.entity("node:Person", "ana", version=commit.manifest_version)["age"] == 30
        assert graph.entity("node:Person", "ana", at=commit.commit_id)["age"] == 30
    with pytest.raises(EntityNotFound):
        graph.entity("node:Person", "ana", version=genesis.manifest_version)
    with pytest.raises(NotFound):
        graph.entity("node:Person", "ana", version=77)
    with pytest.raises(TypeNotFound):
        graph.entity("node:Ghost", "ana")
    with pytest.raises(InvalidInput):
        graph.entity("node:Person", "ana", version=2, at="main")


def test_G_4_an_entity_is_what_was_published(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    head = graph.snapshot()
    lance.dataset(str(tmp_path / "g" / head.pin("node:Person").ref.path)).delete("name = 'ana'")
    assert graph.entity("node:Person", "ana", version=head.manifest_version)["age"] == 30
    drifted = head.pin("node:Person").ref.version + 1
    for version in range(2, drifted + 1):
        assert graph.entity("node:Person", "ana", version=version)["age"] == 30


def test_G_4_an_entity_is_read_with_the_schema_of_its_state(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    before = graph.snapshot()
    renamed = PEOPLE.replace("age: I32?", 'years: I32? @rename_from("age")')
    graph.apply_schema(renamed)
    with graph.write() as w:
        w.update("Person", "ana", {"years": 31})
    assert graph.entity("node:Person", "ana")["years"] == 31
    old = graph.entity("node:Person", "ana", version=before.manifest_version)
    assert old == {"id": "ana", "name": "ana", "age": 30}
    assert graph.entity("node:Person", "ana", at=before.commit_id) == old


def test_G_4_an_entity_before_a_branch_began(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    version = graph.snapshot().manifest_version
    with graph.write() as w:
        w.update("Person", "ana", {"age": 31})
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.update("Person", "ana", {"age": 32})
    assert graph.entity("node:Person", "ana", "dev")["age"] == 32
    assert graph.entity("node:Person", "ana", "dev", version=version)["age"] == 30


def test_an_unknown_commit_is_a_typed_error(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    for wrong in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "x' OR '1'='1", ""):
        with pytest.raises(CommitNotFound):
            graph.snapshot(commit=wrong)
        with pytest.raises(CommitNotFound):
            graph.history.commit(wrong)


def test_a_written_commit_equals_what_is_read_later(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write(message="hello", actor="bo", metadata={"ticket": "7"}) as w:
        w.insert("City", {"name": "Rome"})
    newest = graph.history.commits(limit=1)[0]
    assert (newest.message, newest.actor, newest.metadata) == ("hello", "bo", {"ticket": "7"})
    assert omnigraph.open(tmp_path / "g").history.commit(newest.commit_id) == newest


def test_commits_can_be_limited_and_chosen(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    assert [c.message for c in graph.history.commits(limit=1)] == ["ties"]
    assert [c.message for c in graph.history.commits(where=lambda c: c.actor == "tester")] == [
        "people",
        None,
    ]
    assert graph.history.commits(limit=0) == []


def test_a_read_only_handle_reads_and_never_writes(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", PEOPLE)
    reader = omnigraph.open(tmp_path / "g", read_only=True)
    assert reader.snapshot().pins["node:Person"].rows == 0
    with pytest.raises(omnigraph.errors.ReadOnly), reader.write() as w:
        w.insert("City", {"name": "Rome"})
    with pytest.raises(omnigraph.errors.ReadOnly):
        reader.branches.create("x")
    with pytest.raises(omnigraph.errors.ReadOnly):
        reader.maintenance.recover()
