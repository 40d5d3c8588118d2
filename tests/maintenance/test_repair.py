"""Repair: what drifted is classified, previewed, and healed only as far as was allowed."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.graphs import die_writing, people_graph, rows
from tests.support.internals import repository_of
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Drift, InvalidInput, ReadOnly
from omnigraph.maintenance.repair import Repaired
from omnigraph.storage.lance.staging.rows import stage_insert


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    return graph


def outside(graph: Graph, key: str = "node:City") -> lance.LanceDataset:
    return lance.dataset(f"{graph.uri}/{graph.snapshot().pin(key).ref.path}")


def city(graph: Graph, **settings: bool) -> Repaired:
    (found,) = [one for one in graph.maintenance.repair(**settings) if one.type_key == "node:City"]
    return found


def test_a_healthy_graph_needs_no_repair(graph: Graph) -> None:
    assert {(one.classification, one.action) for one in graph.maintenance.repair(confirm=True)} == {
        ("no_drift", "no_op")
    }


def test_X_30_native_compaction_and_indexes_are_verified_maintenance(graph: Graph) -> None:
    before = rows(graph, "node:City")
    dataset = outside(graph)
    dataset.create_scalar_index("name", "BTREE")
    dataset.optimize.compact_files()
    found = city(graph)
    assert (found.classification, found.action) == ("verified_maintenance", "preview")
    assert found.head_version > found.published_version
    assert city(graph, confirm=True).action == "healed"
    assert rows(graph, "node:City") == before
    assert graph.snapshot().pin("node:City").ref.version == found.head_version
    assert omnigraph.open(graph.uri).maintenance.check().healthy
    with graph.write() as w:
        w.insert("City", {"name": "Kiel"})
    assert not broken_promises(graph.uri)


def test_X_31_changed_rows_are_suspicious_and_refused(graph: Graph) -> None:
    outside(graph).delete("id = 'Rome'")
    with pytest.raises(Drift), graph.write() as w:
        w.insert("City", {"name": "Kiel"})
    found = city(graph, confirm=True)
    assert (found.classification, found.action) == ("suspicious", "refused")
    assert found.operations == ("Delete",)
    assert "Rome" in rows(graph, "node:City")


def test_X_31_force_takes_over_what_is_there_as_a_commit(graph: Graph) -> None:
    outside(graph).delete("id = 'Rome'")
    assert city(graph, confirm=True, force=True).action == "forced"
    assert rows(graph, "node:City").keys() == {"Oslo"}
    newest = graph.history.commits(limit=1)[0]
    assert newest.kind == "repair"
    (change,) = graph.history.commit_changes(newest.commit_id).changes
    assert (change.op, change.id) == ("delete", "Rome")
    assert not broken_promises(graph.uri)


def test_restoring_brings_the_published_rows_back(graph: Graph) -> None:
    commits = graph.history.commits()
    outside(graph).delete("true")
    assert city(graph, confirm=True, restore=True).action == "restored"
    assert rows(graph, "node:City").keys() == {"Oslo", "Rome"}
    assert graph.history.commits() == commits
    with graph.write() as w:
        w.insert("City", {"name": "Kiel"})
    assert not broken_promises(graph.uri)


def test_maintenance_that_hides_a_change_is_suspicious(graph: Graph) -> None:
    dataset = outside(graph)
    dataset.create_scalar_index("name", "BTREE")
    dataset.insert(pa.table({"id": ["X"], "name": ["X"]}, schema=dataset.schema))
    found = city(graph)
    assert found.classification == "suspicious"
    assert found.operations == ("CreateIndex", "Append")


def test_a_write_in_flight_is_no_drift(graph: Graph) -> None:
    """Its table has moved, its record says so."""
    graph.mutate('query q() { delete City where name = "Rome" }')
    die_writing(graph.uri, "publish.before_commit")
    assert city(graph).classification == "no_drift"
    assert graph.maintenance.check().healthy


def test_a_branch_is_repaired_on_its_own(graph: Graph) -> None:
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("City", {"name": "Bonn"})
    pin = graph.snapshot("dev").pin("node:City")
    tables = repository_of(graph).tables
    table = tables.open(pin.ref)
    added = pa.Table.from_pylist([{"id": "X", "name": "X"}], schema=table.schema)
    tables.commit(stage_insert(table, added, {}, type_key="node:City"))
    assert city(graph).classification == "no_drift"
    found = {
        one.type_key: one for one in graph.maintenance.repair("dev", confirm=True, restore=True)
    }
    assert found["node:City"].action == "restored"
    assert rows(graph, "node:City", "dev").keys() == {"Oslo", "Rome", "Bonn"}


def test_force_and_restore_need_confirm_and_exclude_each_other(graph: Graph) -> None:
    for settings in ({"force": True}, {"restore": True}):
        with pytest.raises(InvalidInput, match="need `confirm`"):
            graph.maintenance.repair(**settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="exclude"):
        graph.maintenance.repair(confirm=True, force=True, restore=True)
    with pytest.raises(ReadOnly):
        omnigraph.open(graph.uri, read_only=True).maintenance.repair(confirm=True)
