"""A writer stopped with SIGSTOP for three leases while others write, then continued (R-6, R-10)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.support.crash import Answer, finish_child, start_child
from tests.support.crash_kinds import Target, writer_kinds
from tests.support.crash_writers import rows
from tests.support.promises import Expected, broken_promises, commit_ids, pending_operations

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, OmnigraphError, VersionConflict
from omnigraph.storage import failpoints

LEASE_S = 0.5
WAIT_S_MAX = 60.0
LOST = "ownership_lost"
# Codes that say the write did not happen because others were faster.
REFUSED = {LOST, "published_dataset_version_conflict", "read_set_conflict"}


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", str(LEASE_S))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def recover_until_resolved(graph: Graph, uri: str) -> None:
    """Look again and again, as writers do, until the lease of what is pending has run out."""

    def resolved() -> bool:
        graph.maintenance.recover()
        return not pending_operations(uri)

    wait_until(resolved)


class StoppedWriter:
    """A child that stopped itself at a failpoint in the middle of write 0."""

    def __init__(self, uri: str, kind: str, failpoint: str) -> None:
        self._child = start_child(["write", uri, kind, "0"], f"{failpoint}=stop")
        self._switches = 0
        wait_until(self._is_stopped)

    def _is_stopped(self) -> bool:
        pid, status = os.waitpid(self._child.pid, os.WUNTRACED | os.WNOHANG)
        assert not pid or os.WIFSTOPPED(status), f"it ended: {self._child.communicate()}"
        return bool(pid)

    def cont(self) -> None:
        self._switches = psutil.Process(self._child.pid).num_ctx_switches().voluntary
        self._child.send_signal(signal.SIGCONT)

    def has_looked_around(self) -> bool:
        """Whether it has waited for the store, or for others, a few times since it went on."""
        if self._child.poll() is not None:
            return True
        switches = psutil.Process(self._child.pid).num_ctx_switches().voluntary
        return switches > self._switches + 50

    def answer(self) -> Answer:
        answer = finish_child(self._child)
        assert answer is not None
        return answer

    def wake(self) -> Answer:
        self.cont()
        return self.answer()


def write_until_accepted(target: Target, kind: str, number: int) -> None:
    """An update that meets what others left undoes it and reports a conflict; then it is free."""
    for _ in range(5):
        try:
            writer_kinds()[kind].write(target, number)
        except VersionConflict:
            continue
        return
    raise AssertionError("the type stays unwritable")


def write_for_three_leases(target: Target, kind: str) -> int:
    """What others do meanwhile; returns the number of the last of their writes."""
    started, number = time.monotonic(), 0
    while time.monotonic() - started < 3 * LEASE_S or not number:
        number = number % 2 + 1
        write_until_accepted(target, kind, number)
    return number


STOPS = ["record.after_put", "table.before_commit", "table.before_commit@2", "table.after_commit"]


@pytest.mark.parametrize("failpoint", STOPS)
def test_an_update_that_slept_through_phase_b_is_refused_and_changes_nothing(
    tmp_path: Path, failpoint: str
) -> None:
    uri, kind = str(tmp_path / "g"), writer_kinds()["update"]
    kind.prepare(uri)
    target = Target(uri)
    stopped = StoppedWriter(uri, "update", failpoint)
    (operation,) = pending_operations(uri)
    newest = write_for_three_leases(target, "update")
    acknowledged = commit_ids(uri)
    assert stopped.wake().error in REFUSED
    assert not any(kind.parts(target.graph, 0).values()), "the write came back to life"
    assert all(kind.parts(target.graph, newest).values()), "an update was lost"
    write_until_accepted(target, "update", 7)  # undoes what the sleeper may still have moved
    assert all(kind.parts(target.graph, 7).values())
    assert broken_promises(uri, Expected(acknowledged, frozenset({operation}))) == []


@pytest.mark.parametrize("failpoint", STOPS)
def test_inserts_that_slept_through_phase_b_are_prepared_anew_and_land_once(
    tmp_path: Path, failpoint: str
) -> None:
    uri, kind = str(tmp_path / "g"), writer_kinds()["nodes and edges"]
    kind.prepare(uri)
    target = Target(uri)
    stopped = StoppedWriter(uri, kind.name, failpoint)
    (operation,) = pending_operations(uri)
    newest = write_for_three_leases(target, kind.name)
    acknowledged = commit_ids(uri)
    assert stopped.wake().error is None
    assert operation not in commit_ids(uri), "what was undone came back to life"
    assert [row["src"] for row in rows(target.graph, "edge:Knows")].count("new0") == 1
    for number in (0, newest):
        assert all(kind.parts(target.graph, number).values())
    assert broken_promises(uri, Expected(acknowledged, frozenset({operation}))) == []


@pytest.mark.parametrize("failpoint", ["table.after_commit@2", "publish.before_commit"])
def test_a_writer_that_slept_when_all_was_moved_learns_that_others_finished_its_write(
    tmp_path: Path, failpoint: str
) -> None:
    uri = str(tmp_path / "g")
    kind = writer_kinds()["update"]
    kind.prepare(uri)
    target = Target(uri)
    stopped = StoppedWriter(uri, "update", failpoint)
    (operation,) = pending_operations(uri)
    recover_until_resolved(target.graph, uri)
    assert all(kind.parts(target.graph, 0).values()), "it was not rolled forward"
    kind.write(target, 1)
    acknowledged = commit_ids(uri)
    assert operation in acknowledged
    assert stopped.wake().error is None
    assert all(kind.parts(target.graph, 1).values()), "an update was lost"
    assert broken_promises(uri, Expected(acknowledged, frozenset({operation}))) == []


def test_a_first_write_on_a_branch_that_slept_leaves_the_branch_to_the_others(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path / "g")
    kind = writer_kinds()["first write on a branch"]
    kind.prepare(uri)
    target = Target(uri)
    stopped = StoppedWriter(uri, kind.name, "table.before_commit@2")
    (operation,) = pending_operations(uri)
    # The branch's tables are not this writer's alone: nobody has to wait for it, ...
    kind.write(target, 1)
    acknowledged = commit_ids(uri)
    recover_until_resolved(target.graph, uri)  # ... and after its lease it is undone
    assert not any(kind.parts(target.graph, 0).values())
    assert stopped.wake().error is None  # prepared anew
    assert operation not in commit_ids(uri)
    assert all(kind.parts(target.graph, 0).values())
    assert broken_promises(uri, Expected(acknowledged, frozenset({operation}))) == []


def test_while_a_live_writer_holds_its_lease_nobody_undoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "60")
    uri = str(tmp_path / "g")
    kind = writer_kinds()["update"]
    kind.prepare(uri)
    stopped = StoppedWriter(uri, "update", "table.before_commit@2")
    left = pending_operations(uri)
    graph = omnigraph.open(uri)
    assert graph.maintenance.recover().resolved == []
    with graph.write() as w:  # another type, the same branch
        w.insert_edge("Knows", "bo", "ana")
    assert pending_operations(uri) == left
    assert stopped.wake().error is None
    assert all(kind.parts(graph, 0).values())
    assert broken_promises(uri, Expected()) == []


@pytest.mark.parametrize("failpoint", ["recovery.before_restore", "recovery.after_restore"])
def test_undoing_what_a_sleeper_moved_too_late_may_be_killed_itself(
    tmp_path: Path, failpoint: str
) -> None:
    uri = str(tmp_path / "g")
    kind = writer_kinds()["update"]
    kind.prepare(uri)
    target = Target(uri)
    stopped = StoppedWriter(uri, "update", "table.before_commit")
    recover_until_resolved(target.graph, uri)
    assert stopped.wake().error == LOST
    assert any("published is" in problem for problem in broken_promises(uri)), "nothing was moved"
    healer = start_child(["write", uri, "update", "1"], f"{failpoint}=kill")
    assert finish_child(healer) is None
    write_until_accepted(target, "update", 2)
    problems = broken_promises(uri, Expected())
    assert [p for p in problems if "audit" not in p] == []


def test_a_sleeper_waits_for_the_decision_of_the_process_that_took_its_write_over(
    tmp_path: Path,
) -> None:
    uri, kind = str(tmp_path / "g"), writer_kinds()["nodes and edges"]
    kind.prepare(uri)
    graph = omnigraph.open(uri)
    stopped = StoppedWriter(uri, kind.name, "table.after_commit@4")
    (operation,) = pending_operations(uri)
    flag = tmp_path / "resolver waits"
    failpoints.arm("recovery.after_claim", f"pause:{flag}")
    try:
        resolver = threading.Thread(target=recover_until_resolved, args=(graph, uri))
        resolver.start()
        wait_until(flag.exists)
        stopped.cont()
        wait_until(stopped.has_looked_around)
        flag.unlink()
        resolver.join()
    finally:
        failpoints.disarm_all()
    assert stopped.answer().error is None, "its write was rolled forward: it succeeded"
    assert operation in commit_ids(uri)
    assert [row["src"] for row in rows(graph, "edge:Knows")].count("new0") == 1
    assert broken_promises(uri, Expected(recovered=frozenset({operation}))) == []


def test_the_codes_above_are_those_of_typed_conflicts() -> None:
    def codes(kind: type[OmnigraphError]) -> set[str]:
        return {kind.code}.union(*(codes(child) for child in kind.__subclasses__()))

    assert codes(Conflict) >= REFUSED
