"""Random batches against a plain dictionary: calls take effect in order, errors included.

``OMNIGRAPH_TEST_BATCHES`` is the number of sequences of calls (10,000 is what the project
promises). A sequence that fails names its seed.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    ConstraintViolation,
    EntityNotFound,
    InvalidInput,
    InvalidValue,
    KeyConflict,
    OmnigraphError,
)

SEQUENCES = int(os.environ.get("OMNIGRAPH_TEST_BATCHES", "160"))
PER_GRAPH = 40
"""Sequences that one graph sees: its state is where the next one starts."""
PARTS = 4

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  nick: String? @unique
  level: I32 @default(1)
}
node Spot {
  x: I32
  y: I32
  note: String?
  @key(x, y)
}
node Note {
  text: String
  tags: [String]?
}
edge Knows: Person -> Person {
  since: I32?
  weight: F64?
  how: String @default("met")
}
edge At: Person -> Spot @card(0..2)
edge About: Note -> Person { tags: [I32]? }
"""
ENDS = {"Knows": ("Person", "Person"), "At": ("Person", "Spot"), "About": ("Note", "Person")}
DEFAULTS: dict[str, dict[str, Any]] = {"Person": {"level": 1}, "Knows": {"how": "met"}}
REQUIRED = {"Person": ["level", "name"], "Spot": ["x", "y"], "Note": ["text"], "Knows": ["how"]}
PROPERTIES = {
    "Person": ["age", "level", "name", "nick"],
    "Spot": ["note", "x", "y"],
    "Note": ["tags", "text"],
    "Knows": ["how", "since", "weight"],
    "At": [],
    "About": ["tags"],
}
State = dict[str, dict[str, dict[str, Any]]]
Planned = tuple[str | None, dict[str, Any], Callable[[], Any]]


class Expected(Exception):
    """The model's error: the class that the batch should raise."""

    def __init__(self, kind: type[OmnigraphError]) -> None:
        self.kind = kind


class Model:
    """What the graph should hold: entities by type and id; an edge has `src` and `dst`."""

    def __init__(self) -> None:
        self.state: State = {name: {} for name in PROPERTIES}
        self.made = 0

    def apply(self, verb: str, kind: str, id: str | None, values: dict[str, Any]) -> None:
        entities = self.state[kind]
        if id is None:
            row = self.whole(kind, values)
            if verb == "upsert" and row in entities.values():
                return
            self.made += 1
            id = f"?{self.made}"
        exists = id in entities
        if verb == "delete":
            if exists:
                del entities[id]
                self.cascade(kind, id)
        elif verb == "insert" and exists:
            raise Expected(KeyConflict)
        elif verb == "update" and not exists:
            raise Expected(EntityNotFound)
        elif verb in ("update", "upsert") and exists:
            given = dict(values)
            if verb == "upsert":
                for name, default in DEFAULTS.get(kind, {}).items():
                    if name in given and given[name] is None:
                        given[name] = default
            entities[id] = {**entities[id], **given}
        else:
            entities[id] = self.whole(kind, values)

    def whole(self, kind: str, values: dict[str, Any]) -> dict[str, Any]:
        row = {**dict.fromkeys(PROPERTIES[kind]), **values}
        for name, default in DEFAULTS.get(kind, {}).items():
            row[name] = default if row[name] is None else row[name]
        if any(row[name] is None for name in REQUIRED.get(kind, ())):
            raise Expected(InvalidValue)
        return row

    def cascade(self, kind: str, id: str) -> None:
        for edge, (source, target) in ENDS.items():
            for other, row in list(self.state[edge].items()):
                if (source == kind and row["src"] == id) or (target == kind and row["dst"] == id):
                    del self.state[edge][other]

    def check(self) -> None:
        """The rules about several entities, over everything."""
        nicks = [row["nick"] for row in self.state["Person"].values() if row["nick"] is not None]
        wrong = len(nicks) != len(set(nicks))
        for edge, (source, target) in ENDS.items():
            for row in self.state[edge].values():
                wrong |= row["src"] not in self.state[source]
                wrong |= row["dst"] not in self.state[target]
        sources = [row["src"] for row in self.state["At"].values()]
        wrong |= any(sources.count(source) > 2 for source in sources)
        if wrong:
            raise Expected(ConstraintViolation)


class Sequence:
    """One batch: random calls on the real thing and on the model."""

    def __init__(self, graph: Graph, model: Model, seed: int) -> None:
        self.graph, self.model, self.rng = graph, model, random.Random(seed)
        self.calls: list[str] = []
        self.verbs: set[str] = set()

    def run(self) -> None:
        before = copy.deepcopy(self.model.state)
        expected, raised, commit = None, None, None
        try:
            with self.graph.write() as w:
                expected = self.make_calls(w)
            commit = w.result
        except OmnigraphError as problem:
            raised = problem
        assert (None if raised is None else type(raised)) is expected, (self.calls, raised)
        if expected is not None:
            self.model.state = before
        self.compare(before, commit)

    def make_calls(self, w: Any) -> type[OmnigraphError] | None:
        """Some calls; returns the error that the first wrong one, or the outcome, should give."""
        expected: type[OmnigraphError] | None = None
        for _ in range(self.rng.randint(1, 12)):
            try:
                self.call(w, dead=expected is not None)
            except Expected as problem:
                expected = problem.kind
        if expected is None:
            try:
                self.model.check()
            except Expected as problem:
                expected = problem.kind
        return expected

    @property
    def is_reborn(self) -> bool:
        """Whether an entity may have been deleted and written again: another life, same values."""
        return {"delete", "upsert"} <= self.verbs

    def compare(self, before: State, commit: object) -> None:
        found = content(self.graph)
        for kind, entities in self.model.state.items():
            made = [row for id, row in entities.items() if id.startswith("?")]
            named = {id: row for id, row in entities.items() if not id.startswith("?")}
            actual = found[kind]
            new = [row for id, row in actual.items() if id not in named]
            assert {id: actual.get(id) for id in named} == named, (kind, self.calls)
            assert sorted(map(spelled, new)) == sorted(map(spelled, made)), (kind, self.calls)
            assert self.graph.snapshot().pin(key_of(kind)).rows == len(actual)
        if found != before:
            assert commit is not None, self.calls
        elif not self.verbs & {"insert", "replace", "update"} and not self.is_reborn:
            assert commit is None, self.calls  # nothing was changed, nothing is told
        self.model.state = found

    # -- calls -------------------------------------------------------------------------------------

    def call(self, w: Any, *, dead: bool) -> None:
        """One call; ``dead`` says that an earlier one fails already, so the model is not asked."""
        rng = self.rng
        kind = rng.choice(["Person", "Person", "Spot", "Note", "Knows", "Knows", "At", "About"])
        verb = rng.choice(["insert", "upsert", "replace", "update", "delete"])
        if rng.random() < 0.05:
            self.bad_call(w, kind)
            return
        plan = self.edge_call if kind in ENDS else self.node_call
        id, values, perform = plan(w, verb, kind)
        if rng.random() < 0.9 and self.would_fail(verb, kind, id, values):
            return  # long sequences should mostly come to something
        self.note(verb, kind, id, values)
        made = perform()
        self.verbs.add(verb)
        if not dead:
            self.model.apply(verb, kind, made if verb == "insert" else id, values)

    def would_fail(self, verb: str, kind: str, id: str | None, values: dict[str, Any]) -> bool:
        trial = copy.deepcopy(self.model)
        try:
            trial.apply(verb, kind, id, values)
            if self.rng.random() < 0.6:  # rules about several entities may be broken on the way
                trial.check()
        except Expected:
            return True
        return False

    def bad_call(self, w: Any, kind: str) -> None:
        edge = "_edge" if kind in ENDS else ""
        ends = ("p0", "p1") if kind in ENDS else ()
        value: Any = self.rng.choice([7, None, b"x", ["id"], ("a", 1), "\ud800"])
        other: Any = value if not (value is None or isinstance(value, str)) else 7
        calls = [
            lambda: getattr(w, f"update{edge}")(kind, value, {}),
            lambda: getattr(w, f"delete{edge}")(kind, value),
            lambda: getattr(w, f"insert{edge}")(kind, *ends, other),
            lambda: getattr(w, f"upsert{edge}")(kind, *ends, {7: 1}),
            lambda: getattr(w, f"replace{edge}")(kind, *ends, {"nothing": 1}, id="x"),
            lambda: w.upsert("Note", {"text": "x"}),
            lambda: w.update("Person", "p0", {"name": "p1"}),
            lambda: w.insert("Person", {"name": "p0"}, id="p1"),
            lambda: w.insert_edge("Knows", other, "p0"),
        ]
        with pytest.raises(InvalidInput):
            self.rng.choice(calls)()

    def node_call(self, w: Any, verb: str, kind: str) -> Planned:
        values, id = self.node_values(kind), self.key(kind)
        if verb in ("delete", "update"):
            values = {n: v for n, v in values.items() if v is not None or n not in REQUIRED[kind]}
            if verb == "delete":
                return id, {}, lambda: w.delete(kind, id)
            return id, values, lambda: w.update(kind, id, values)
        if kind == "Note":
            if verb != "upsert" or values.get("text", "") is None:
                values["text"] = values.get("text") or "t"
            if verb == "insert" and self.rng.random() < 0.5:
                return None, values, lambda: w.insert(kind, values)
            return id, values, lambda: getattr(w, verb)(kind, values, id=id)
        values |= key_values(kind, id)
        given = self.rng.choice([None, id])
        return id, values, lambda: getattr(w, verb)(kind, values, id=given)

    def edge_call(self, w: Any, verb: str, kind: str) -> Planned:
        id = self.rng.choice([*self.known(kind), "e0", "e1"])
        values = self.edge_values(kind)
        if verb == "delete":
            return id, {}, lambda: w.delete_edge(kind, id)
        if verb == "update":
            values = {n: v for n, v in values.items() if v is not None or n != "how"}
            return id, values, lambda: w.update_edge(kind, id, values)
        source, target = (self.end(node) for node in ENDS[kind])
        given = None if verb != "replace" and self.rng.random() < 0.6 else id
        whole = {**values, "src": source, "dst": target}
        call = getattr(w, f"{verb}_edge")
        return given, whole, lambda: call(kind, source, target, values, id=given)

    def note(self, *call: Any) -> None:
        self.calls.append(repr(call))

    # -- values ------------------------------------------------------------------------------------

    def some(self, choices: dict[str, list[Any]]) -> dict[str, Any]:
        return {n: self.rng.choice(v) for n, v in choices.items() if self.rng.random() < 0.6}

    def node_values(self, kind: str) -> dict[str, Any]:
        if kind == "Person":
            nicks = [None, None, "a", "b"]
            return self.some({"age": [None, 1, 2], "nick": nicks, "level": [None, 1, 2]})
        if kind == "Spot":
            return self.some({"note": [None, "u", "v"]})
        return self.some({"text": [None, "t", "s"], "tags": [None, [], ["a", "b"]]})

    def edge_values(self, kind: str) -> dict[str, Any]:
        if kind == "Knows":
            choices: dict[str, list[Any]] = {
                "since": [None, 1],
                "weight": [None, 0.1],
                "how": [None, "met", "saw"],
            }
            return self.some(choices)
        return self.some({"tags": [None, [1], []]}) if kind == "About" else {}

    def key(self, kind: str) -> str:
        """The id of a node that may be there or not."""
        if kind == "Note":
            return self.rng.choice([*self.known(kind), "n0", "n1"])
        if kind == "Person":
            return f"p{self.rng.randrange(5)}"
        return f'["{self.rng.randrange(2)}","{self.rng.randrange(2)}"]'

    def end(self, kind: str) -> str:
        there = self.known(kind)
        return self.rng.choice(there) if there and self.rng.random() < 0.9 else self.key(kind)

    def known(self, kind: str) -> list[str]:
        return [id for id in self.model.state[kind] if not id.startswith("?")]


def key_values(kind: str, id: str) -> dict[str, Any]:
    if kind == "Person":
        return {"name": id}
    x, y = json.loads(id)
    return {"x": int(x), "y": int(y)}


def spelled(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def key_of(kind: str) -> str:
    return f"{'edge' if kind in ENDS else 'node'}:{kind}"


def content(graph: Graph) -> State:
    found: State = {}
    snapshot = graph.snapshot()
    for kind in PROPERTIES:
        table = repository_of(graph).tables.open(snapshot.pin(key_of(kind)).ref)
        rows = table.scan().to_pylist()
        found[kind] = {row.pop("id"): row for row in rows}
        assert len(found[kind]) == len(rows)
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_take_effect_in_order(tmp_path: Path, part: int) -> None:
    seeds = range(part, SEQUENCES, PARTS)
    for number, seed in enumerate(seeds):
        if number % PER_GRAPH == 0:
            graph = omnigraph.init(tmp_path / f"g{number}", SCHEMA)
            model = Model()
        sequence = Sequence(graph, model, seed)
        try:
            sequence.run()
        except Exception as problem:
            problem.add_note(f"seed {seed} after {number % PER_GRAPH} others: {sequence.calls}")
            raise
