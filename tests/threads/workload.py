"""Operations that threads run on one graph, and a model of what they were told.

Every written entity has a name of its own, and every write stores it in two types, so a reader
knows a torn read when it sees one. A write that was acknowledged must be found exactly once, one
that was refused nowhere. Each operation names the errors that are true answers when others are at
work; anything else is a failure, whatever its type.
"""

from __future__ import annotations

import json
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    ChangeFeedGap,
    ChangesRefused,
    HistoryReclaimed,
    InvalidInput,
    OmnigraphError,
    PreconditionFailed,
    RefNotFound,
    SchemaChanged,
    TagExists,
    TagNotFound,
)

SCHEMA = """
node Left { name: String @key  n: I64? }
node Right { name: String @key }
edge Pair: Left -> Right
"""
WIDER = SCHEMA.replace("n: I64?", "n: I64?  extra: I32? @index")
PAIRS = """
query pairs() {
  match { $a: Left  $a pair $b }
  return { $a.name as left  $b.name as right }
}
"""
COUNTER = "counter"
BRANCHES_MAX = 12
"""Branches that stay: every one more costs each listing of them."""


@dataclass
class Model:
    """What was acknowledged and what was refused, by all threads of one process."""

    merged: set[str] = field(default_factory=set)  # names that main must have
    on_branch: dict[str, str] = field(default_factory=dict)  # name: the branch that must have it
    refused: set[str] = field(default_factory=set)  # names that nobody may find
    deleted: set[str] = field(default_factory=set)  # branches
    counted: int = 0
    done: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)  # true refusals, by operation and code
    failures: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "merged": sorted(self.merged),
            "on_branch": self.on_branch,
            "refused": sorted(self.refused),
            "deleted": sorted(self.deleted),
            "counted": self.counted,
            "done": self.done,
            "expected": self.expected,
            "failures": self.failures,
        }

    def add(self, other: dict[str, Any]) -> None:
        """What another process was told."""
        self.merged.update(other["merged"])
        self.on_branch.update(other["on_branch"])
        self.refused.update(other["refused"])
        self.deleted.update(other["deleted"])
        self.counted += other["counted"]
        self.done.update(other["done"])
        self.expected.update(other["expected"])
        self.failures += other["failures"]


class Worker:
    """One thread: its operations on a handle that it shares with others."""

    def __init__(self, graph: Graph, name: str, model: Model, lock: threading.Lock) -> None:
        self.graph = graph
        self.name = name
        self.model = model
        self.lock = lock
        self.random = random.Random(name)
        self._count = 0
        self._cursor: str | None = None
        self._known: list[str] = []

    def run(self, operation: str, stop: Callable[[], bool]) -> None:
        """Repeat an operation until told to stop, at least once."""
        while True:
            self.attempt(operation)
            if stop():
                return

    def attempt(self, operation: str) -> None:
        doing, answers = OPERATIONS[operation]
        try:
            doing(self)
        except answers as answer:
            with self.lock:
                self.model.expected[f"{operation} {answer.code}"] += 1
        except BaseException as error:
            with self.lock:
                self.model.failures.append(_told(operation, error))
        else:
            with self.lock:
                self.model.done[operation] += 1

    # -- names and branches ------------------------------------------------------------------------

    def new_name(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}"

    def some_branch(self) -> str:
        """A branch that somebody else may be deleting, or has deleted since it was listed."""
        if self.random.random() < 0.5:
            self._known = [name for name in self.graph.branches.list() if name != "main"]
        if not self._known:
            self._known = [f"fork.{self.new_name()}"]
            self.graph.branches.create(self._known[0])
        return self.random.choice(self._known)

    # -- writing -----------------------------------------------------------------------------------

    def insert(self, branch: str = "main") -> str:
        name = self.new_name()
        try:
            with self.graph.write(branch) as w:
                w.insert("Left", {"name": name})
                w.insert("Right", {"name": name})
                w.insert_edge("Pair", name, name)
        except BaseException:
            with self.lock:
                self.model.refused.add(name)
            raise
        with self.lock:
            if branch == "main":
                self.model.merged.add(name)
            else:
                self.model.on_branch[name] = branch
        return name

    def write(self) -> None:
        self.insert()

    def write_branch(self) -> None:
        self.insert(self.some_branch())

    def count_up(self) -> None:
        """Read and write back, which only one of several may do at a time."""
        head = self.graph.snapshot().commit_id
        known = self.graph.query(
            f'query q() {{ match {{ $c: Left {{ name: "{COUNTER}" }} }} return {{ $c.n as n }} }}',
            at=head,
        ).rows()[0]["n"]
        self.graph.mutate(
            f'query q($n: I64) {{ update Left set {{ n: $n }} where name = "{COUNTER}" }}',
            params={"n": known + 1},
            expected_head=head,
        )
        with self.lock:
            self.model.counted += 1

    def fork(self) -> None:
        """Create a branch of a name that was never used before; too many of them are deleted."""
        source = "main" if self.random.random() < 0.8 else self.some_branch()
        self.graph.branches.create(f"fork.{self.new_name()}", source)
        if len(self.graph.branches.list()) > BRANCHES_MAX:
            self.delete()

    def delete(self) -> None:
        name = self.some_branch()
        self.graph.branches.delete(name, force=True)
        with self.lock:
            self.model.deleted.add(name)

    def merge(self) -> None:
        """A branch of its own into main, and one that others may be deleting."""
        mine = f"mine.{self.new_name()}"
        self.graph.branches.create(mine)
        names = [self.insert(mine)]
        merged = self.graph.merge(mine, delete_branch=True)
        with self.lock:
            self.model.merged.update(names)
            if merged.branch_deleted:  # not while others have forked, tagged or written to it
                self.model.deleted.add(mine)
            else:
                self.model.expected["merge keeps branch"] += 1
        self.graph.merge(self.some_branch())

    def tag(self) -> None:
        name = f"tag-{self.random.randrange(3)}"
        self.graph.tags.create(name, self.random.choice(["main", self.some_branch()]))
        self.graph.tags.delete(name)

    # -- upkeep ------------------------------------------------------------------------------------

    def optimize(self) -> None:
        self.graph.maintenance.optimize(self.random.choice(["main", "main", self.some_branch()]))

    def index(self) -> None:
        self.graph.maintenance.build_indexes()
        with suppress(InvalidInput):  # another thread has dropped them
            self.graph.maintenance.drop_indexes("node:Left")

    def apply_schema(self) -> None:
        self.graph.apply_schema(self.random.choice([SCHEMA, WIDER]))

    def cleanup(self) -> None:
        self.graph.maintenance.cleanup(keep=self.random.choice([2, 50]), confirm=True)

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> None:
        found = self.graph.query(PAIRS).rows()
        lefts = [row["left"] for row in found]
        assert lefts == [row["right"] for row in found], "a torn read"
        assert len(lefts) == len(set(lefts)), "an entity is there twice"
        self.graph.query(PAIRS, branch=self.some_branch())

    def export(self) -> None:
        names = exported(self.graph.export(self.random.choice(["main", self.some_branch()])))
        assert names["Left"] - {COUNTER} == names["Right"], "a torn export"

    def feed(self) -> None:
        try:
            page = self.graph.history.changes(cursor=self._cursor)
        except (ChangeFeedGap, ChangesRefused):
            self._cursor = None
            raise
        self._cursor = page.cursor or self._cursor
        self.graph.history.changes(self.some_branch(), start="beginning", commits_max=3)

    def diff(self) -> None:
        list(self.graph.diff("main", self.some_branch()))

    def look_back(self) -> None:
        self.graph.history.commits(self.some_branch(), limit=5)
        self.graph.history.blame("node:Left", COUNTER)
        list(self.graph.history.entity("node:Left", COUNTER, self.some_branch()))


Answers = tuple[type[OmnigraphError], ...]
_GONE: Answers = (BranchNotFound,)
_OLD: Answers = (BranchNotFound, HistoryReclaimed)
_WRITES: Answers = (BranchNotFound, SchemaChanged)
OPERATIONS: dict[str, tuple[Callable[[Worker], None], Answers]] = {
    "read": (Worker.read, _GONE),
    "write": (Worker.write, (SchemaChanged,)),
    "write branch": (Worker.write_branch, _WRITES),
    "count": (Worker.count_up, (PreconditionFailed,)),
    "fork": (Worker.fork, (BranchNotFound, BranchInUse, RefNotFound)),
    "delete branch": (Worker.delete, (BranchNotFound, BranchInUse)),
    "merge": (Worker.merge, _WRITES),
    "tag": (Worker.tag, (*_OLD, RefNotFound, TagExists, TagNotFound)),
    "optimize": (Worker.optimize, _GONE),
    "index": (Worker.index, ()),
    "schema apply": (Worker.apply_schema, ()),
    "cleanup": (Worker.cleanup, ()),
    "export": (Worker.export, _GONE),
    "feed": (Worker.feed, (*_OLD, ChangeFeedGap, ChangesRefused)),
    "diff": (Worker.diff, (BranchNotFound, RefNotFound)),
    "look back": (Worker.look_back, _OLD),
}


def start(where: str) -> Graph:
    """A graph for all of it: one counter, and some branches."""
    graph = omnigraph.init(where, SCHEMA)
    with graph.write() as w:
        w.insert("Left", {"name": COUNTER, "n": 0})
    for number in range(3):
        graph.branches.create(f"first-{number}")
    return graph


def race(workers: list[Worker], operations: Iterable[str], seconds: float) -> None:
    """Let each worker repeat its operation, all at once."""
    until = time.monotonic() + seconds
    gate = threading.Barrier(len(workers))

    def work(worker: Worker, operation: str) -> None:
        gate.wait()
        worker.run(operation, lambda: time.monotonic() > until)

    pairs = zip(workers, operations, strict=True)
    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def exported(chunks: Iterable[bytes]) -> dict[str, set[str]]:
    """The names of an export by node type; each may be there once."""
    found: dict[str, list[str]] = {"Left": [], "Right": []}
    for line in b"".join(chunks).splitlines():
        record = json.loads(line)
        if record.get("type") in found:
            found[record["type"]].append(record["data"]["name"])
    assert all(len(names) == len(set(names)) for names in found.values()), "stored twice"
    return {name: set(names) for name, names in found.items()}


def check(where: str, model: Model) -> None:
    """Everything that was acknowledged is there, nothing that was refused, and the graph is whole.

    Names on branches may also be on those they were merged into or that were forked later.
    """
    assert model.failures == [], "\n\n".join(model.failures[:8])
    graph = omnigraph.open(where)
    assert graph.maintenance.pending_writes() == []
    assert graph.maintenance.check().findings == []
    live = set(graph.branches.list())
    assert not live & model.deleted
    known = {branch: exported(graph.export(branch))["Left"] for branch in live}
    assert model.merged <= known["main"]
    for name, branch in model.on_branch.items():
        assert branch not in live or name in known[branch]
    for names in known.values():
        assert not names & model.refused
        assert names <= {*model.merged, *model.on_branch, COUNTER}
    assert graph.entity("node:Left", COUNTER)["n"] == model.counted


def _told(operation: str, error: BaseException) -> str:
    text = "".join(traceback.format_exception(error, limit=-12))
    return f"{operation}: {type(error).__name__}: {error}\n{text}"
