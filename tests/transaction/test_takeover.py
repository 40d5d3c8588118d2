"""Takeover of writes whose owner is on a lost host or was paused, and interrupted roll-backs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.graphs import people_graph, repository, rows
from tests.support.internals import repository_of, transaction_of

import omnigraph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import MAIN, Row, RowKind
from omnigraph.errors import OmnigraphError, OutcomeUnknown, StorageFailure
from omnigraph.model.ids import new_ulid
from omnigraph.storage import failpoints
from omnigraph.storage.lance.staging.rows import stage_delete
from omnigraph.storage.lance.tables import OPERATION_PROPERTY
from omnigraph.storage.paths import RECOVERY_AUDIT_PATH
from omnigraph.transaction import transaction
from omnigraph.transaction.ownership import Owner
from omnigraph.transaction.recovery import audit
from omnigraph.transaction.recovery.audit import Action
from omnigraph.transaction.recovery.record import RecoveryRecord


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def _left_by_another_host(graph: omnigraph.Graph) -> None:
    """A write that moved its table on a host that is gone."""
    failpoints.arm("table.after_commit", "error")
    failpoints.arm("recovery.before_publish", "error")
    with pytest.raises(OmnigraphError), graph.write() as w:
        w.update("Person", "bo", {"age": 7})
    failpoints.disarm_all()
    objects = repository_of(graph).objects
    paths = [i.path for i in objects.list("__recovery")]
    (path,) = [p for p in paths if p.split("/")[-1].count(".") == 1]
    record = RecoveryRecord.from_bytes(objects.get(path), path)
    objects.put(path, replace(record, owner=Owner("elsewhere", 1, "1")).to_bytes())
    for other in paths:
        if other != path:
            objects.delete(other)


def test_a_single_write_outlives_the_lease_of_an_owner_on_a_lost_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "0.6")
    monkeypatch.setattr(transaction, "OWNER_WAIT", replace(transaction.OWNER_WAIT, deadline_s=0.2))
    graph = people_graph(tmp_path / "g")
    _left_by_another_host(graph)
    fresh = omnigraph.open(graph.uri)
    with fresh.write() as w:
        w.insert("Person", {"name": "cy"})
    assert "cy" in rows(graph, "node:Person")
    assert [told["cause"] for told in fresh.maintenance.recoveries()] == ["owner_silent"]


def test_a_write_that_finishes_after_a_failure_says_that_its_owner_failed(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    failpoints.arm("table.after_commit", "error")
    with graph.write() as w:
        w.update("Person", "bo", {"age": 7})
    (told,) = graph.maintenance.recoveries()
    assert (told["action"], told["cause"]) == ("rolled_forward", "owner_failed")


def test_an_audit_that_is_older_than_its_causes_goes_on_without_them(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    tables = repository(graph).tables
    older = [field for field in audit._schema() if field.name != "cause"]
    tables.create(RECOVERY_AUDIT_PATH, pa.schema(older), {"omnigraph.kind": "recovery_audit"})
    failpoints.arm("table.after_commit", "error")
    with graph.write() as w:
        w.update("Person", "bo", {"age": 7})
    (told,) = graph.maintenance.recoveries()
    assert (told["action"], told["cause"]) == ("rolled_forward", None)


def test_a_write_taken_over_but_not_yet_decided_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "0.4")
    graph = people_graph(tmp_path / "g")
    flag = tmp_path / "paused"
    failpoints.arm("table.after_commit", f"pause:{flag}")
    done: list[Any] = []

    def write() -> None:
        try:
            with graph.write() as w:
                w.insert_edge("Knows", "bo", "ana", {"since": 1})
            done.append("ok")
        except OmnigraphError as error:
            done.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while not flag.exists():
        pass
    objects = repository_of(graph).objects
    (path,) = [i.path for i in objects.list("__recovery") if i.path.split("/")[-1].count(".") == 1]
    claimant = json.dumps(asdict(Owner("elsewhere", 1, "1"))).encode()
    objects.put(path.removesuffix(".json") + ".claim-1.json", claimant)
    time.sleep(0.5)
    flag.unlink()
    # The resolver takes its time, then rolls the write forward.
    time.sleep(0.3)
    record = RecoveryRecord.from_bytes(objects.get(path), path)
    repository(graph).main.publish(record.publication())
    objects.delete(path)
    writer.join()
    assert done == ["ok"]
    assert len(rows(graph, "edge:Knows")) == 2
    view = repository(graph)
    assert view.tables.open(view.main.current().pins["edge:Knows"].ref).rows == 2


def _move_person(graph: omnigraph.Graph, operation: str) -> None:
    view = repository(graph)
    table = view.tables.open(view.main.current().pins["node:Person"].ref)
    view.tables.commit(stage_delete(table, pa.array(["ana"]), {OPERATION_PROPERTY: operation}))


def _abandon(graph: omnigraph.Graph, operation: str) -> None:
    mark = Row(f"abandoned:{operation}", RowKind.ABANDONED)
    repository(graph).main.publish(Publication(new_ulid(), MAIN, put=(mark,)))


def test_a_crash_while_healing_leaves_nothing_for_a_human(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    operation = new_ulid()
    _abandon(graph, operation)
    _move_person(graph, operation)
    failpoints.arm("recovery.after_restore", "error")
    with pytest.raises(OmnigraphError), graph.write() as w:
        w.insert("Person", {"name": "cy"})
    failpoints.disarm_all()
    with graph.write() as w:
        w.insert("Person", {"name": "dee"})
    assert set(rows(graph, "node:Person")) >= {"ana", "bo", "dee"}


def _claim(graph: omnigraph.Graph, path: str) -> None:
    """Another host begins to resolve a record."""
    claimant = json.dumps(asdict(Owner("elsewhere", 1, "1"))).encode()
    repository_of(graph).objects.put(path.removesuffix(".json") + ".claim-1.json", claimant)


def _refuse(*_: object) -> None:
    raise StorageFailure("the manifest cannot be written")


def test_a_write_that_somebody_resolves_is_not_reported_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = people_graph(tmp_path / "g")
    put = repository_of(graph).objects.put

    def put_after_a_claim(path: str, data: bytes) -> None:
        if path.endswith(".abort.json"):
            _claim(graph, path.replace(".abort.json", ".json"))
        put(path, data)

    monkeypatch.setattr(repository_of(graph).main, "publish", _refuse)
    monkeypatch.setattr(repository_of(graph).objects, "put", put_after_a_claim)
    with pytest.raises(OutcomeUnknown), graph.write() as w:
        w.insert("City", {"name": "Rome"})


def test_a_resolver_sees_that_the_owner_gave_up_while_it_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = people_graph(tmp_path / "g")
    with monkeypatch.context() as broken:
        broken.setattr(repository_of(graph).main, "publish", _refuse)
        with pytest.raises(StorageFailure), graph.write() as w:
            w.insert("City", {"name": "Rome"})
    objects = repository_of(graph).objects
    (abort,) = [i.path for i in objects.list("__recovery") if i.path.endswith(".abort.json")]
    objects.delete(abort)
    create = objects.put_if_absent

    def create_after_the_owner_gave_up(path: str, data: bytes) -> None:
        if ".claim-" in path:
            objects.put(abort, b"{}")
        create(path, data)

    monkeypatch.setattr(objects, "put_if_absent", create_after_the_owner_gave_up)
    (resolution,) = graph.maintenance.recover().resolved
    assert resolution.action is Action.ROLLED_BACK
    assert set(rows(graph, "node:City")) == {"Oslo"}


def _paused_for_longer_than_its_lease(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next write of the graph is claimed by another host while its record is written."""
    monkeypatch.setattr(
        transaction, "DECISION_POLL", replace(transaction.DECISION_POLL, deadline_s=0.1)
    )
    create = repository_of(graph).objects.put_if_absent

    def create_and_pause(path: str, data: bytes) -> None:
        create(path, data)
        _claim(graph, path)
        time.sleep(0.1)

    monkeypatch.setattr(repository_of(graph).objects, "put_if_absent", create_and_pause)


def test_an_owner_paused_while_its_record_was_written_looks_before_it_moves_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "0.1")
    graph = people_graph(tmp_path / "g")
    _paused_for_longer_than_its_lease(graph, monkeypatch)
    with pytest.raises(OutcomeUnknown), graph.write() as w:
        w.insert("City", {"name": "Rome"})
    view = repository(graph)
    assert view.tables.newest_from(view.main.current().pins["node:City"].ref).version == 2


def test_a_write_taken_over_whose_fate_cannot_be_looked_up_is_of_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "0.1")
    graph = people_graph(tmp_path / "g")
    _paused_for_longer_than_its_lease(graph, monkeypatch)
    monkeypatch.setattr(transaction, "decide", _refuse)
    with pytest.raises(OutcomeUnknown), graph.write() as w:
        w.insert("City", {"name": "Rome"})


def test_records_of_writers_that_finish_are_not_remembered(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    _left_by_another_host(graph)
    fresh = omnigraph.open(graph.uri)
    known = transaction_of(fresh).recovery.pending
    (pending,) = known.of_branch("main")
    assert known._records
    repository_of(graph).objects.delete(pending.path)
    assert known.of_branch("main") == []
    assert not known._records
