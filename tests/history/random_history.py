"""Random histories of a small graph: writes, loads, branches, merges, resets, upkeep."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation, EntityNotFound, MergeConflicts

SCHEMA = """
node Thing {
  name: String @key
  n: I64?
  text: String?
}
node Spot { name: String @key }
edge Near: Thing -> Spot { w: F64? }
"""
NAMES = [f"t{number}" for number in range(6)]
SPOTS = ["s0", "s1"]


def make(where: Path, seed: int, steps: int) -> Graph:
    """A graph after so many random steps."""
    graph = omnigraph.init(where, SCHEMA)
    chance = random.Random(seed)
    for _ in range(steps):
        step = chance.choices(list(STEPS), weights=list(STEPS.values()))[0]
        with suppress(ConstraintViolation, EntityNotFound, MergeConflicts):
            step(graph, chance)
    assert graph.maintenance.check().findings == []
    return graph


def _write(graph: Graph, chance: random.Random) -> None:
    with graph.write(chance.choice(graph.branches.list()), message="write") as w:
        for name in chance.sample(NAMES, chance.randint(1, 3)):
            action = chance.randrange(4)
            if action == 0:
                w.replace("Thing", {"name": name, "n": chance.randrange(3)})
            elif action == 1:
                w.update("Thing", name, {chance.choice(["n", "text"]): None})
            elif action == 2:
                w.update("Thing", name, {"n": chance.randrange(3), "text": chance.choice("ab")})
            else:
                w.delete("Thing", name)


def _connect(graph: Graph, chance: random.Random) -> None:
    with graph.write(chance.choice(graph.branches.list())) as w:
        w.replace("Spot", {"name": chance.choice(SPOTS)})
        w.replace("Thing", {"name": chance.choice(NAMES)})
        w.insert_edge("Near", chance.choice(NAMES), chance.choice(SPOTS), {"w": 0.5})


def _overwrite(graph: Graph, chance: random.Random) -> None:
    rows = [{"name": name, "n": chance.randrange(2)} for name in chance.sample(NAMES, 4)]
    graph.load(
        {"Thing": rows, "Near": []}, mode="overwrite", branch=chance.choice(graph.branches.list())
    )


def _merge_load(graph: Graph, chance: random.Random) -> None:
    rows = [{"name": name, "n": chance.randrange(3)} for name in chance.sample(NAMES, 3)]
    graph.load({"Thing": rows}, mode="merge", branch=chance.choice(graph.branches.list()))


def _fork(graph: Graph, chance: random.Random) -> None:
    if len(graph.branches.list()) < 4:
        name = f"b{chance.randrange(1_000_000)}"
        graph.branches.create(name, chance.choice(graph.branches.list()))


def _merge(graph: Graph, chance: random.Random) -> None:
    if len(graph.branches.list()) > 1:
        source, target = chance.sample(graph.branches.list(), 2)
        graph.merge(source, target, strategy=chance.choice(["ours", "theirs"]))


def _reset(graph: Graph, chance: random.Random) -> None:
    branch = chance.choice(graph.branches.list())
    graph.reset(chance.choice(graph.history.commits(branch)).commit_id, branch=branch)


STEPS: dict[Callable[[Graph, random.Random], None], int] = {
    _write: 12,
    _connect: 3,
    _merge_load: 2,
    _overwrite: 1,
    _fork: 2,
    _merge: 3,
    _reset: 1,
}
