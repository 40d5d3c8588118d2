"""Dates and instants are ISO 8601 texts in every output, and load back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Event {
  name: String @key
  day: Date?
  at: DateTime?
  days: [Date]?
  instants: [DateTime]?
}
edge After: Event -> Event { since: Date?  seen: [DateTime]? }
"""
NUMBERS = {"day": 19782, "at": 1709208000123, "days": [0, 19782], "instants": [-1, 0]}
TEXTS = {
    "day": "2024-02-29",
    "at": "2024-02-29T12:00:00.123Z",
    "days": ["1970-01-01", "2024-02-29"],
    "instants": ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"],
}
FAR = {"day": 2**31 - 1, "at": -(2**63), "days": [-(2**31)], "instants": [2**63 - 1]}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load({"Event": [{"name": "a", **NUMBERS}, {"name": "b"}]}, mode="append")
    edge = {"from": "a", "to": "b", "since": 1, "seen": [1]}
    graph.load({"After": [edge]}, mode="append")
    return graph


def strings(value: Any) -> set[type]:
    """The kinds of values below a JSON value."""
    if isinstance(value, dict):
        return {kind for item in value.values() for kind in strings(item)}
    if isinstance(value, list):
        return {kind for item in value for kind in strings(item)}
    return {type(value)}


def test_entities_histories_blame_and_differences(graph: Graph) -> None:
    shown = {"name": "a", **TEXTS}
    assert graph.entity("node:Event", "a") == {"id": "a", **shown}
    event = next(iter(graph.history.entity("Event", "a")))
    assert event.after == {"properties": shown}
    assert {item.property: item.value for item in graph.history.blame("Event", "a")} == shown
    first = graph.history.commits()[-1].commit_id
    for change in graph.diff(first, "main", types=["After"]):
        assert change.to_json()["after"]["properties"] == {
            "since": "1970-01-02",
            "seen": ["1970-01-01T00:00:00.001Z"],
        }


def test_feeds_baselines_and_previews_of_merges(graph: Graph) -> None:
    blocks = [block.to_json() for block in graph.history.changes(start="beginning").blocks]
    images = [c["after"] for block in blocks for c in block["changes"]]
    assert {"properties": {"name": "a", **TEXTS}} in images
    assert all(strings(image) <= {str, type(None)} for image in images)
    *records, _ = b"".join(graph.history.baseline()).splitlines()
    assert all(strings(json.loads(line)) <= {str, type(None)} for line in records)
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.update("Event", "b", {"day": 3})
    (change,) = graph.merge("dev", dry_run=True).changes
    assert change.after is not None
    assert change.after["properties"]["day"] == "1970-01-04"


def test_an_export_loads_back_to_the_same_bytes(graph: Graph, tmp_path: Path) -> None:
    graph.load({"Event": [{"name": "far", **FAR}]}, mode="append")
    exported = b"".join(graph.export())
    copy = omnigraph.init(tmp_path / "copy", SCHEMA)
    copy.load(exported, mode="append")
    assert b"".join(copy.export()) == exported
    assert [json.loads(line)["data"].get("day") for line in exported.splitlines()[1:]] == [
        "2024-02-29",
        None,
        "+5881580-07-11",
    ]


def test_exports_with_numbers_still_load(graph: Graph, tmp_path: Path) -> None:
    """What exports looked like before."""
    old = [
        {"type": "Event", "data": {"id": "a", "name": "a", **NUMBERS}},
        {"type": "Event", "data": {"id": "b", "name": "b"}},
    ]
    copy = omnigraph.init(tmp_path / "copy", SCHEMA)
    copy.load("".join(json.dumps(record) + "\n" for record in old).encode(), mode="append")
    assert b"".join(copy.export(types=["Event"])) == b"".join(graph.export(types=["Event"]))


def test_results_fit_a_line(graph: Graph) -> None:
    first = graph.history.commits()[-1].commit_id
    for value in (graph.diff(first, "main"), graph.history.entity("Event", "a")):
        assert len(repr(value)) <= 100
        assert "\n" not in repr(value)
