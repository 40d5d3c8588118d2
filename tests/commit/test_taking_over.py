"""Taking over: writes whose owner is on a lost host or was paused, and healing cut short."""

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

import omnigraph
from omnigraph.commit import transaction
from omnigraph.commit.ownership import Owner
from omnigraph.commit.record import RecoveryRecord
from omnigraph.errors import OmnigraphError
from omnigraph.ids import new_ulid
from omnigraph.manifest.publication import Publication
from omnigraph.manifest.rows import MAIN, Kind, Row
from omnigraph.storage import failpoints
from omnigraph.storage.staging import stage_delete
from omnigraph.storage.tables import OPERATION_PROPERTY


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
    objects = graph._repository.objects
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
    monkeypatch.setattr(transaction, "LIVE_WRITER_WAIT_S", 0.2)
    graph = people_graph(tmp_path / "g")
    _left_by_another_host(graph)
    fresh = omnigraph.open(graph.uri)
    with fresh.write() as w:
        w.insert("Person", {"name": "cy"})
    assert "cy" in rows(graph, "node:Person")


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
    objects = graph._repository.objects
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
    mark = Row(f"abandoned:{operation}", Kind.ABANDONED)
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
