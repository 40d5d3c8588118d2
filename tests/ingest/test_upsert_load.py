"""Loads that set only what is given: idempotent, and the same whatever the format; and what a merge
says about the values it took away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.graphs import rows
from tests.support.inline_tasks import bulk_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation, InvalidData, OmnigraphError

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  city: String?
  level: I32 @default(1)
  photo: Blob?
}
node Note { text: String  n: I32? }
edge Knows: Person -> Person { since: I32?  tags: [String]?  how: String @default("met") }
"""
FIRST = [
    {"type": "Person", "data": {"name": "ana", "age": 30, "city": "Oslo", "level": 3}},
    {"type": "Person", "data": {"name": "bo", "photo": "base64:AAEC"}},
    {"type": "Note", "data": {"id": "n1", "text": "x", "n": 1}},
    {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020, "tags": ["a"]}},
    {"edge": "Knows", "from": "bo", "to": "ana", "data": {"id": "k1"}},
]


@pytest.fixture(params=["in process", "in bulk"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    found = omnigraph.init(tmp_path / "g", SCHEMA)
    return bulk_graph(found) if request.param == "in bulk" else found


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def export(graph: Graph) -> list[str]:
    return sorted(b"".join(graph.export()).decode().splitlines())


def test_the_same_input_again_changes_nothing(graph: Graph) -> None:
    first = graph.load(lines(FIRST), mode="upsert")
    assert first.commit is not None
    before, commits = export(graph), len(graph.history.commits())
    again = graph.load(lines(FIRST + FIRST), mode="upsert")
    assert again.commit is None
    assert again.nodes == {"Person": 4, "Note": 2}
    assert export(graph) == before
    assert len(graph.history.commits()) == commits
    assert len(rows(graph, "edge:Knows")) == 2


def test_only_what_is_given_is_set(graph: Graph) -> None:
    graph.load(lines(FIRST), mode="append")
    change = [
        {"type": "Person", "data": {"name": "ana", "age": 31}},
        {"type": "Person", "data": {"name": "ana", "city": None, "level": None}},
        {"type": "Person", "data": {"name": "bo", "city": "Rome"}},
        {"type": "Person", "data": {"name": "cy"}},
        {"type": "Note", "data": {"id": "n1", "n": 2}},
        {"edge": "Knows", "from": "bo", "to": "cy", "data": {"id": "k1", "since": 1}},
    ]
    graph.load(lines(change), mode="upsert")
    people = rows(graph, "node:Person")
    assert {id: (r["age"], r["city"], r["level"]) for id, r in people.items()} == {
        "ana": (31, None, 1),
        "bo": (None, "Rome", 1),
        "cy": (None, None, 1),
    }
    assert graph.blob("node", "Person", "bo", "photo").read() == b"\x00\x01\x02"
    assert rows(graph, "node:Note")["n1"] == {"id": "n1", "n": 2, "text": "x"}
    moved = rows(graph, "edge:Knows")["k1"]
    assert (moved["src"], moved["dst"], moved["since"], moved["how"]) == ("bo", "cy", 1, "met")


def test_edges_without_id_are_the_ones_with_equal_ends_and_properties(graph: Graph) -> None:
    graph.load(lines(FIRST), mode="append")
    edges = [
        {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020, "tags": ["a"]}},
        {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020, "tags": ["b"]}},
        {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020, "tags": ["b"]}},
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {"how": "met", "since": None}},
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {"how": "saw"}},
    ]
    graph.load(lines(edges), mode="upsert")
    found = [(r["src"], r["tags"], r["how"]) for r in rows(graph, "edge:Knows").values()]
    assert sorted(found, key=repr) == [
        ("ana", ["a"], "met"),
        ("ana", ["b"], "met"),
        ("bo", None, "met"),
        ("bo", None, "saw"),
    ]


def test_an_edge_with_an_id_is_applied_before_those_without(graph: Graph) -> None:
    graph.load(lines(FIRST), mode="append")
    edges = [
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {"since": 7}},
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {}},
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {"id": "k1", "since": 7}},
    ]
    graph.load(lines(edges), mode="upsert")
    found = sorted(str(r["since"]) for r in rows(graph, "edge:Knows").values() if r["src"] == "bo")
    assert found == ["7", "None"]  # k1, and a new one that equals what k1 was before


def test_a_node_without_key_needs_an_id(graph: Graph) -> None:
    before = graph.snapshot()
    with pytest.raises(ConstraintViolation, match="Note has no key: an upserted node needs an id"):
        graph.load(lines([{"type": "Note", "data": {"text": "x"}}]), mode="upsert")
    assert graph.snapshot() == before


@pytest.mark.parametrize(
    "record",
    [
        {"type": "Note", "data": {"id": "new", "n": 1}},
        {"type": "Note", "data": {"id": "n1", "text": None}},
    ],
)
def test_required_values_are_there_when_it_is_done(graph: Graph, record: dict[str, Any]) -> None:
    graph.load(lines(FIRST), mode="append")
    with pytest.raises(InvalidData, match=r"Note\.text.*a value is required") as refused:
        graph.load(lines([record]), mode="upsert")
    assert refused.value.details["violations"][0]["line"] == 1


def test_rules_across_entities_hold(graph: Graph) -> None:
    with pytest.raises(OmnigraphError, match="ghost"):
        graph.load(lines([{"edge": "Knows", "from": "ghost", "to": "ghost"}]), mode="upsert")


def test_a_cell_of_a_table_is_given_and_a_missing_column_is_not(
    graph: Graph, tmp_path: Path
) -> None:
    graph.load(lines(FIRST), mode="append")
    table = pa.table({"name": ["ana", "bo"], "age": pa.array([None, 5], pa.int32())})
    pq.write_table(table, tmp_path / "p.parquet")
    (tmp_path / "p.csv").write_text("name,age\nana,\nbo,5\n")
    for source in (table, tmp_path / "p.parquet", tmp_path / "p.csv"):
        graph.load(lines(FIRST[:2]), mode="upsert")
        graph.load({"Person": source}, mode="upsert")
        people = rows(graph, "node:Person")
        assert {id: (r["age"], r["city"]) for id, r in people.items()} == {
            "ana": (None, "Oslo"),
            "bo": (5, None),
        }


def test_a_merge_says_what_it_takes_away(graph: Graph) -> None:
    first = graph.load(lines(FIRST), mode="merge")
    assert (first.values_nulled, first.edges_repeated) == (0, 0)
    records = [
        {"type": "Person", "data": {"name": "ana", "age": 31}},
        {"type": "Person", "data": {"name": "bo", "age": 1}},
        {"type": "Person", "data": {"name": "new"}},
        {"type": "Note", "data": {"id": "n1", "text": "y"}},
        {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020, "tags": ["a"]}},
        {"edge": "Knows", "from": "ana", "to": "new", "data": {}},
        {"edge": "Knows", "from": "ana", "to": "new", "data": {}},
    ]
    again = graph.load(lines(records), mode="merge", idempotency_key="k")
    assert (again.values_nulled, again.edges_repeated) == (3, 2)
    assert again.to_json()["values_nulled"] == 3
    assert again.to_json()["edges_repeated"] == 2
    repeated = graph.load(lines(records), mode="merge", idempotency_key="k")
    assert repeated.repeated
    assert (repeated.values_nulled, repeated.edges_repeated) == (3, 2)
    assert "values_nulled" not in first.to_json()
