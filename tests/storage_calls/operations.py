"""The operations whose storage calls are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.storage_calls.histories import WRITTEN

import omnigraph
from omnigraph import Graph
from omnigraph.storage.lance import session as lance_session

CLASSES = ("GET", "HEAD", "PUT", "LIST", "DELETE")


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph to measure on, and the names of its newest rows, newest last."""

    graph: Graph
    newest: tuple[str, ...]


Run = Callable[[Subject, int], object]


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table: ``prepare`` is not counted, ``run`` is, several times.

    ``flat`` are the classes that must not grow with history. What reads history may read more.
    """

    name: str
    run: Run
    prepare: Run | None = None
    types_min: int = 1
    flat: tuple[str, ...] = CLASSES


def _forget_caches(subject: Subject, n: int) -> None:
    """What a new process starts with."""
    lance_session._session = None


def _open(subject: Subject, n: int) -> None:
    omnigraph.open(subject.graph.uri).snapshot()


def _snapshot(subject: Subject, n: int) -> None:
    subject.graph.snapshot()


def _snapshot_of_a_commit(subject: Subject, n: int) -> None:
    subject.graph.snapshot(commit=_commits[subject.graph.uri])


def _choose_a_commit(subject: Subject, n: int) -> None:
    if subject.graph.uri not in _commits:
        _commits[subject.graph.uri] = subject.graph.history.commits(limit=4)[-1].commit_id


_commits: dict[str, str] = {}


def _create_branch(subject: Subject, n: int) -> None:
    subject.graph.branches.create(f"branch-{n}")


def _write_on_branch(subject: Subject, n: int) -> None:
    with subject.graph.write(f"branch-{n}") as w:
        w.insert(WRITTEN, {"name": f"on branch {n}"})


def _insert(subject: Subject, n: int) -> None:
    with subject.graph.write() as w:
        w.insert(WRITTEN, {"name": f"new {n}"})


def _insert_two_types(subject: Subject, n: int) -> None:
    with subject.graph.write() as w:
        w.insert(WRITTEN, {"name": f"both {n}"})
        w.insert("T1", {"name": f"both {n}"})


def _update(subject: Subject, n: int) -> None:
    with subject.graph.write() as w:
        w.update(WRITTEN, subject.newest[n], {"n": n + 1})


def _delete(subject: Subject, n: int) -> None:
    with subject.graph.write() as w:
        w.delete(WRITTEN, subject.newest[n + 5])


OPERATIONS = (
    Operation("open, cold", _open, prepare=_forget_caches),
    Operation("snapshot, warm", _snapshot),
    Operation(
        "snapshot of a commit",
        _snapshot_of_a_commit,
        prepare=_choose_a_commit,
        flat=("HEAD", "PUT", "LIST", "DELETE"),
    ),
    Operation("create a branch", _create_branch),
    Operation("first write on a branch", _write_on_branch),
    Operation("insert into one type", _insert),
    Operation("insert into two types", _insert_two_types, types_min=2),
    Operation("update one node", _update),
    Operation("delete one node", _delete),
)
