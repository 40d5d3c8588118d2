"""Interrupted writes (W-2): Ctrl-C, SystemExit, MemoryError at every step of a write.

Whatever stops a write between A and C, the write is undone or carries the abort mark, so repeating
it stores nothing twice; the exception says what became of it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.promises import Expected, broken_promises, pending_operations

import omnigraph
from omnigraph import Graph
from omnigraph.storage import failpoints
from omnigraph.transaction.interrupts import INTERRUPTS_MAX, deferred_interrupts

SCHEMA = """
node Note { text: String }
node Person { name: String @key }
edge Wrote: Person -> Note
"""
UNDONE = [
    ("record.before_put", 1),
    ("record.after_put", 1),
    ("table.before_commit", 1),
    ("table.after_commit", 1),
    ("table.before_commit", 2),
    ("table.after_commit", 2),
    ("publish.before_commit", 1),
]
COMMITTED = [
    ("publish.after_commit", 1),
    ("record.before_delete", 1),
    ("record.after_delete", 1),
]
STOPS = {
    "interrupt": KeyboardInterrupt,
    "raise:KeyboardInterrupt": KeyboardInterrupt,
    "raise:SystemExit": SystemExit,
    "raise:MemoryError": MemoryError,
    "raise:GeneratorExit": GeneratorExit,
    "raise:ZeroDivisionError": ZeroDivisionError,  # a defect of our own
}
IN_THE_UNDO = (
    "recovery.before_restore",
    "recovery.after_restore",
    "recovery.before_publish",
    "recovery.after_publish",
    "recovery.after_audit",
    "recovery.after_delete",
)


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """A background job of a shell ignores SIGINT unless it says otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    failpoints.disarm_all()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA)
    with made.write() as w:
        w.insert("Person", {"name": "ana"})
    return made


def write(graph: Graph) -> None:
    """A node without a key, which a repeated write would store a second time."""
    with graph.write(actor="writer") as w:
        w.insert("Person", {"name": "bo"})
        w.insert("Note", {"text": "hello"})


def notes(graph: Graph) -> int:
    return len(graph.query("query q() { match { $n: Note } return { $n.text } }").rows())


def stopped(graph: Graph, stop: type[BaseException]) -> str:
    """Write until it is stopped; returns what the exception says about the write."""
    with pytest.raises(stop) as caught:
        write(graph)
    failpoints.disarm_all()
    (note,) = caught.value.__notes__
    return note


@pytest.mark.parametrize("action", STOPS)
@pytest.mark.parametrize(("failpoint", "nth"), UNDONE)
def test_W_2_a_write_stopped_before_its_commit_is_undone(
    graph: Graph, failpoint: str, nth: int, action: str
) -> None:
    failpoints.arm(failpoint, action, nth=nth)
    assert stopped(graph, STOPS[action]) == "Omnigraph: nothing was written."

    assert pending_operations(graph.uri) == set()
    undone = {row["operation_id"] for row in graph.maintenance.recoveries()}
    write(graph)  # as its caller does

    assert notes(omnigraph.open(graph.uri)) == 1
    assert broken_promises(graph.uri, Expected(recovered=frozenset(undone))) == []
    assert graph.maintenance.check().findings == []


@pytest.mark.parametrize("action", STOPS)
@pytest.mark.parametrize(("failpoint", "nth"), COMMITTED)
def test_W_2_a_write_stopped_after_its_commit_names_it(
    graph: Graph, failpoint: str, nth: int, action: str
) -> None:
    failpoints.arm(failpoint, action, nth=nth)
    said = stopped(graph, STOPS[action])

    head = graph.history.commits(limit=1)[0]
    assert head.actor == "writer"
    assert said == f"Omnigraph: the write was committed as {head.commit_id}."
    assert notes(omnigraph.open(graph.uri)) == 1
    assert pending_operations(graph.uri) == set()


@pytest.mark.parametrize("second", IN_THE_UNDO)
@pytest.mark.parametrize("action", ["interrupt", "raise:KeyboardInterrupt", "raise:MemoryError"])
def test_W_2_a_second_stop_inside_the_undo_changes_nothing(
    graph: Graph, second: str, action: str
) -> None:
    failpoints.arm("table.after_commit", "interrupt", nth=2)
    failpoints.arm(second, action)
    assert stopped(graph, KeyboardInterrupt) == "Omnigraph: nothing was written."
    waiting = pending_operations(graph.uri)
    assert action != "interrupt" or not waiting  # the undo ran to its end

    write(graph)  # resolves what waits, and must not find it finished
    rows = graph.maintenance.recoveries()
    assert notes(omnigraph.open(graph.uri)) == 1
    assert {row["action"] for row in rows} == {"rolled_back"}
    undone = frozenset(row["operation_id"] for row in rows)
    assert waiting <= undone
    assert broken_promises(graph.uri, Expected(recovered=undone)) == []


@pytest.mark.parametrize("second", ["recovery.before_publish", "recovery.after_publish"])
def test_W_2_an_undo_that_is_broken_off_while_publishing_is_not_called_undone(
    graph: Graph, second: str
) -> None:
    """The publish had begun: only the next look at the history can tell."""
    failpoints.arm("publish.before_commit", "interrupt")
    failpoints.arm(second, "raise:KeyboardInterrupt")
    said = stopped(graph, KeyboardInterrupt)
    assert "it is not known whether" in said

    write(graph)
    assert notes(omnigraph.open(graph.uri)) == 1


def test_a_write_stopped_in_the_block_has_written_nothing(graph: Graph) -> None:
    with pytest.raises(KeyboardInterrupt) as caught, graph.write() as w:
        w.insert("Note", {"text": "hello"})
        raise KeyboardInterrupt
    assert caught.value.__notes__ == ["Omnigraph: nothing was written."]


def test_an_interrupt_in_upkeep_names_the_commit(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.local.context.run_upkeep", interrupt)
    said = stopped(graph, KeyboardInterrupt)
    assert graph.history.commits(limit=1)[0].commit_id in said


@pytest.mark.parametrize("failpoint", ["publish.before_commit", "publish.after_commit"])
def test_what_is_only_published_tells_too(graph: Graph, failpoint: str) -> None:
    """A change of the registry has no record: the interrupted caller learns what landed."""
    failpoints.arm(failpoint, "interrupt")
    with pytest.raises(KeyboardInterrupt) as caught:
        graph.branches.create("side")
    failpoints.disarm_all()
    there = "side" in graph.branches.list()
    assert there == (failpoint == "publish.after_commit")
    expected = "no commit was made; finished steps remain" if there else "nothing"
    assert expected in caught.value.__notes__[0]


def test_ctrl_c_is_held_back_until_it_insists() -> None:
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupts():
        for _ in range(INTERRUPTS_MAX - 1):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
