"""Leases (W-7, R-6): a dead owner is detected on its own host, elsewhere its lease must expire."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.children import child_environment
from tests.support.crash import Pair, Scene, stop_writer
from tests.support.crash_writers import updated
from tests.support.internals import graph_on
from tests.support.promises import Expected, broken_promises, pending_operations

from omnigraph import Graph
from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput
from omnigraph.model.clock import SystemClock
from omnigraph.settings import Settings
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.owner_lease import active
from omnigraph.transaction.ownership import (
    Owner,
    is_certainly_dead,
    this_process,
)
from omnigraph.transaction.recovery.record import RecoveryRecord

LEASE_S = 15.0
FAR_FUTURE_US = 4_000_000_000_000_000


class HandClock(SystemClock):
    """A clock whose seconds pass when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A write that died when one of two tables had moved."""
    place = tmp_path_factory.mktemp("killed") / "g"
    return stop_writer(Pair("update", "table.before_commit", 2), str(place))


@pytest.fixture
def uri(killed: Scene, tmp_path: Path) -> str:
    """The same, as if its process had run on another host."""
    scene = killed.copied_to(str(tmp_path / "g"))
    path = record_path(scene.uri)
    record = RecoveryRecord.from_bytes(path.read_bytes(), str(path))
    elsewhere = replace(record, owner=Owner("another host", record.owner.pid, "1"))
    path.write_bytes(elsewhere.to_bytes())
    return scene.uri


def record_path(uri: str) -> Path:
    (path,) = (Path(uri) / "__recovery" / "main").glob("??????????????????????????.json")
    return path


def observer(uri: str, clock: HandClock) -> Graph:
    return graph_on(Repository.open(parse_location(uri), clock=clock))


def test_a_silent_owner_on_another_host_is_resolved_after_one_lease(
    uri: str, clock: HandClock
) -> None:
    graph, left = observer(uri, clock), pending_operations(uri)
    assert graph.maintenance.recover().resolved == []  # the first look only starts the watch
    clock.now_s += LEASE_S - 0.01
    assert graph.maintenance.recover().resolved == []
    clock.now_s += 0.02
    assert [done.operation_id for done in graph.maintenance.recover().resolved] == [*left]
    assert not any(updated(graph, 0, "main").values())
    assert broken_promises(uri, Expected(recovered=frozenset(left))) == []


def test_an_owner_that_renews_its_lease_is_left_alone_for_as_long_as_it_does(
    uri: str, clock: HandClock
) -> None:
    graph = observer(uri, clock)
    lease = record_path(uri).with_suffix(".lease.json")
    for renewal in range(10):
        lease.write_text(f'{{"renewals": {10**renewal}}}')
        assert graph.maintenance.recover().resolved == []
        clock.now_s += LEASE_S * 0.9
    clock.now_s += LEASE_S * 0.2
    assert len(graph.maintenance.recover().resolved) == 1
    assert not lease.exists()


def test_every_observer_watches_for_itself(uri: str, clock: HandClock) -> None:
    first, second = observer(uri, clock), observer(uri, HandClock())
    assert first.maintenance.recover().resolved == []
    clock.now_s += 10 * LEASE_S
    assert second.maintenance.recover().resolved == []  # its own clock has not moved
    assert len(first.maintenance.recover().resolved) == 1


def test_the_time_written_in_a_record_decides_nothing(uri: str, clock: HandClock) -> None:
    path = record_path(uri)
    record = RecoveryRecord.from_bytes(path.read_bytes(), str(path))
    for created_at_us in (0, FAR_FUTURE_US):
        path.write_bytes(replace(record, created_at_us=created_at_us).to_bytes())
        graph = observer(uri, clock)
        assert graph.maintenance.recover().resolved == []
    clock.now_s += LEASE_S + 1
    assert len(graph.maintenance.recover().resolved) == 1


def test_a_claim_of_a_live_process_is_respected_like_an_owner(uri: str, clock: HandClock) -> None:
    claim = record_path(uri).with_suffix(".claim-1.json")
    graph = observer(uri, clock)
    assert graph.maintenance.recover().resolved == []
    clock.now_s += LEASE_S + 1
    claim.write_text('{"host": "a third host", "pid": 1, "started": "1"}')
    assert graph.maintenance.recover().resolved == []  # something changed: somebody is at it
    clock.now_s += LEASE_S + 1
    assert len(graph.maintenance.recover().resolved) == 1


def test_a_write_this_process_is_carrying_out_is_never_resolved_by_it(
    uri: str, clock: HandClock
) -> None:
    (operation,) = pending_operations(uri)
    graph = observer(uri, clock)
    graph.maintenance.recover()
    clock.now_s += 10 * LEASE_S
    with active(operation):
        assert graph.maintenance.recover().resolved == []
    assert len(graph.maintenance.recover().resolved) == 1


def test_a_process_of_this_host_that_ended_is_known_to_be_dead() -> None:
    code = (
        "from omnigraph.transaction.ownership import this_process as t; print(t().pid, t().started)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=child_environment(),
    ).stdout.split()
    gone = replace(this_process(), pid=int(told[0]), started=told[1])
    assert is_certainly_dead(gone)
    assert not is_certainly_dead(this_process())


def test_a_reused_process_number_is_not_mistaken_for_its_predecessor() -> None:
    assert is_certainly_dead(replace(this_process(), started="1"))


def test_a_process_of_another_host_is_never_certainly_dead() -> None:
    assert not is_certainly_dead(Owner("another host", 1, "1"))


@pytest.mark.parametrize("text", ["0", "-1", "soon", "1e9", "nan"])
def test_a_lease_that_makes_no_sense_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", text)
    with pytest.raises(InvalidInput, match="OMNIGRAPH_LEASE_SECONDS"):
        Settings.from_environment()
