"""Random pairs of branches with rules across entities, and a brute-force model of merging them.

A state is a mapping from (type key, id) to the columns of the entity. The model tries every
combination of outcomes of the entities that clash and looks at each result as a whole, so it shares
nothing with the evaluator, which looks at all outcomes at once.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.merge.test_three_way import contested, expected

import omnigraph
from omnigraph import Graph

Key = tuple[str, str]
State = dict[Key, dict[str, Any]]

PEOPLE = [f"p{n}" for n in range(5)]
CITIES = ["c0", "c1"]
EDGES = {"edge:K": [f"k{n}" for n in range(7)], "edge:L": [f"l{n}" for n in range(3)]}
TARGETS = {"edge:K": "node:P", "edge:L": "node:C"}
CARD_MAX = 2
RANGE_MAX = 2
WIDE = 2**40
_INSIDE = (None, *range(RANGE_MAX + 1))


@dataclass(frozen=True)
class Shape:
    """The schema of a side: what it changed of the common one."""

    changes: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        number = "I64?" if "widen" in self.changes else "I32?"
        return f"""
node P {{
  name: String @key
  a: {number}
  {"" if "drop" in self.changes else "b: I32?"}
  email: String? @unique
  {f"@range(a, 0..{RANGE_MAX})" if "range" in self.changes else ""}
}}
node C {{ name: String @key  n: I32? }}
edge K: P -> P @card(0..{CARD_MAX}) {{ w: I32? }}
edge L: P -> C {{ w: I32? }}
"""


@dataclass
class Pair:
    """Two branches, ``main`` and ``dev``, that grew out of one state."""

    base: State
    ours: State
    theirs: State
    our_shape: Shape = field(default_factory=Shape)
    their_shape: Shape = field(default_factory=Shape)

    @property
    def shape(self) -> Shape:
        return Shape(self.our_shape.changes | self.their_shape.changes)

    def build(self, where: Any) -> Graph:
        graph = omnigraph.init(where, Shape().text)
        write(graph, "main", {}, self.base)
        graph.branches.create("dev")
        for branch, state, shape in (
            ("main", self.ours, self.our_shape),
            ("dev", self.theirs, self.their_shape),
        ):
            first = {"widen"} & shape.changes  # a wider type before the values that need it
            if first:
                graph.apply_schema(Shape(frozenset(first)).text, branch=branch)
            write(graph, branch, self.base, state)
            if shape.changes - first:
                graph.apply_schema(shape.text, branch=branch)
        return graph

    # -- the outcome -------------------------------------------------------------------------------

    def side(self, name: str) -> State:
        """A state without the properties that the merged schema drops."""
        state: State = getattr(self, name)
        if "drop" not in self.shape.changes:
            return state
        return {key: {n: v for n, v in row.items() if n != "b"} for key, row in state.items()}

    def images(self, key: Key) -> tuple[Any, Any, Any]:
        """The base, the source and the target of an entity."""
        return tuple(self.side(name).get(key) for name in ("base", "theirs", "ours"))  # type: ignore[return-value]

    def keys(self) -> list[Key]:
        return sorted({*self.base, *self.ours, *self.theirs})

    def outcomes(self, level: Any, strategy: Any) -> tuple[State, dict[Key, list[Any]]]:
        """What is decided, and the possible outcomes of what clashes."""
        decided: State = {}
        open_: dict[Key, list[Any]] = {}
        for key in self.keys():
            images = self.images(key)
            found = expected(*images, level, strategy)
            if not isinstance(found, str):
                if found is not None:
                    decided[key] = found
                continue
            _, source, target = images
            options = [expected(*images, level, side) for side in ("ours", "theirs")]
            if source is not None and target is not None and not contested(*images):
                options += [source, target]
            open_[key] = [one for at, one in enumerate(options) if one not in options[:at]]
        return decided, open_

    def results(self, level: Any, strategy: Any) -> Iterator[State]:
        """The result for every combination of outcomes."""
        decided, open_ = self.outcomes(level, strategy)
        for chosen in itertools.product(*open_.values()):
            picked = dict(zip(open_, chosen, strict=True))
            yield {**decided, **{key: row for key, row in picked.items() if row is not None}}

    def dropped_and_changed(self) -> bool:
        """Whether a side changed values of the property that only the other one dropped."""
        if "drop" in self.our_shape.changes & self.their_shape.changes:
            return False
        for shape, side in ((self.their_shape, self.ours), (self.our_shape, self.theirs)):
            if "drop" not in shape.changes:
                continue
            for key, row in side.items():
                if key[0] == "node:P" and row.get("b") != self.base.get(key, {}).get("b"):
                    return True
        return False


def write(graph: Graph, branch: str, before: State, after: State) -> None:
    """Bring a branch from one state to another."""
    with graph.write(branch) as w:
        for key, id in before.keys() - after.keys():
            kind, _, name = key.partition(":")
            if kind == "node":
                w.delete(name, id)
            else:
                row = before[key, id]
                if {("node:P", row["from"]), (TARGETS[key], row["to"])} <= after.keys():
                    w.delete_edge(name, id)
    records = []
    for (key, id), row in sorted(after.items(), reverse=True):
        if before.get((key, id)) == row:
            continue
        kind, _, name = key.partition(":")
        if kind == "node":
            records.append({"type": name, "data": {"name": id, **row}})
        else:
            rest = {n: v for n, v in row.items() if n not in ("from", "to")}
            ends = {"from": row["from"], "to": row["to"]}
            records.append({"edge": name, **ends, "data": {"id": id, **rest}})
    if records:
        graph.load(records, mode="merge", branch=branch)


def read(graph: Graph, branch: str = "main") -> State:
    """What a branch holds."""
    found: State = {}
    for line in b"".join(graph.export(branch=branch)).splitlines():
        record = json.loads(line)
        row = dict(record["data"])
        id = row.pop("id")
        if "edge" in record:
            found[f"edge:{record['edge']}", id] = {
                "from": record["from"],
                "to": record["to"],
                **row,
            }
        else:
            row.pop("name")
            found[f"node:{record['type']}", id] = row
    return found


# -- rules -----------------------------------------------------------------------------------------


@dataclass
class Broken:
    """The rules that a state breaks."""

    orphans: set[tuple[Key, str]] = field(default_factory=set)  # the edge, and the end
    unique: dict[str, set[str]] = field(default_factory=dict)  # people by email
    crowded: dict[str, set[str]] = field(default_factory=dict)  # edges by source
    outside: set[str] = field(default_factory=set)  # people whose number is out of range

    def __bool__(self) -> bool:
        return bool(self.orphans or self.unique or self.crowded or self.outside)


def broken(state: State, shape: Shape) -> Broken:
    found = Broken()
    holders: dict[str, set[str]] = defaultdict(set)
    leaving: dict[str, set[str]] = defaultdict(set)
    for (key, id), row in state.items():
        if key == "node:P" and row["email"] is not None:
            holders[row["email"]].add(id)
        if key == "node:P" and "range" in shape.changes and row["a"] not in _INSIDE:
            found.outside.add(id)
        if key.startswith("edge:"):
            for end, node in (("from", "node:P"), ("to", TARGETS[key])):
                if (node, row[end]) not in state:
                    found.orphans.add(((key, id), end))
        if key == "edge:K" and ("node:P", row["from"]) in state:
            leaving[row["from"]].add(id)
    found.unique = {email: ids for email, ids in holders.items() if len(ids) > 1}
    found.crowded = {source: ids for source, ids in leaving.items() if len(ids) > CARD_MAX}
    return found


# -- random pairs ----------------------------------------------------------------------------------


def random_pair(rng: random.Random, *, schemas: bool) -> Pair:
    base: State = {("node:C", id): {"n": 0} for id in CITIES}
    base |= {("node:P", id): {"a": 0, "b": 0, "email": None} for id in PEOPLE[:4]}
    base = edited(rng, base, 6, Shape())
    shapes = [Shape(), Shape()]
    if schemas:
        for at in (0, 1):
            chosen = rng.choice([(), (), ("drop",), ("widen",), ("range",), ("widen", "drop")])
            shapes[at] = Shape(frozenset(chosen))
        if rng.random() < 0.6:
            shapes[rng.randint(0, 1)] = Shape()
    ours, theirs = (edited(rng, base, rng.randint(1, 7), shape) for shape in shapes)
    return Pair(base, ours, theirs, *shapes)


def edited(rng: random.Random, state: State, edits: int, shape: Shape) -> State:
    """Some edits after which no rule is broken."""
    for _ in range(edits):
        after = _edit(rng, dict(state))
        if not broken(after, Shape()):
            state = after
    if "widen" in shape.changes and rng.random() < 0.5:
        id = rng.choice(PEOPLE[:4])
        if ("node:P", id) in state:
            state = {**state, ("node:P", id): {**state["node:P", id], "a": WIDE}}
    if "range" in shape.changes:
        state = {k: _clamped(row) if k[0] == "node:P" else row for k, row in state.items()}
    return state


def _clamped(row: dict[str, Any]) -> dict[str, Any]:
    return row if row["a"] is None or row["a"] <= RANGE_MAX else {**row, "a": RANGE_MAX}


def _edit(rng: random.Random, state: State) -> State:
    what = rng.random()
    if what < 0.4:
        key = ("node:P", rng.choice(PEOPLE))
        row = dict(state.get(key, {"a": None, "b": None, "email": None}))
        for name in rng.sample(["a", "b", "email"], rng.randint(1, 2)):
            emails = [None, "x", "y", "z"]
            row[name] = rng.choice(emails) if name == "email" else rng.choice([None, 0, 1, 2, 3])
        state[key] = row
    elif what < 0.55:
        _remove(state, ("node:P", rng.choice(PEOPLE)))
    elif what < 0.6:
        _remove(state, ("node:C", rng.choice(CITIES)))
    elif what < 0.65:
        state["node:C", rng.choice(CITIES)] = {"n": rng.randint(0, 2)}
    elif what < 0.9:
        kind = rng.choice(["edge:K", "edge:K", "edge:L"])
        to = PEOPLE if kind == "edge:K" else CITIES
        ends = {"from": rng.choice(PEOPLE), "to": rng.choice(to)}
        state[kind, rng.choice(EDGES[kind])] = {**ends, "w": rng.choice([None, 0, 1])}
    else:
        kind = rng.choice(["edge:K", "edge:L"])
        state.pop((kind, rng.choice(EDGES[kind])), None)
    return state


def _remove(state: State, key: Key) -> None:
    """Delete a node with its edges."""
    state.pop(key, None)
    for edge, row in list(state.items()):
        if edge[0].startswith("edge:"):
            ends = {("node:P", row["from"]), (TARGETS[edge[0]], row["to"])}
            if key in ends:
                del state[edge]
