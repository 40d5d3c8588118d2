"""Random mutations and loads on a graph and on a dictionary model of it: never a difference."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.model import ModelGraph, Refused, Statement, Where

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, KeyConflict

SEQUENCES = int(os.environ.get("OMNIGRAPH_MODEL_SEQUENCES", "3000"))
WORKERS = 3

SCHEMA = """
node P {
  k: String @key
  n: I32?
  u: String? @unique
  level: enum(a, b)?
  f: F64?
  ok: Bool?
  @range(n, -5..50)
  @check(u, "^[a-z]*$")
}
node Q { t: String?  s: I32?  @unique(t, s) }
edge E: P -> P @card(0..2) { w: I32? }
edge F: P -> Q { @unique(src, dst) }
edge G: P -> P @card(2..3)
"""
KEYS = ["a", "b", "c", "d", "é", "o'x"]
QS = ["q1", "q2", "q3"]
TYPES = {"n": "I32?", "u": "String?", "level": "String?", "f": "F64?", "ok": "Bool?"}
TYPES |= {"t": "String?", "s": "I32?", "w": "I32?", "k": "String", "from": "String", "to": "String"}


def _value(rng: Random, name: str) -> Any:
    choices: dict[str, list[Any]] = {
        "n": [None, 0, 1, 2, 50, -5] * 3 + [51, -6],
        "u": [None, None, "x", "y", "z", "xx", "yy", "zz", ""] * 2 + ["Z"],
        "level": [None, "a", "b"] * 5 + ["c"],
        "f": [None, 0.0, -0.0, 1.5, 1e300],
        "ok": [None, True, False],
        "t": [None, "x", "y"],
        "s": [None, 0, 1],
        "w": [None, 1, 2],
    }
    return rng.choice(choices[name])


def _values(rng: Random, names: list[str]) -> dict[str, Any]:
    return {name: _value(rng, name) for name in names if rng.random() < 0.6}


PROPERTIES = {"node:P": ["n", "u", "level", "f", "ok"], "node:Q": ["t", "s"], "edge:E": ["w"]}


def _insert(rng: Random) -> Statement:
    key = rng.choice(["node:P"] * 4 + ["node:Q", "edge:E", "edge:E", "edge:F", "edge:G"])
    values = _values(rng, PROPERTIES.get(key, []))
    if key == "node:P":
        values["k"] = rng.choice(KEYS)
    elif key == "node:Q" and not values:
        values["s"] = _value(rng, "s")
    elif key.startswith("edge:"):
        ends = QS if key == "edge:F" else KEYS
        values |= {"from": rng.choice(KEYS), "to": rng.choice(ends)}
    return Statement("insert", key, values)


def _where(rng: Random, key: str) -> Where:
    if key.startswith("edge:"):
        name = rng.choice(["from", "to"])
        return Where(name, rng.choice(["=", "!="]), rng.choice(KEYS))
    name = rng.choice(["k", "n", "u", "level", "f", "ok"] if key == "node:P" else ["t", "s"])
    value = rng.choice(KEYS) if name == "k" else _value(rng, name)
    return Where(name, rng.choice(["=", "=", "!=", "<", "<=", ">", ">="]), value)


def _mutation(rng: Random) -> list[Statement]:
    if rng.random() < 0.3:
        keys = [rng.choice(["node:P", "node:Q", "edge:E", "edge:F"]) for _ in range(2)]
        return [Statement("delete", key, where=_where(rng, key)) for key in keys]
    found = []
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.3:
            key = rng.choice(["node:P", "node:Q"])
            names = PROPERTIES[key]
            values = _values(rng, names) or {names[0]: _value(rng, names[0])}
            found.append(Statement("update", key, values, _where(rng, key)))
        else:
            found.append(_insert(rng))
    return found


def _records(rng: Random) -> list[dict[str, Any]]:
    found = []
    for _ in range(rng.randint(0, 6)):
        statement = _insert(rng)
        kind, _, name = statement.type_key.partition(":")
        data = dict(statement.values)
        record: dict[str, Any] = {"type" if kind == "node" else "edge": name}
        if kind == "edge":
            record |= {"from": data.pop("from"), "to": data.pop("to")}
        if statement.type_key == "node:Q":
            data["id"] = rng.choice(QS)
        elif kind == "edge" and rng.random() < 0.7:
            data["id"] = f"{name}{rng.randint(1, 4)}"
        found.append({**record, "data": data})
    return found


def _text(statements: list[Statement]) -> tuple[str, dict[str, Any]]:
    """The statements as a query whose values are all parameters."""
    params: dict[str, Any] = {}
    declared: list[str] = []

    def parameter(name: str, value: Any) -> str:
        known = f"p{len(params)}"
        params[known] = value
        declared.append(f"${known}: {TYPES[name]}")
        return f"${known}"

    body = []
    for item in statements:
        name = item.type_key.partition(":")[2]
        values = ", ".join(f"{n}: {parameter(n, v)}" for n, v in item.values.items())
        where = ""
        if item.where is not None:
            value = parameter(item.where.property, item.where.value)
            where = f" where {item.where.property} {item.where.operator} {value}"
        sets = {"insert": f" {{ {values} }}", "update": f" set {{ {values} }}", "delete": ""}
        body.append(f"{item.action} {name}{sets[item.action]}{where}")
    return f"query q({', '.join(declared)}) {{ {' '.join(body)} }}", params


def _broken(error: InvalidData | KeyConflict) -> set[tuple[str, str]]:
    found = error.details["violations"]
    return {(v["rule"], f"{v['entity_kind']}:{v['type_name']}") for v in found}


def _content(graph: Graph) -> dict[str, Any]:
    """Rows by type, as multisets: ids that the graph made count as any id."""
    found: dict[str, Counter[str]] = {}
    for line in b"".join(graph.export()).splitlines():
        record = json.loads(line)
        key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
        row = {**record["data"], "src": record.get("from"), "dst": record.get("to")}
        row["id"] = "~" if len(row["id"]) == 26 else row["id"]
        found.setdefault(key, Counter())[json.dumps(row, sort_keys=True)] += 1
    return found


def _model_content(model: ModelGraph) -> dict[str, Any]:
    found: dict[str, Counter[str]] = {}
    for key, rows in model.content.items():
        for id, row in rows.items():
            shown = {"src": None, "dst": None, **row, "id": "~" if id.startswith("~") else id}
            found.setdefault(key, Counter())[json.dumps(shown, sort_keys=True)] += 1
    return found


def _step(rng: Random, graph: Graph, model: ModelGraph) -> str:
    """One operation on both; returns what it was, for a failing run."""
    head = graph.snapshot().commit_id
    if rng.random() < 0.6:
        statements = _mutation(rng)
        text, params = _text(statements)
        shown = f"{text} {params}"
        try:
            expected: Any = model.mutate(statements)
        except Refused as refused:
            expected = refused.rules
        try:
            result = graph.mutate(text, params=params)
            actual: Any = (result.affected_nodes, result.affected_edges)
            moved = result.commit is not None
            assert moved == (sum(actual) > 0), shown
        except (InvalidData, KeyConflict) as error:
            actual, moved = _broken(error), False
    else:
        records = _records(rng)
        mode: Any = rng.choice(["append", "merge", "merge", "overwrite"])
        shown = f"{mode} {json.dumps(records)}"
        try:
            expected = model.load(records, mode)
        except Refused as refused:
            expected = refused.rules
        try:
            data = "\n".join(json.dumps(record) for record in records).encode()
            actual, moved = graph.load(data, mode=mode).total, True
        except (InvalidData, KeyConflict) as error:
            actual, moved = _broken(error), False
    assert actual == expected, shown
    assert (graph.snapshot().commit_id != head) == moved, shown
    return shown


def _refill(graph: Graph, model: ModelGraph) -> None:
    """All nodes present again, so that edges have a chance."""
    records: list[dict[str, Any]] = [{"type": "P", "data": {"k": key}} for key in KEYS]
    records += [{"type": "Q", "data": {"id": id}} for id in QS]
    model.load(records, "merge")
    graph.load(records, mode="merge")


@pytest.mark.parametrize("worker", range(WORKERS))
def test_a_graph_and_its_model_never_differ(worker: int, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    model = ModelGraph(graph.schema())
    done = []
    for sequence in range(SEQUENCES // WORKERS):
        rng = Random(f"{worker}:{sequence}")
        if sequence % 10 == 0:
            _refill(graph, model)
        for _ in range(rng.randint(1, 3)):
            done.append(_step(rng, graph, model))
        assert _content(graph) == _model_content(model), done[-4:]
    assert len(done) >= SEQUENCES // WORKERS
    assert graph.maintenance.check().findings == []
