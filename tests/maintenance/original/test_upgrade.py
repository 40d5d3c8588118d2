"""Graphs of the Rust original are converted in place, with all they hold (ADR 36)."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.graphs import files_below
from tests.support.original_graphs import (
    TOLD,
    Told,
    aged,
    by_id,
    change_record,
    exported,
    exported_form,
    lineage,
    move_tables,
    parsed,
    record_path,
    relocated,
    stored_rows,
    unpacked,
)

import omnigraph
from omnigraph.errors import Contention, CorruptData
from omnigraph.maintenance.original.layout_writer import AUDIT_SCHEMA
from omnigraph.maintenance.original.watch import signs_of_writers
from omnigraph.settings import StorageSettings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects

AFTER = Told("pending", "main", ".after-recovery")
Moved = Callable[[Path], Any]


def history_of(graph: omnigraph.Graph) -> dict[str, list[Any]]:
    """What every commit of main shows."""
    return {c.commit_id: exported(graph, at=c.commit_id) for c in graph.history.commits()}


@pytest.mark.parametrize("name", ["museum", "evolved"])
def test_branches_commits_and_every_old_state_stay(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    before = history_of(omnigraph.open(root, read_only=True))
    data = {p: d for p, d in files_below(root).items() if not p.startswith("__manifest")}
    assert omnigraph.upgrade(root).needed
    assert omnigraph.upgrade(root, apply=True).applied
    graph = omnigraph.open(root)
    assert not omnigraph.upgrade(root).needed
    for told in (t for t in TOLD if t.name == name):
        assert exported(graph, told.branch) == parsed(told.entities, graph, told.branch)
        assert lineage(graph, told.branch) == told.commits
    assert history_of(graph) == before
    assert graph.maintenance.check().findings == []
    now = files_below(root)
    kept = {p: d for p, d in data.items() if "/data/" in p or "/_indices/" in p}
    assert {p: now[p] for p in kept} == kept


@pytest.mark.parametrize("told", TOLD[:3], ids=lambda t: f"{t.name}-{t.branch}")
def test_time_travel_equals_what_the_table_versions_hold(told: Told, tmp_path: Path) -> None:
    beside = relocated(told.name, tmp_path / "beside")
    root = unpacked(told.name, tmp_path)
    omnigraph.open(root, read_only=True).maintenance.clone(tmp_path / "copy")
    omnigraph.upgrade(root, apply=True)
    graphs = omnigraph.open(root), omnigraph.open(tmp_path / "copy")
    for commit_id, *_, branch, version in told.commits:
        stored = stored_rows(beside, branch, version)
        for graph in graphs:
            schema = graph.schema(at=commit_id)
            assert by_id(exported(graph, at=commit_id)) == {
                row["id"]: exported_form(schema.type(key), row)
                for key, rows in stored.items()
                for row in rows
            }


def test_looking_changes_nothing(tmp_path: Path) -> None:
    for name in ("museum", "pending"):
        root = unpacked(name, tmp_path)
        aged(root, 1)
        before = files_below(tmp_path)
        report = omnigraph.upgrade(root)
        assert [step.source for step in report.branches[0].steps] == [1, 2, 3]
        assert files_below(tmp_path) == before


def test_a_converted_graph_is_written_merged_and_maintained_as_any_other(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    omnigraph.upgrade(root, apply=True)
    graph = omnigraph.open(root)
    with graph.write("feature/x") as w:
        w.insert("Curator", {"handle": "hal"})
        w.insert_edge("Mentors", "hal", "ana")
    graph.merge("feature/x")
    handles = {e["data"]["id"] for e in exported(graph) if e.get("type") == "Curator"}
    assert handles == {"ana", "bo", "dï-ø", "eve", "fay", "gil", "hal"}
    graph.branches.create("late", from_="01M7KN6P2M8BAE146D1PPY38X2")
    assert len(exported(graph, "late")) == 12
    graph.maintenance.optimize()
    graph.branches.delete("feature/x")
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert graph.maintenance.check().findings == []
    assert len(exported(graph, "late")) == 12
    shutil.move(root, tmp_path / "elsewhere")
    moved = omnigraph.open(tmp_path / "elsewhere")
    assert len(exported(moved, "late")) == 12


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", ["museum", "pending"])
def test_I_3_older_versions_take_the_steps_of_the_original_first(
    name: str, version: int, tmp_path: Path
) -> None:
    root = unpacked(name, tmp_path)
    aged(root, version)
    report = omnigraph.upgrade(root, apply=True)
    assert {one.found for one in report.branches} == {version}
    graph = omnigraph.open(root)
    for told in (t for t in TOLD if t.name == name):
        assert exported(graph, told.branch) == parsed(told.entities, graph, told.branch)
        if name == "museum":
            assert lineage(graph, told.branch) == told.commits
    assert graph.branches.list() == (["feature/x", "main"] if name == "museum" else ["main"])
    assert graph.maintenance.check().findings == []


def test_a_graph_without_recorded_commits_gets_one(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    aged(root, 2, legacy=False)
    omnigraph.upgrade(root, apply=True)
    assert len(omnigraph.open(root).history.commits()) == 1


def test_I_3_commits_that_cannot_be_read_stop_the_conversion(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    aged(root, 3)
    for path in (root / "_graph_commits.lance" / "data").glob("*.lance"):
        path.write_bytes(path.read_bytes()[:20])
    before = files_below(root)
    with pytest.raises(CorruptData):
        omnigraph.upgrade(root, apply=True)
    assert files_below(root) == before


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_a_write_that_moved_some_tables_is_undone(moved: int, tmp_path: Path) -> None:
    root = unpacked("pending", tmp_path)
    move_tables(root, moved)
    before = Told("pending", "main", ".before-recovery")
    view = omnigraph.open(root, read_only=True)
    assert exported(view) == parsed(before.entities, view)
    (record,) = omnigraph.upgrade(root).conversion.records
    assert record.outcome == "rolled back"
    omnigraph.upgrade(root, apply=True)
    graph = omnigraph.open(root)
    assert exported(graph) == parsed(AFTER.entities, graph)
    assert lineage(graph)[:2] == AFTER.commits[:2]
    assert [c[1:4] for c in lineage(graph)[2:]] == [c[1:4] for c in AFTER.commits[2:]]
    (audit,) = graph.maintenance.recoveries()
    assert (audit["operation_id"], audit["action"]) == (record.operation_id, "rolled_back")
    assert len(audit["types"]) == moved
    assert not list((root / "__recovery").glob("*.json"))
    assert graph.maintenance.check().findings == []


def test_a_write_that_moved_all_its_tables_is_completed(tmp_path: Path) -> None:
    root = unpacked("pending", tmp_path)
    change_record(root, actor_id="act-mia")
    added = move_tables(root, 6)
    omnigraph.upgrade(root, apply=True)
    graph = omnigraph.open(root)
    ids = {e["data"]["id"] for e in exported(graph)}
    assert set(added) <= ids
    (audit,) = graph.maintenance.recoveries()
    assert (audit["action"], audit["actor_id"]) == ("rolled_forward", "act-mia")
    assert audit["commit_id"] == graph.history.commits()[0].commit_id
    assert graph.maintenance.check().findings == []


@pytest.mark.parametrize(
    ("entries", "moved", "outcome"),
    [
        ({"writer_kind": "Optimize"}, 6, "rolled forward"),
        ({"writer_kind": "EnsureIndices"}, 2, "rolled back"),
        ({"writer_kind": "BranchMerge"}, 6, "rolled back"),
        ({"writer_kind": "BranchMerge", "schema_version": 1}, 6, "rolled forward"),
        ({"writer_kind": "SchemaApply"}, 6, "rolled back"),
        ({"branch": "gone"}, 1, "discarded with its branch"),
    ],
)
def test_every_kind_of_writer_has_its_rules(
    entries: dict[str, Any], moved: int, outcome: str, tmp_path: Path
) -> None:
    root = unpacked("pending", tmp_path)
    change_record(root, **entries)
    if outcome != "discarded with its branch":
        move_tables(root, moved)
    (record,) = omnigraph.upgrade(root, apply=True).conversion.records
    assert record.outcome == outcome
    graph = omnigraph.open(root)
    assert len(graph.maintenance.recoveries()) == 1
    assert len(exported(graph)) == 12 + (moved if outcome == "rolled forward" else 0)


def test_a_confirmed_merge_is_completed_with_its_second_parent(tmp_path: Path) -> None:
    root = unpacked("pending", tmp_path)
    move_tables(root, 6)
    body = json.loads(record_path(root).read_text())
    tables = [{**t, "confirmed_version": t["post_commit_pin"]} for t in body["tables"]]
    source = "01M7KN8FZZZZZZZZZZZZZZZZZZ"
    change_record(root, writer_kind="BranchMerge", tables=tables, merge_source_commit_id=source)
    omnigraph.upgrade(root, apply=True)
    newest = omnigraph.open(root).history.commits()[0]
    assert (newest.kind, newest.merged_parent) == ("merge", source)


def test_earlier_recoveries_of_the_original_are_kept(tmp_path: Path) -> None:
    root = unpacked("pending", tmp_path)
    row = {
        "graph_commit_id": "01M7KN8FBMXA56Y2D7Y96ENH7S",
        "recovery_kind": "RolledForward",
        "recovery_for_actor": "act-ana",
        "operation_id": "01M7KN8E000000000000000000",
        "sidecar_writer_kind": "Mutation",
        "per_table_outcomes_json": '[{"table_key":"node:Hall","from_version":3,"to_version":4}]',
        "created_at": 1_794_882_420_000_000,
    }

    table = pa.Table.from_pylist([row], schema=AUDIT_SCHEMA)
    lance.write_dataset(table, root / "_graph_commit_recoveries.lance", enable_stable_row_ids=True)
    omnigraph.upgrade(root, apply=True)
    graph = omnigraph.open(root)
    found = [(r["operation_id"], r["action"]) for r in graph.maintenance.recoveries()]
    assert found == [
        ("01M7KN8FK6AD3JP2K0N0THBK96", "rolled_back"),
        ("01M7KN8E000000000000000000", "rolled_forward"),
    ]


def test_a_record_that_cannot_be_read_stops_the_conversion(tmp_path: Path) -> None:
    root = unpacked("pending", tmp_path)
    for text in ("{", '{"schema_version": 3}', '{"schema_version": 2}'):
        record_path(root).write_text(text)
        before = files_below(root)
        with pytest.raises(CorruptData, match="recovery record"):
            omnigraph.upgrade(root, apply=True)
        assert files_below(root) == before


def test_a_changed_schema_file_is_a_sign_of_a_writer(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    objects = open_objects(parse_location(root), StorageSettings())
    before = signs_of_writers(objects)
    assert signs_of_writers(objects) == before
    schema = root / "_schema.pg"
    schema.write_text(schema.read_text() + "\n")
    assert signs_of_writers(objects) != before


def test_a_program_that_still_writes_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = unpacked("pending", tmp_path)
    monkeypatch.setenv("OMNIGRAPH_UPGRADE_WATCH_SECONDS", "30")
    noticed = threading.Event()

    def write_on() -> None:
        while not noticed.wait(0.2):
            os.utime(record_path(root))

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        with pytest.raises(Contention, match="another program is writing"):
            omnigraph.upgrade(root, apply=True)
    finally:
        noticed.set()
        writer.join()
    assert omnigraph.upgrade(root).needed
