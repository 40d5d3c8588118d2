"""Random loads, valid and invalid, for a schema with every kind of constraint.

They depend on a seed alone, so that a failure can be reproduced.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass
from typing import Any

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  level: enum(low, mid, high)?
  email: String? @unique
  born: Date?
  @range(age, 0..120)
}
node Room {
  floor: I32
  door: String
  label: String?
  @key(floor, door)
  @check(label, "^[a-z]+$")
}
node Note {
  text: String
  weight: F64? @unique
  tags: [String]?
  at: DateTime?
  v: Vector(2)?
}
edge Knows: Person -> Person @card(0..3) { since: I32? }
edge Sits: Person -> Room @card(1..2) { since: I32?
  @unique(src, since) }
edge About: Note -> Person
"""


@dataclass(frozen=True)
class RandomLoad:
    """What is stored before, and the load."""

    stored: bytes
    mode: str
    data: bytes


def random_load(seed: int) -> RandomLoad:
    chance = random.Random(seed)
    people = [f"p{n}" for n in range(6)]
    rooms = [f'["d","{n}"]' for n in range(3)]
    stored = [_person(chance, name, f"s{name}@x") for name in people]
    stored += [{"type": "Room", "data": {"floor": n, "door": "d"}} for n in range(3)]
    stored += [
        {"type": "Note", "data": {"id": f"n{n}", "text": "t", "weight": n}} for n in range(3)
    ]
    stored += [_edge("Knows", people[n], people[n - 1], f"k{n}") for n in range(5)]
    stored += [_edge("Sits", people[n], rooms[n], f"s{n}", since=n) for n in range(3)]
    stored += [_edge("About", "n1", "p0", "a1")]
    mode = chance.choice(["append", "merge", "upsert", "upsert", "overwrite"])
    faulty = chance.random() < 0.6
    records = [_record(chance, faulty, mode) for _ in range(chance.randint(0, 25))]
    if not faulty:
        records = _distinct(records)
    if mode == "upsert":
        records = _partial(chance, records + chance.sample(stored, 6), faulty)
    lines = [json.dumps(record) for record in records]
    if faulty and chance.random() < 0.3:
        lines.insert(chance.randint(0, len(lines)), chance.choice(_UNREADABLE))
    lines = [line for text in lines for line in ([text, ""] if chance.random() < 0.1 else [text])]
    end = "\n" if chance.random() < 0.5 else ""
    before = "\n".join(json.dumps(record) for record in stored)
    return RandomLoad(before.encode(), mode, ("\n".join(lines) + end).encode())


_UNREADABLE = [
    "{",
    '{"type":"Person","data":{"name":"a","name":"b"}}',
    '{"type":"Nobody","data":{}}',
    '{"type":"Person","data":{"name":"u","unknown":1}}',
    '{"type":"Person","data":{"name":"u","age":"7"}}',
    '{"type":"Person","data":{"age":7}}',
    '{"type":"Person","data":{"name":"u","id":"other"}}',
    '{"edge":"Knows","from":"p1"}',
    '{"type":"Note","data":{"text":"t","v":[1]}}',
    '{"type":"Person","data":{"name":"u","born":"2024-02-30"}} ',
]


def _person(chance: random.Random, name: str, email: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"name": name, "age": chance.randint(0, 120), "email": email}
    data["born"] = f"20{chance.randint(10, 20)}-02-03"
    data["level"] = chance.choice(["low", "mid", "high", None])
    return {"type": "Person", "data": data}


def _edge(name: str, source: str, target: str, id: str | None, **data: Any) -> dict[str, Any]:
    values = {**data} if id is None else {"id": id, **data}
    return {"edge": name, "from": source, "to": target, "data": values}


def _record(chance: random.Random, faulty: bool, mode: str) -> dict[str, Any]:
    """One record; when faulty, of a small world in which things collide."""
    spread = 12 if faulty else 10_000
    number = chance.randint(0, spread) + (0 if faulty or mode != "append" else 100)
    person = f"p{number}" if faulty else f"q{number}"
    known = f"p{chance.randint(0, 7 if faulty else 5)}"
    kind = chance.choice(["Person", "Person", "Room", "Note", "Knows", "Sits", "About"])
    if mode == "overwrite" and not faulty and kind in ("Knows", "Sits", "About"):
        kind = "Note"  # replaced nodes would be missed by the edges of a good load
    if kind == "Person":
        record = _person(chance, person, f"e{number}@x" if chance.random() < 0.8 else None)
        if faulty and chance.random() < 0.1:
            record["data"]["age"] = chance.choice([121, -1])
        if faulty and chance.random() < 0.05:
            record["data"]["level"] = "none"
        return record
    if kind == "Room":
        label = "Bad" if faulty and chance.random() < 0.2 else "good"
        return {"type": "Room", "data": {"floor": number + 3, "door": "d", "label": label}}
    if kind == "Note":
        data: dict[str, Any] = {"text": "ü", "weight": number / 2 + (0 if faulty else 50)}
        data |= {"tags": ["a", "b"][: chance.randint(0, 2)], "at": "2024-01-01T10:00:00Z"}
        data["v"] = [number, 0.5]
        if chance.random() < 0.4:
            data["id"] = f"n{number}"
        return {"type": "Note", "data": data}
    id = f"{kind[0].lower()}{number}" if chance.random() < 0.5 else None
    if kind == "Knows":
        other = f"p{chance.randint(0, 7 if faulty else 5)}"
        return _edge(kind, known if faulty else "p5", other, id, since=number)
    if kind == "Sits":
        room = '["d","1"]' if not faulty or chance.random() < 0.8 else '["d","9"]'
        return _edge(kind, known if faulty else "p4", room, id, since=number + 10)
    return _edge(kind, f"n{chance.randint(0, 2)}", known, id)


def _partial(
    chance: random.Random, records: list[dict[str, Any]], faulty: bool
) -> list[dict[str, Any]]:
    """Records that give only some values, some of them null, and some of them again."""
    again = [copy.deepcopy(chance.choice(records)) for _ in range(chance.randint(0, 4))]
    records = [*copy.deepcopy(records), *again]
    chance.shuffle(records)
    for record in records:
        data = record["data"]
        if record.get("type") == "Note" and not (faulty and chance.random() < 0.1):
            data.setdefault("id", f"n{chance.randint(0, 12)}")
        for name in ("age", "level", "born", "label", "tags", "at", "v", "since"):
            if name in data and chance.random() < 0.4:
                data[name] = None
            if name in data and chance.random() < 0.4:
                del data[name]
        if faulty and "text" in data and chance.random() < 0.3:
            chance.choice([lambda d: d.pop("text"), lambda d: d.update(text=None)])(data)
        if "edge" in record and chance.random() < 0.3:
            data.pop("id", None)
    return records


def _distinct(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without records that would collide, and without more edges than a source may have."""
    seen: set[Any] = set()
    kept = []
    for record in records:
        data = record["data"]
        name = record.get("type") or record["edge"]
        marks = {(name, "id", data.get("id", object())), (name, "name", data.get("name", object()))}
        marks |= {(name, "weight", data.get("weight", object()))}
        marks |= {(name, "floor", data.get("floor", object()))}
        if name in ("Knows", "Sits"):
            marks |= {(name, record["from"])}
        if not marks & seen:
            kept.append(record)
            seen |= marks
    return kept
