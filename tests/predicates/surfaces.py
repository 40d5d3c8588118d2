"""A graph that holds edge values of every type, and every way to ask it for a condition."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import omnigraph
from omnigraph import Graph
from omnigraph.engine.engine import ReadOptions
from omnigraph.model.calendar import format_date, format_instant
from tests.predicates.model import INTEGERS, MEMBERS, NUMBERS, VALUES, Stored, stored

KINDS: Final = tuple(VALUES)
TAGS: Final = 8
"""Updates that one write query holds: the later ones see what the earlier ones did."""
COLD: Final = ReadOptions(access="probe")
WARM: Final = ReadOptions(access="cache")


def declared(kind: str) -> str:
    return f"enum({', '.join(MEMBERS)})" if kind == "Enum" else kind


def schema() -> str:
    """Every type as a plain, an indexed and a list property of nodes, on edges, and as a key."""
    lines = ["node Thing {", "  k: String @key"]
    lines += [f"  tag{number}: I64?" for number in range(TAGS)]
    for kind in KINDS:
        lines += [f"  p{kind}: {declared(kind)}?", f"  x{kind}: {declared(kind)}? @index"]
        if kind not in ("Enum",):
            lines.append(f"  l{kind}: [{declared(kind)}]?")
    lines += ["}", "edge Link: Thing -> Thing {"]
    lines += [f"  p{kind}: {declared(kind)}?" for kind in KINDS]
    lines += ["}"]
    lines += [f"node Key{kind} {{ k: {declared(kind)} @key }}" for kind in KINDS]
    return "\n".join(lines)


@dataclass
class Held:
    """What the graph holds: of every type one value per thing, in the order of their keys."""

    graph: Graph
    things: dict[str, dict[str, Stored]]

    def keys(self, matches: Any) -> set[str]:
        return {key for key, values in self.things.items() if matches(values)}


def make(where: Path, copies: int) -> Held:
    """``copies``: how often every value is held; many make columns of repeated words."""
    graph = omnigraph.init(where, schema())
    rows = (max(len(values) for values in VALUES.values()) + 2) * copies
    things: dict[str, dict[str, Stored]] = {}
    nodes, edges = [], []
    for at in range(rows):
        key = f"t{at:05}"
        held = {kind: _at(kind, at) for kind in KINDS}
        things[key] = held
        data: dict[str, Any] = {"k": key}
        for kind, value in held.items():
            shown = spelled(kind, value)
            data |= {f"p{kind}": shown, f"x{kind}": shown}
            if kind != "Enum":
                data[f"l{kind}"] = None if shown is None else [shown, shown]
        nodes.append({"type": "Thing", "data": data})
        only = {name: value for name, value in data.items() if name.startswith("p")}
        edges.append({"edge": "Link", "from": key, "to": key, "data": only})
    for kind in KINDS:
        # Both zeros are one key.
        distinct = dict.fromkeys(stored(kind, value) for value in VALUES[kind])
        nodes += [{"type": f"Key{kind}", "data": {"k": spelled(kind, v)}} for v in distinct]
    lines = "\n".join(json.dumps(record) for record in [*nodes, *edges])
    source = where.parent / f"{where.name}.jsonl"
    source.write_text(lines + "\n")
    graph.load(source, mode="append")
    return Held(graph, things)


def _at(kind: str, row: int) -> Stored:
    values = [*VALUES[kind], None]
    return stored(kind, values[row % len(values)])


def spelled(kind: str, value: Stored) -> Any:
    """A stored value in JSON."""
    if value is None:
        return None
    if kind == "Date":
        return format_date(int(value))
    return format_instant(int(value)) if kind == "DateTime" else value


def asked_types(kind: str, value: Stored) -> Iterator[str]:
    """The types that a parameter may have to ask a property of a type for a value."""
    if kind not in NUMBERS:
        yield "String" if kind == "Enum" else kind
        return
    if isinstance(value, int):
        yield from (name for name, (low, high) in INTEGERS.items() if low <= value <= high)
    if isinstance(value, float) or float(value or 0) == value:
        yield "F64"


def literal(kind: str, value: Stored) -> str | None:
    """A value as query text; None where the language has no literal for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind in ("Date", "DateTime"):
        return f'{kind.lower()}("{spelled(kind, value)}")'
    if isinstance(value, str):
        return None if "\0" in value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(value) if value >= 0 else None
    if isinstance(value, float) and math.copysign(1, value) > 0 and math.isfinite(value):
        text = repr(value)
        return text if "e" not in text else None
    return None


@dataclass(frozen=True)
class Case:
    """One condition: a type, an operator, a value and the type it is given in."""

    kind: str
    op: str
    value: Stored
    given_as: str

    @property
    def params(self) -> dict[str, Any]:
        value = float(self.value) if self.given_as == "F64" else self.value  # type: ignore[arg-type]
        return {"v": spelled(self.kind, value)}


def cases() -> Iterator[Case]:
    """Every type, every value that can be asked of it, every operator."""
    for kind in KINDS:
        asked = [v for other in NUMBERS for v in VALUES[other]] if kind in NUMBERS else VALUES[kind]
        # Whole numbers and floats that are equal are different literals.
        for value in {(type(item), str(item)): item for item in asked}.values():
            for given_as in asked_types(kind, value):
                for op in ("=", "!=", "<", "<=", ">", ">="):
                    yield Case(kind, op, value, given_as)


def reads(case: Case) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Read queries that ask for a condition in different words: a name, a text, parameters."""
    kind, op, head = case.kind, case.op, f"query q($v: {case.given_as})"
    back = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    plain, indexed = f"p{kind}", f"x{kind}"

    def nodes(body: str, start: str = head) -> str:
        return f"{start} {{ match {{ {body} }} return {{ $n.k as k }} }}"

    yield "filter", nodes(f"$n: Thing  $n.{plain} {op} $v"), case.params
    yield "indexed", nodes(f"$n: Thing  $n.{indexed} {op} $v"), case.params
    yield "mirrored", nodes(f"$n: Thing  $v {back} $n.{plain}"), case.params
    yield "edge", nodes(f"$n: Thing  $n $e:link $m  $e.{plain} {op} $v"), case.params
    yield "joined", nodes(f"$n: Thing  $n link $m  $m.{plain} {op} $v"), case.params
    written = literal(kind, case.value)
    if written is not None:
        text = nodes(f"$n: Thing  $n.{plain} {op} {written}", "query q()")
        yield "literal", text, {}
    if op == "=":
        yield "inline", nodes(f"$n: Thing {{ {plain}: $v }}"), case.params
        yield "inline indexed", nodes(f"$n: Thing {{ {indexed}: $v }}"), case.params
        if kind != "Enum":
            yield "list", nodes(f"$n: Thing {{ l{kind}: $v }}"), case.params
            yield "contains", nodes(f"$n: Thing  $n.l{kind} contains $v"), case.params
        if written is not None:
            text = nodes(f"$n: Thing {{ {indexed}: {written} }}", "query q()")
            yield "inline literal", text, {}


def answer(graph: Graph, text: str, params: dict[str, Any], options: ReadOptions) -> list[Any]:
    return sorted(str(row["k"]) for row in graph.query(text, params=params, options=options).rows())
