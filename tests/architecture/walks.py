"""Traces a call through the rooms of ``src/omnigraph``: which it enters, and who calls back up.

A *room* is a folder of ``src/omnigraph``. Imports go down (``.importlinter``), so an ordinary call
goes down or stays in its room, and its return comes back with a value. The one way to go up is a
*callback*: a lower room calls a function, method or iterator that a higher room handed down. The
lower room is then left upwards and entered again when the callback returns, and a reader of the
lower room cannot see what runs there. That is what this module calls ping-pong:

    a call from code of one room to code of a room above or beside it, whatever lies between them
    on the stack (the interpreter, Arrow, Lance, Spark).

Calling down twice in a row (down, return, down) is not: every stop knows the next one. Resuming a
generator of a higher room counts, since the lower room drives it.

``python -m tests.architecture.walks query`` prints a walk; ``tests/architecture/test_walks.py``
compares the callbacks with the exceptions that ``ARCHITECTURE.md`` names.
"""

from __future__ import annotations

import configparser
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from tests.graphs import people_graph
from tests.support.inline_tasks import InlineTasks

import omnigraph
from omnigraph.spark import engine_choice

ROOT = Path(__file__).parents[2]
SOURCE = str(ROOT / "src" / "omnigraph") + "/"


@dataclass(frozen=True, slots=True)
class Place:
    """A function of ``src/omnigraph``."""

    module: str
    function: str

    @property
    def room(self) -> str:
        return self.module.partition("/")[0].removesuffix(".py")

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


@dataclass(frozen=True, slots=True)
class Stop:
    """A call that entered another room, and how many rooms were open already."""

    depth: int
    place: Place


@dataclass(slots=True)
class Walk:
    """What one call did: the functions it called, the rooms it entered, the callbacks."""

    functions: dict[Place, None] = field(default_factory=dict)
    """Every function once, in the order of the first calls."""
    stops: list[Stop] = field(default_factory=list)
    callbacks: Counter[tuple[Place, Place]] = field(default_factory=Counter)

    def modules(self) -> list[Place]:
        """The first function that was called in each module."""
        first: dict[str, Place] = {}
        for place in self.functions:
            first.setdefault(place.module, place)
        return list(first.values())


@cache
def ranks() -> dict[str, int]:
    """The layer of each room, counted from the top."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:rooms"]["layers"].strip().splitlines()
    return {room.strip(): rank for rank, line in enumerate(layers) for room in line.split("|")}


def is_up(caller: Place, callee: Place) -> bool:
    """Whether a call leaves its room upwards, or to a room beside it."""
    if caller.room == callee.room:
        return False
    return ranks()[callee.room] <= ranks()[caller.room]


@contextmanager
def traced() -> Iterator[Walk]:
    """Records every call between functions of the product, in all threads that start meanwhile."""
    walk = Walk()
    stacks = threading.local()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(SOURCE):
            return
        stack: list[tuple[Place, int]] = stacks.__dict__.setdefault("stack", [])
        if event == "return":
            if stack:
                stack.pop()
            return
        place = Place(code.co_filename.removeprefix(SOURCE), code.co_qualname)
        walk.functions.setdefault(place)
        caller, depth = stack[-1] if stack else (None, 0)
        if caller is None or caller.room != place.room:
            depth += 1
            walk.stops.append(Stop(depth, place))
            if caller is not None and is_up(caller, place):
                walk.callbacks[caller, place] += 1
        stack.append((place, depth))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


QUERY = """
query older($age: I32) {
  match { $p: Person $p knows $friend $friend.age > $age }
  return { $p.name, count($friend) as friends }
  order { $p.name }
  limit 5
}
"""
MUTATION = """
query moves($name: String) {
  insert Person { name: $name, age: 20 }
  insert Knows { from: $name, to: "ana" }
  update Person set { age: 31 } where name = "ana"
}
"""
LINES = b"""
{"type": "Person", "data": {"name": "cy", "age": 25}}
{"edge": "Knows", "from": "cy", "to": "ana"}
"""


def query(folder: Path) -> Walk:
    """A cold read query: pattern, condition, aggregate, order."""
    people_graph(folder / "graph")
    graph = omnigraph.open(folder / "graph", read_only=True)
    with traced() as walk:
        graph.query(QUERY, params={"age": 1}).rows()
    return walk


def mutation(folder: Path) -> Walk:
    """A write query that inserts and updates."""
    graph = people_graph(folder / "graph")
    with traced() as walk:
        graph.mutate(MUTATION, params={"name": "cy"})
    return walk


def spark_load(folder: Path) -> Walk:
    """A bulk load, with its tasks in this process so that they are seen, too."""
    graph = people_graph(folder / "graph")
    (folder / "data.jsonl").write_bytes(LINES)
    start, engine_choice.start_tasks = engine_choice.start_tasks, lambda *_: InlineTasks()
    try:
        with traced() as walk:
            graph.load(folder / "data.jsonl", mode="merge", engine="spark")
    finally:
        engine_choice.start_tasks = start
    return walk


def merge(folder: Path) -> Walk:
    """A merge of two branches that both changed."""
    graph = people_graph(folder / "graph")
    graph.branches.create("work")
    with graph.write("work") as w:
        w.update("Person", "ana", {"age": 40})
        w.insert("Person", {"name": "cy"})
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    with traced() as walk:
        graph.merge("work")
    return walk


WALKS: dict[str, Callable[[Path], Walk]] = {
    "query": query,
    "mutation": mutation,
    "spark load": spark_load,
    "merge": merge,
}


def main(names: list[str]) -> None:
    for name in names or WALKS:
        with tempfile.TemporaryDirectory() as folder:
            walk = WALKS[name](Path(folder))
        print(f"## {name}: {len(walk.stops)} entries into another room")
        for place in walk.modules():
            print(f"  {place}")
        print("  callbacks:")
        for (caller, callee), times in walk.callbacks.items():
            print(f"    {caller} -> {callee} ({times})")


if __name__ == "__main__":
    main(sys.argv[1:])
