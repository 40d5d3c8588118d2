"""Runs the cases in ``tests/cases/schema/*.toml``. A new case needs no Python.

A case has a ``name`` and a ``rule`` and any of:

- ``schema``: a text that is accepted, or refused when ``errors`` is given. ``previous`` is the text
  accepted before it.
- ``errors``: codes in text order, each alone or with its place: ``"S14"`` or ``"S14 1:10"``.
  ``hint`` is part of one of their hints.
- ``expect``: by type key, what the accepted type holds.
- ``ids``: JSON values of a node, and the id they give.
- ``same_as``, ``differs_from``: texts with the same or another shape hash.
- ``before``, ``after``: a change, with ``steps``, ``supported`` and ``allow_data_loss``.
- ``input``, ``output``: a text and its one layout.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.lang.schema.support import accept, findings, plan

from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, entity_id, format_schema
from omnigraph.lang.syntax import Source

FOLDER = Path(__file__).parents[2] / "cases" / "schema"
KEYS = {
    *("name", "rule", "schema", "previous", "errors", "hint", "expect", "ids", "same_as"),
    *("differs_from", "before", "after", "steps", "supported", "allow_data_loss", "input"),
    "output",
}

Case = dict[str, Any]


def load() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for case in tomllib.loads(path.read_text("utf-8"))["case"]:
            name = f"{path.stem}: {case['name']}"
            assert name not in found, f"two cases are called {name}"
            found[name] = case
    return found


CASES = load()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_case(case: Case) -> None:
    assert set(case) <= KEYS, f"unknown keys: {set(case) - KEYS}"
    checks = 0
    if "schema" in case:
        checks += check_schema(case)
    if "before" in case:
        check_plan(case)
        checks += 1
    if "input" in case:
        assert format_schema(case["input"]) == case["output"]
        assert format_schema(case["output"]) == case["output"]
        checks += 1
    assert checks, "the case checks nothing"


def check_schema(case: Case) -> int:
    text = case["schema"]
    previous = accept(case["previous"]) if "previous" in case else None
    if "errors" in case:
        check_errors(case, text, previous)
        return 1
    schema = accept(text, previous)
    for key, wanted in case.get("expect", {}).items():
        found = described(schema, key)
        assert {name: found[name] for name in wanted} == wanted
    for item in case.get("ids", ()):
        node = schema.nodes[item["type"]]
        stored = {
            name: node.properties[name].type.accept(value) for name, value in item["values"].items()
        }
        assert entity_id(node, stored) == item["id"]
    for other in case.get("same_as", ()):
        assert accept(other).hash == schema.hash, other
    for other in case.get("differs_from", ()):
        assert accept(other).hash != schema.hash, other
    assert AcceptedSchema.from_json(schema.to_json()) == schema
    return 1


def check_errors(case: Case, text: str, previous: AcceptedSchema | None) -> None:
    source = Source("<schema>", text)
    found = [item for item in findings(text, previous) if item.severity == "error"]
    shown = []
    for item, wanted in zip(found, [*case["errors"], *[""] * len(found)], strict=False):
        assert item.span is not None
        line, column = source.position(item.span.start)
        shown.append(f"{item.code} {line}:{column}" if " " in wanted else item.code)
    assert shown == case["errors"]
    if "hint" in case:
        assert any(case["hint"] in (item.hint or "") for item in found)


def check_plan(case: Case) -> None:
    found = plan(case["before"], case["after"], allow_data_loss=case.get("allow_data_loss", False))
    steps = [without_nulls(step.to_json()) for step in found.steps]
    cut = [
        {name: step.get(name) for name in wanted}
        for step, wanted in zip(steps, case["steps"], strict=True)
    ]
    assert cut == case["steps"]
    assert found.supported == case.get("supported", True)


def without_nulls(value: Any) -> Any:
    """The same data without null members, which the case files cannot write."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


def described(schema: AcceptedSchema, key: str) -> dict[str, Any]:
    """What an accepted type holds, in the words of the case files."""
    kind, _, name = key.partition(":")
    item = schema.interfaces[name] if kind == "interface" else schema.type(key)
    properties = item.properties.values()
    found: dict[str, Any] = {
        "properties": {declared.name: str(declared.type) for declared in properties},
        "unique": [list(columns) for columns in item.unique],
        "indexes": [list(columns) for columns in item.indexes],
        "inherited": [declared.name for declared in properties if declared.inherited],
        "embeds": {
            declared.name: [declared.embed.source, declared.embed.model or ""]
            for declared in properties
            if declared.embed
        },
        "described": {item.name: item.description for item in properties if item.description},
        "noted": {
            declared.name: [note.name for note in declared.annotations]
            for declared in properties
            if declared.annotations
        },
    }
    if isinstance(item, NodeType | EdgeType):
        found |= {
            "columns": [column.name for column in item.columns()],
            "key": list(item.key_properties),
            "description": item.description or "",
            "instruction": item.instruction or "",
            "annotations": [note.to_json() for note in item.annotations],
        }
    if isinstance(item, NodeType):
        found |= {
            "ranges": [f"{bounds.property} {bounds}" for bounds in item.ranges],
            "checks": [f"{check.property} {check.pattern}" for check in item.checks],
            "implements": list(item.implements),
        }
    if isinstance(item, EdgeType):
        found |= {
            "source": item.source,
            "target": item.target,
            "cardinality": str(item.cardinality),
        }
    return found


def test_there_are_enough_cases() -> None:
    own = [name for name in CASES if not name.startswith("conformance")]
    assert len(own) >= 150
