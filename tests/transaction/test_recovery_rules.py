"""Rules of recovery and of the drift guard that no other suite covers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.graphs import people_graph, repository, rows
from tests.support.promises import Expected, broken_promises
from tests.transaction.test_graph_recovery import die, record_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CorruptData, Drift
from omnigraph.storage import failpoints


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def insert(graph: Graph, name: str, branch: str = "main") -> None:
    with graph.write(branch) as w:
        w.insert("Person", {"name": name})


def outside(graph: Graph, key: str) -> lance.LanceDataset:
    """A table as a foreign program opens it."""
    return lance.dataset(f"{graph.uri}/{graph.snapshot().pin(key).ref.path}")


def add_outside(graph: Graph, key: str, **row: Any) -> None:
    """Let a foreign program append a row to a table."""
    dataset = outside(graph, key)
    values = {name: [row.get(name)] for name in dataset.schema.names}
    lance.write_dataset(pa.table(values, schema=dataset.schema), dataset, mode="append")


def version_file(graph: Graph, key: str, version: int) -> Path:
    ref = graph.snapshot().pin(key).ref
    return Path(graph.uri, ref.path, "_versions", f"{2**64 - 1 - version:020d}.manifest")


# -- a table below its published version -----------------------------------------------------


@pytest.mark.parametrize("failpoint", ["record.after_put", "table.before_commit"])
def test_R_4_a_table_below_its_published_version_stops_recovery(
    graph: Graph, failpoint: str
) -> None:
    die(graph, failpoint)
    record = record_of(graph)
    pin = graph.snapshot().pin("node:Person")
    lost = version_file(graph, "node:Person", pin.ref.version)
    content = lost.read_bytes()
    lost.unlink()

    again = omnigraph.open(graph.uri)
    (problem,) = again.maintenance.recovered_at_open.unresolved.values()
    assert isinstance(problem, CorruptData)
    assert problem.details["type_key"] == "node:Person"
    assert "backup" in problem.remedy
    with pytest.raises(CorruptData), again.write() as w:  # loud at every write to the branch
        w.insert("City", {"name": "Bern"})
    (pending,) = again.maintenance.pending_writes()
    assert pending.state == "damaged"
    assert record.exists()
    assert [p.name for p in record.parent.iterdir()] == [record.name]  # no claims pile up
    assert again.maintenance.recoveries() == []

    lost.write_bytes(content)
    (resolved,) = omnigraph.open(graph.uri).maintenance.recovered_at_open.resolved
    assert resolved.action == "rolled_back"
    assert not broken_promises(graph.uri, Expected(recovered=frozenset({resolved.operation_id})))


def test_R_4_a_publish_below_the_start_of_a_write_stops_recovery(graph: Graph) -> None:
    """The manifest was taken back from outside, beneath an unfinished write."""
    insert(graph, "cy")
    die(graph, "table.after_commit")
    main = Path(graph.uri, "__manifest", "_versions")
    newest = min(main.glob("*.manifest"))  # names count down
    newest.unlink()
    again = omnigraph.open(graph.uri)
    assert isinstance(again.maintenance.recovered_at_open.unresolved["main"], CorruptData)
    assert record_of(graph).exists()


# -- roll-back over foreign movement ---------------------------------------------------------


def test_R_5_a_roll_back_leaves_what_somebody_else_wrote(graph: Graph) -> None:
    """ADR 23: the write is undone, the foreign rows wait for an operator."""
    die(graph, "table.before_commit")
    add_outside(graph, "node:City", id="Kiel", name="Kiel")
    again = omnigraph.open(graph.uri)
    (resolved,) = again.maintenance.recovered_at_open.resolved
    assert resolved.action == "rolled_back"
    found = resolved.tables["node:City"]
    published = again.snapshot().pin("node:City").ref.version
    assert (found.what, found.to_version) == (
        "moved by another operation, left alone",
        published + 1,
    )
    assert set(rows(again, "node:City")) == {"Oslo"}
    insert(again, "zoe")  # what nobody else touched can be written at once
    with pytest.raises(Drift) as drift, again.write() as w:
        w.insert("City", {"name": "Rome"})
    assert drift.value.details["case"] == "uncovered"

    again.maintenance.repair(confirm=True, force=True)  # an operator takes the foreign row over
    with again.write() as w:
        w.insert("City", {"name": "Rome"})
    assert set(rows(again, "node:City")) == {"Oslo", "Kiel", "Rome"}
    assert not broken_promises(graph.uri, Expected(recovered=frozenset({resolved.operation_id})))


def test_R_5_a_part_of_an_undone_write_is_never_taken_over(graph: Graph) -> None:
    """Foreign rows on top of a table that the dead writer moved: only restoring is allowed."""
    die(graph, "table.after_commit")
    moved = next(
        key
        for key, pin in graph.snapshot().pins.items()
        if repository(graph).tables.newest_from(pin.ref) != pin.ref
    )
    extra = {"id": "x", "name": "x"}
    add_outside(graph, moved, **extra)
    again = omnigraph.open(graph.uri)
    before = set(rows(again, moved))
    (forced,) = [
        r for r in again.maintenance.repair(confirm=True, force=True) if r.type_key == moved
    ]
    assert forced.action == "refused"
    assert forced.error is not None
    assert "unfinished write" in forced.error
    assert set(rows(again, moved)) == before
    (restored,) = [
        r for r in again.maintenance.repair(confirm=True, restore=True) if r.type_key == moved
    ]
    assert restored.action == "restored"
    with again.write() as w:  # the same write again
        w.insert("City", {"name": "Rome"})
        w.insert("Person", {"name": "zoe"})
    assert "x" not in rows(again, moved)
    assert again.maintenance.check().healthy


# -- 27: repair beside a record that cannot be read -----------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"confirm": True}, {"confirm": True, "force": True}, {"confirm": True, "restore": True}],
)
def test_repair_is_refused_beside_a_record_that_cannot_be_read(
    graph: Graph, settings: dict[str, bool]
) -> None:
    die(graph, "table.after_commit")
    record = record_of(graph)
    record.write_bytes(record.read_bytes()[:40])
    again = omnigraph.open(graph.uri)
    heads = again.history.commits()
    with pytest.raises(CorruptData) as refusal:
        again.maintenance.repair(**settings)
    assert "--set-aside" in refusal.value.remedy
    assert again.history.commits() == heads
    again.branches.create("other")
    again.maintenance.repair("other", **settings)  # a record of another branch is in nobody's way

    again.maintenance.recover(set_aside=True)
    assert {r.action for r in again.maintenance.repair(**settings)} == {"no_op"}
    assert again.maintenance.check().healthy


def test_repair_is_refused_beside_a_record_that_cannot_be_resolved(graph: Graph) -> None:
    die(graph, "record.after_put")
    pin = graph.snapshot().pin("node:Person")
    version_file(graph, "node:Person", pin.ref.version).unlink()
    with pytest.raises(CorruptData):
        omnigraph.open(graph.uri).maintenance.repair(confirm=True, force=True)
    assert record_of(graph).exists()


# -- what an audit row says ------------------------------------------------------------------


@pytest.mark.parametrize(
    "failpoint",
    ["record.after_put", "table.after_commit", "publish.before_commit", "publish.after_commit"],
)
def test_R_7_an_audit_row_names_the_version_each_table_has_since(
    graph: Graph, failpoint: str
) -> None:
    die(graph, failpoint)
    again = omnigraph.open(graph.uri)
    (row,) = again.maintenance.recoveries()
    pins = again.snapshot().pins
    assert row["to_versions"] == {key: pins[key].ref.version for key in row["types"]}
    assert set(row["types"]) == {"node:Person", "node:City"}


@pytest.mark.parametrize(
    ("failpoint", "action"),
    [("table.after_commit", "rolled_back"), ("publish.after_commit", "rolled_forward")],
)
def test_R_7_setting_a_record_aside_leaves_an_audit_row(
    graph: Graph, failpoint: str, action: str
) -> None:
    die(graph, failpoint)
    record = record_of(graph)
    record.write_bytes(b"{")
    graph.maintenance.recover(set_aside=True)
    (row,) = graph.maintenance.recoveries()
    assert (row["operation_id"], row["action"]) == (record.stem, action)
    assert row["cause"] == "record_unreadable"
    assert not broken_promises(graph.uri, Expected(recovered=frozenset({record.stem})))


def test_R_7_setting_aside_is_audited_once_however_often_it_is_cut_short(graph: Graph) -> None:
    die(graph, "table.after_commit")
    record = record_of(graph)
    record.write_bytes(b"{")
    for _ in range(2):
        failpoints.arm("recovery.after_publish", "error")
        with pytest.raises(failpoints.FailpointError):
            graph.maintenance.recover(set_aside=True)
        failpoints.disarm_all()
        if not graph.maintenance.recoveries():
            break
    graph.maintenance.recover(set_aside=True)
    (row,) = graph.maintenance.recoveries()
    rollback = graph.history.commits(limit=1)[0]
    assert (rollback.kind, row["commit_id"]) == ("rollback", rollback.commit_id)


def test_R_7_a_set_aside_record_of_a_deleted_branch_is_audited(graph: Graph) -> None:
    graph.branches.create("side")
    die(graph, "record.after_put", "side")
    record = record_of(graph)
    record.write_bytes(b"{")
    graph.branches.delete("side")
    graph.maintenance.recover(set_aside=True)
    (row,) = graph.maintenance.recoveries()
    assert row["action"] == "orphaned_branch_discarded"


# -- the record of a branch that is gone -----------------------------------------------------


def test_R_8_a_record_of_a_deleted_branch_is_discarded_with_an_audit_row(graph: Graph) -> None:
    graph.branches.create("side")
    die(graph, "table.after_commit", "side")
    record = record_of(graph)
    body = record.read_bytes()
    graph.branches.delete("side")
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_bytes(body)  # as if the deleter had died before it looked
    again = omnigraph.open(graph.uri)
    assert not record.exists()
    rows_of_it = [r for r in again.maintenance.recoveries() if r["operation_id"] == record.stem]
    assert [r["action"] for r in rows_of_it] == ["orphaned_branch_discarded"]


def test_R_8_a_branch_that_cannot_be_opened_is_not_taken_for_a_deleted_one(graph: Graph) -> None:
    graph.branches.create("side")
    die(graph, "table.after_commit", "side")
    record = record_of(graph)
    fork = next(Path(graph.uri, "__manifest", "tree").iterdir())
    hidden = fork.with_name("hidden")
    fork.rename(hidden)
    again = omnigraph.open(graph.uri)
    assert "side" in again.maintenance.recovered_at_open.unresolved
    assert record.exists()
    assert again.maintenance.recoveries() == []
    hidden.rename(fork)
    (resolved,) = omnigraph.open(graph.uri).maintenance.recovered_at_open.resolved
    assert resolved.action == "rolled_back"


# -- W-7: writers of one process ------------------------------------------------------------------


def test_W_7_a_writer_waits_for_the_record_of_the_one_before_it(
    graph: Graph, tmp_path: Path
) -> None:
    flag = tmp_path / "paused"
    failpoints.arm("record.after_put", f"pause:{flag}")
    first = threading.Thread(target=insert, args=(graph, "one"))
    first.start()
    while not flag.exists():
        assert first.is_alive()
    second = threading.Thread(target=insert, args=(graph, "two"))
    second.start()
    second.join(0.5)
    assert second.is_alive()
    assert len([p for p in record_of(graph).parent.iterdir() if p.name.count(".") == 1]) == 1
    assert graph.maintenance.recover().resolved == []  # nobody resolves a live owner's write
    flag.unlink()
    for thread in (first, second):
        thread.join(60)
    assert {"one", "two"} <= set(rows(graph, "node:Person"))
    assert not broken_promises(graph.uri)


# -- W-8: the drift guard says which case it is ---------------------------------------------------


def test_W_8_uncovered_drift_names_repair(graph: Graph) -> None:
    add_outside(graph, "node:Person", id="x", name="x")
    with pytest.raises(Drift) as drift:
        insert(graph, "cy")
    assert drift.value.details["case"] == "uncovered"
    assert "omnigraph repair" in drift.value.remedy


def test_W_8_a_record_of_another_branch_is_no_cover(graph: Graph) -> None:
    graph.branches.create("side")
    die(graph, "table.after_commit", "side")
    add_outside(graph, "node:Person", id="x", name="x")
    with pytest.raises(Drift) as drift:
        insert(graph, "cy")
    assert drift.value.details["case"] == "uncovered"


def test_W_8_drift_that_cannot_be_read_names_the_cause_and_both_ways(graph: Graph) -> None:
    add_outside(graph, "node:Person", id="x", name="x")
    version = graph.snapshot().pin("node:Person").ref.version
    damaged = version_file(graph, "node:Person", version + 1)
    damaged.write_bytes(bytes(damaged.stat().st_size))
    again = omnigraph.open(graph.uri)
    with pytest.raises(Drift) as drift:
        insert(again, "cy")
    assert drift.value.details["case"] == "unclassified"
    assert drift.value.details["cause"] == "corrupt_data"
    assert "omnigraph recover" in drift.value.remedy
    assert "omnigraph repair" in drift.value.remedy
    assert set(rows(again, "node:Person")) == {"ana", "bo"}
    (found,) = [
        r for r in again.maintenance.repair(confirm=True, force=True) if r.type_key == "node:Person"
    ]
    assert (found.classification, found.action) == ("unverifiable", "refused")
