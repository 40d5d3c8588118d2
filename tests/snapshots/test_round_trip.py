"""Export, load into an empty graph and export again: the same bytes."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.graphs import people_graph
from tests.support.generate_schema import generate_schema

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, TypeNotFound

EVERY_TYPE = """
node Every {
  k: I64 @key
  s: String?  b: Bool?  i: I32?  l: I64?  u: U32?  ul: U64?  f: F32?  d: F64?
  day: Date?  at: DateTime?  v: Vector(3)?  e: enum(one, two)?  blob: Blob?
  ss: [String]?  bs: [Bool]?  ls: [I64]?  uls: [U64]?  fs: [F32]?  ds: [F64]?
  days: [Date]?  ats: [DateTime]?
}
node Free { s: String? }
edge Link: Every -> Every { w: F32?  note: String?  body: Blob? }
edge To: Every -> Free
"""
STRINGS = [
    "",
    "a",
    "é",
    "日本",
    "😀",
    "\u0000",
    "\u2028",
    'quote " and \\',
    "tab\t\n\r",
    "%s %",
    "~" * 300,
]
FLOATS = [0.0, -0.0, 1.0, 0.1, -2.5, 1e16, 1e-7, 3.4028234663852886e38, 1.401298464324817e-45]


def _scalar(rng: Random, kind: str) -> Any:
    match kind:
        case "String":
            return rng.choice(STRINGS)
        case "Bool":
            return rng.random() < 0.5
        case "I32":
            return rng.choice([0, 1, -1, 2**31 - 1, -(2**31)])
        case "I64":
            return rng.choice([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1])
        case "U32":
            return rng.choice([0, 1, 2**32 - 1])
        case "U64":
            return rng.choice([0, 1, 2**64 - 1])
        case "F32" | "F64":
            extra = [1.7976931348623157e308, 5e-324, 0.30000000000000004]
            return rng.choice(FLOATS + (extra if kind == "F64" else []))
        case "Date":
            return rng.choice(["2024-02-29", "1969-12-31", "0001-01-01", -800_000, 0, 2**31 - 1])
        case "DateTime":
            return rng.choice(["2024-02-29T12:00:00.123Z", "1969-12-31T23:59:59.999+02:00", -1, 5])
        case "enum":
            return rng.choice(["one", "two"])
        case "Blob":
            size = rng.choice([0, 1, 10, 70_000])
            return "base64:" + base64.b64encode(rng.randbytes(size)).decode()
    raise AssertionError(kind)


FIELDS = {
    "s": "String", "b": "Bool", "i": "I32", "l": "I64", "u": "U32", "ul": "U64", "f": "F32",
    "d": "F64", "day": "Date", "at": "DateTime", "e": "enum", "blob": "Blob",
}  # fmt: skip
LISTS = {
    "ss": "String", "bs": "Bool", "ls": "I64", "uls": "U64", "fs": "F32", "ds": "F64",
    "days": "Date", "ats": "DateTime",
}  # fmt: skip


def _every(rng: Random, key: int) -> dict[str, Any]:
    data: dict[str, Any] = {"k": key}
    for name, kind in FIELDS.items():
        if rng.random() < 0.8:
            data[name] = _scalar(rng, kind)
    for name, kind in LISTS.items():
        if rng.random() < 0.8:
            data[name] = [_scalar(rng, kind) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.8:
        data["v"] = [_scalar(rng, "F32") for _ in range(3)]
    return data


def _records(rng: Random, rows: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"type": "Every", "data": _every(rng, i)} for i in range(rows)]
    found += [{"type": "Free", "data": {"id": s, "s": s}} for s in STRINGS]
    for _ in range(rows):
        ends = {"from": str(rng.randrange(rows)), "to": str(rng.randrange(rows))}
        data = {"w": _scalar(rng, "F32"), "note": _scalar(rng, "String")}
        if rng.random() < 0.3:
            data["body"] = _scalar(rng, "Blob")
        found.append({"edge": "Link", **ends, "data": data})
        found.append({"edge": "To", "from": ends["from"], "to": rng.choice(STRINGS)})
    rng.shuffle(found)
    return found


def _bytes(graph: Graph, **options: Any) -> bytes:
    return b"".join(graph.export(**options))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_X_4_a_graph_with_every_type_survives_the_round_trip(
    seed: int, mode: Any, tmp_path: Path
) -> None:
    rng = Random(seed)
    first = omnigraph.init(tmp_path / "a", EVERY_TYPE)
    ascii_only = seed % 2 == 0
    lines = [json.dumps(r, ensure_ascii=ascii_only) for r in _records(rng, 20)]
    first.load("\n".join(lines).encode(), mode="append")
    first.mutate("query q() { delete Every where b = true }")
    exported = _bytes(first)
    second = omnigraph.init(tmp_path / "b", EVERY_TYPE)
    second.load(exported, mode=mode)
    assert _bytes(second) == exported
    assert exported.count(b"\n") > 20


def test_X_4_generated_schemas_survive_the_round_trip(tmp_path: Path) -> None:
    """Awkward names of types and properties, composite keys, constraints of every kind."""
    total = 0
    for seed in range(8):
        text = generate_schema(Random(seed + 100)).text()
        first = omnigraph.init(tmp_path / f"a{seed}", text)
        loaded = _populate(first)
        exported = _bytes(first)
        second = omnigraph.init(tmp_path / f"b{seed}", text)
        second.load(exported, mode="append")
        assert _bytes(second) == exported
        assert exported.count(b"\n") == loaded
        second.load(exported, mode="merge")
        assert _bytes(second) == exported
        total += loaded
    assert total > 20


def _populate(graph: Graph) -> int:
    """Two nodes of every type and two edges of each, or fewer where constraints allow no more."""
    loaded = 0
    ids: dict[str, list[str]] = {}
    for name, node in graph.schema().nodes.items():
        for count in (2, 1):
            rows = [{p: _fitting(node, p, i) for p in node.properties} for i in range(count)]
            try:
                loaded += graph.load({f"node:{name}": rows}, mode="append").total
                break
            except InvalidData:
                continue
        lines = _bytes(graph, types=[name]).splitlines()
        ids[name] = [json.loads(x)["data"]["id"] for x in lines if x.startswith(b'{"type"')]
    for name, edge in graph.schema().edges.items():
        edges = [
            {"from": source, "to": target, **{p: _fitting(edge, p, i) for p in edge.properties}}
            for source in ids[edge.source][:1]
            for i, target in enumerate(ids[edge.target])
        ]
        try:
            loaded += graph.load({f"edge:{name}": edges}, mode="append").total
        except InvalidData:
            continue
    return loaded


def _fitting(owner: Any, name: str, number: int) -> Any:
    """A value that the constraints of a property allow, different for different numbers."""
    kind = owner.properties[name].type
    if kind.enum is not None:
        return kind.enum[number % len(kind.enum)]
    values = {
        "string": [f'x{number}12"', f"xy{number}" + '00"', "abcx", "xyz"],
        "bool": [number == 1],
        "blob": ["base64:AAEC"],
    }.get(kind.scalar.family, [number])
    patterns = [check.pattern for check in getattr(owner, "checks", ()) if check.property == name]
    fits = [v for v in values if all(re.search(p, v) for p in patterns)] or values
    value = fits[number % len(fits)]
    if kind.dimensions is not None:
        return [float(number)] * kind.dimensions
    return [value] * number if kind.is_list else value


def test_L_4_reading_line_by_line_and_all_at_once_agree(tmp_path: Path) -> None:
    """The same records in a spelling that the fast reader takes and in one that it does not."""
    records = _records(Random(7), 12)
    for record in records:
        record.setdefault("data", {}).setdefault("id", record["data"].get("k", "x"))
    for number, record in enumerate(records):
        record["data"]["id"] = str(record["data"].get("k", f"e{number}"))
        if record.get("type") == "Free":
            record["data"]["id"] = record["data"]["s"]
    fast = omnigraph.init(tmp_path / "a", EVERY_TYPE)
    fast.load("\n".join(json.dumps(r) for r in records).encode(), mode="append")
    slow = omnigraph.init(tmp_path / "b", EVERY_TYPE)
    turned = [dict(reversed(r.items())) for r in records]
    slow.load("\n".join(json.dumps(r) for r in turned).encode(), mode="append")
    loose = omnigraph.init(tmp_path / "c", EVERY_TYPE)
    loose.load(
        json.dumps(records)[1:-1].replace("}}, {", "}} {").encode(), mode="append", strict=False
    )
    assert _bytes(fast) == _bytes(slow) == _bytes(loose)


def test_X_1_the_order_is_by_type_key_and_id(tmp_path: Path) -> None:
    lines = _bytes(people_graph(tmp_path / "g")).decode().splitlines()
    starts = [line[:16] for line in lines]
    assert (
        starts
        == ['{"edge":"Knows",', '{"edge":"LivesIn', '{"type":"City","'] + ['{"type":"Person"'] * 2
    )
    assert [json.loads(line)["data"]["id"] for line in lines[-2:]] == ["ana", "bo"]


def test_X_2_every_property_is_there_and_null_is_null(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    assert b'{"type":"Person","data":{"id":"bo","age":null,"name":"bo"}}\n' in _bytes(graph)


def test_X_3_types_restrict_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    assert _bytes(graph, types=["City"]) == b'{"type":"City","data":{"id":"Oslo","name":"Oslo"}}\n'
    with pytest.raises(TypeNotFound, match="Nope"):
        _bytes(graph, types=["Nope"])


def test_X_5_an_export_reads_one_commit_whatever_happens_meanwhile(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    before = _bytes(graph)
    head = graph.snapshot().commit_id
    chunks = graph.export()
    first = next(chunks)
    graph.mutate('query q() { delete Person where name = "bo" }')
    assert first + b"".join(chunks) == before
    assert _bytes(graph, at=head) == before
    assert _bytes(graph) != before


def test_an_entity_is_shown_as_an_export_shows_it(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", EVERY_TYPE)
    graph.load("\n".join(json.dumps(r) for r in _records(Random(3), 8)).encode(), mode="append")
    for line in _bytes(graph, types=["Every", "Link"]).splitlines():
        record = json.loads(line)
        key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
        shown = graph.entity(key, record["data"]["id"])
        ends = {"src": record["from"], "dst": record["to"]} if "from" in record else {}
        assert shown == {**record["data"], **ends}
