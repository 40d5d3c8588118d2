"""A branch is deleted during an operation on it: at every single storage call.

Whatever the operation, it either succeeds on the state it has pinned or says that the branch does
not exist; never that some file or table is missing. ``OMNIGRAPH_TEST_DELETIONS`` is the number of
calls per operation at which the branch is deleted (0: at all of them).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchNotFound, RefNotFound
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.objects.obstore_store import ObstoreObjects
from tests.graphs import people_graph

POINTS = int(os.environ.get("OMNIGRAPH_TEST_DELETIONS", "4"))
QUERY = "query q() { match { $p: Person  $p knows $f } return { $p.name  $f.name as friend } }"
CALLS: list[tuple[type, str]] = [
    *((TableStore, name) for name in ("open", "open_newest", "fork", "commit_rebasing")),
    *((TableStore, name) for name in ("has_version", "transaction", "fork_point")),
    *((PinnedTable, name) for name in ("scan", "take")),
    *((ObstoreObjects, name) for name in ("get", "list", "exists", "put_if_absent", "put")),
]


@dataclass
class Tripwire:
    """Counts the calls to the storage, and acts before one of them."""

    at: int | None = None
    act: Callable[[], None] = lambda: None
    seen: int = 0
    armed: bool = False

    def step(self) -> None:
        if not self.armed:
            return
        self.seen += 1
        if self.seen - 1 == self.at:
            self.armed = False  # what it does is not counted
            self.act()
            self.armed = True


@pytest.fixture
def tripwire(monkeypatch: pytest.MonkeyPatch) -> Tripwire:
    wire = Tripwire()

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            wire.step()
            return call(*given, **named)

        return run

    for owner, name in CALLS:
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    return wire


def _insert(graph: Graph, branch: str) -> None:
    with graph.write(branch) as w:
        w.insert("Person", {"name": "new"})


def _page(graph: Graph, branch: str) -> None:
    diff = graph.diff("main", branch)
    diff.page(1)
    _ = diff.stats


OPERATIONS: dict[str, Callable[[Graph, str], object]] = {
    "snapshot": lambda graph, branch: graph.snapshot(branch),
    "schema": lambda graph, branch: graph.schema(branch),
    "query": lambda graph, branch: graph.query(QUERY, branch=branch),
    "query at": lambda graph, branch: graph.query(QUERY, at=branch),
    "explain": lambda graph, branch: graph.explain(QUERY, branch=branch),
    "export": lambda graph, branch: list(graph.export(branch)),
    "entity": lambda graph, branch: graph.entity("node:Person", "ana", branch),
    "diff": lambda graph, branch: list(graph.diff("main", branch)),
    "diff page": _page,
    "commits": lambda graph, branch: graph.history.commits(branch),
    "ancestry": lambda graph, branch: list(graph.history.ancestry(branch)),
    "feed": lambda graph, branch: graph.history.changes(branch, start="beginning"),
    "baseline": lambda graph, branch: list(graph.history.baseline(branch)),
    "history": lambda graph, branch: list(graph.history.entity("node:Person", "ana", branch)),
    "blame": lambda graph, branch: graph.history.blame("node:Person", "ana", branch),
    "indexes": lambda graph, branch: graph.maintenance.indexes(branch),
    "write": _insert,
    "load": lambda graph, branch: graph.load(
        {"City": [{"name": "Rome"}]}, mode="append", branch=branch
    ),
    "mutate": lambda graph, branch: graph.mutate(
        'query q() { update Person set { age: 1 } where name = "ana" }', branch=branch
    ),
    "merge from": lambda graph, branch: graph.merge(branch),
    "merge into": lambda graph, branch: graph.merge("other", branch),
    "merge preview": lambda graph, branch: graph.merge(branch, dry_run=True),
    "cherry-pick": lambda graph, branch: graph.cherry_pick(
        graph.history.commits("other")[0].commit_id, branch
    ),
    "restore": lambda graph, branch: graph.restore(branch, {"node:Person": None}),
    "revert": lambda graph, branch: graph.revert(
        graph.history.commits(branch)[0].commit_id, branch
    ),
    "reset": lambda graph, branch: graph.reset(graph.history.commits(branch)[1].commit_id, branch),
    "fork": lambda graph, branch: graph.branches.create(f"from-{branch}", branch),
    "tag": lambda graph, branch: graph.tags.create(f"tag-{branch}", branch),
    "optimize": lambda graph, branch: graph.maintenance.optimize(branch),
    "build indexes": lambda graph, branch: graph.maintenance.build_indexes(branch),
    "schema apply": lambda graph, branch: graph.apply_schema(
        graph.schema(branch).source + "\nnode Extra { name: String @key }", branch=branch
    ),
    "schema plan": lambda graph, branch: graph.plan_schema(
        graph.schema(branch).source + "\nnode Extra { name: String @key }", branch=branch
    ),
}
BESIDE: dict[str, Callable[[Graph], object]] = {
    "cleanup": lambda graph: graph.maintenance.cleanup(keep=1, confirm=True),
    "check": lambda graph: _found(graph),
    "recover": lambda graph: graph.maintenance.recover(),
    "commit": lambda graph: graph.history.commit(graph.history.commits()[-1].commit_id),
    "ancestry": lambda graph: list(graph.history.ancestry()),
    "blame": lambda graph: graph.history.blame("node:Person", "ana"),
    "merge": lambda graph: graph.merge("other", dry_run=True),
    "upgrade": lambda graph: graph.maintenance.upgrade(),
}
_numbers = count()


def _found(graph: Graph) -> None:
    assert graph.maintenance.check().findings == []


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deletion") / "g"


@pytest.fixture(scope="module")
def graph(where: Path) -> Iterator[Graph]:
    graph = people_graph(where)
    graph.branches.create("other")
    with graph.write("other") as w:
        w.insert("City", {"name": "Bonn"})
    yield graph
    assert omnigraph.open(where).maintenance.check().findings == []


def fresh_branch(graph: Graph) -> str:
    """A branch with copies of its own of some tables, and some history."""
    name = f"b{next(_numbers)}"
    graph.branches.create(name)
    with graph.write(name) as w:
        w.insert("Person", {"name": f"of {name}"})
        w.insert_edge("Knows", "bo", "ana")
    with graph.write(name) as w:
        w.insert("Person", {"name": f"more of {name}"})
    return name


class Deleter:
    """Another process that deletes branches when it is told to."""

    def __init__(self, where: Path) -> None:
        command = [sys.executable, "-m", "tests.threads.deleter", str(where)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, name: str, more: str = "") -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, more, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0


@pytest.fixture(scope="module")
def delete(graph: Graph, where: Path) -> Iterator[Deleter]:
    deleter = Deleter(where)
    yield deleter
    deleter.end()


def points(calls: int) -> list[int]:
    """The calls at which the branch is deleted, the first and the last among them."""
    if POINTS == 0 or calls <= POINTS:
        return list(range(calls))
    return sorted({round(n * (calls - 1) / (POINTS - 1)) for n in range(POINTS)})


def explore(
    graph: Graph, delete: Deleter, wire: Tripwire, run: Callable[[str], object]
) -> Iterator[tuple[int, BaseException | None]]:
    """What an operation comes to when the branch is deleted before its n-th call."""
    wire.at, wire.seen, wire.armed = None, 0, True
    name = _unarmed(wire, lambda: fresh_branch(graph))
    run(name)
    wire.armed = False
    delete(name)
    for at in points(wire.seen):
        name = fresh_branch(graph)
        wire.act = lambda name=name: delete(name)
        wire.at, wire.seen, wire.armed = at, 0, True
        try:
            run(name)
            raised: BaseException | None = None
        except BaseException as error:
            raised = error
        wire.armed = False
        yield at, raised
        delete(name)


def _unarmed(wire: Tripwire, make: Callable[[], str]) -> str:
    wire.armed = False
    made = make()
    wire.armed = True
    return made


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_succeeds_or_says_that_the_branch_is_gone(
    graph: Graph, delete: Deleter, tripwire: Tripwire, name: str
) -> None:
    operation = OPERATIONS[name]
    for at, raised in explore(graph, delete, tripwire, lambda branch: operation(graph, branch)):
        if raised is not None and not isinstance(raised, BranchNotFound | RefNotFound):
            raise AssertionError(f"{name}, deleted before call {at}") from raised


@pytest.mark.parametrize("name", BESIDE)
def test_what_looks_at_all_branches_leaves_out_one_that_goes_away(
    graph: Graph, delete: Deleter, tripwire: Tripwire, name: str
) -> None:
    for at, raised in explore(graph, delete, tripwire, lambda _: BESIDE[name](graph)):
        if raised is not None:
            raise AssertionError(f"{name}, deleted before call {at}") from raised


def test_a_name_that_was_given_to_another_branch_meanwhile_is_that_of_a_branch_that_is_gone(
    graph: Graph, delete: Deleter, tripwire: Tripwire
) -> None:
    """Reading the old one fails, and says so; the new one is not mistaken for it."""
    for at in range(8):
        name = fresh_branch(graph)

        tripwire.act = lambda name=name: delete(name, "again")
        tripwire.at, tripwire.seen, tripwire.armed = at, 0, True
        try:
            found = list(graph.export(name))
        except BranchNotFound:
            found = []
        tripwire.armed = False
        lines = b"".join(found)
        assert (b"of " + name.encode() in lines) == (b"more of " + name.encode() in lines)
        delete(name)
