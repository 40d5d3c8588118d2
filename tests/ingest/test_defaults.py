"""Defaults: whoever writes an entity without a value gets the one that the schema says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.graphs import rows
from tests.support.inline_tasks import bulk_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidValue, LanguageError

SCHEMA = """
node Ticket {
  title: String @key
  state: enum(open, done) @default(open)
  weight: F64 @default(1.5)
  opened: Date @default("1970-01-02")
  owner: String
}
edge Blocks: Ticket -> Ticket { hard: Bool @default(true) }
"""
GIVEN = {"state": "open", "weight": 1.5, "owner": "ana"}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA)


def stored(graph: Graph, title: str) -> dict[str, Any]:
    row = rows(graph, "node:Ticket")[title]
    assert str(row["opened"]) == "1970-01-02"
    return {name: row[name] for name in GIVEN}


def test_inserts_and_statements_use_them(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Ticket", {"title": "a", "owner": "ana"})
        w.insert("Ticket", {"title": "b", "owner": "ana", "state": "done", "weight": None})
        w.insert_edge("Blocks", "a", "b")
    graph.mutate('query add() { insert Ticket { title: "c", owner: "ana" } }')
    add = 'query add($w: F64?) { insert Ticket { title: "d", owner: "ana", weight: $w } }'
    graph.mutate(add, params={"w": None})
    graph.mutate('query tie() { insert Blocks { from: "a", to: "c" } }')
    assert stored(graph, "a") == GIVEN
    assert stored(graph, "b") == {**GIVEN, "state": "done"}
    assert stored(graph, "c") == stored(graph, "d") == GIVEN
    assert [row["hard"] for row in rows(graph, "edge:Blocks").values()] == [True, True]


@pytest.mark.parametrize("bulk", [False, True], ids=["in process", "in bulk"])
def test_loads_use_them(graph: Graph, bulk: bool) -> None:
    target = bulk_graph(graph) if bulk else graph
    lines = (
        b'{"type": "Ticket", "data": {"title": "a", "owner": "ana"}}\n'
        b'{"type": "Ticket", "data": {"title": "b", "owner": "ana", "state": null}}\n'
        b'{"edge": "Blocks", "from": "a", "to": "b"}\n'
    )
    target.load(lines, mode="append")
    target.load(b"title,owner,weight\nc,ana,\n", mode="merge", type="Ticket", format="csv")
    assert [stored(graph, title) for title in "abc"] == [GIVEN] * 3
    assert [row["hard"] for row in rows(graph, "edge:Blocks").values()] == [True]


def test_what_has_no_default_is_still_required(graph: Graph) -> None:
    with pytest.raises(InvalidValue, match="owner is required"), graph.write() as w:
        w.insert("Ticket", {"title": "a"})
    with pytest.raises(InvalidData, match="owner"):
        graph.load([{"type": "Ticket", "data": {"title": "a"}}], mode="append")
    with pytest.raises(LanguageError, match="owner"):
        graph.mutate('query add() { insert Ticket { title: "c" } }')


def test_an_update_does_not_use_them(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Ticket", {"title": "a", "owner": "ana"})
    with pytest.raises(InvalidValue), graph.write() as w:
        w.update("Ticket", "a", {"state": None})


def test_a_required_property_with_a_default_comes_with_its_value(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Ticket", {"title": "a", "owner": "ana"})
    commits = len(graph.history.commits())
    level = SCHEMA.replace("owner: String", "owner: String\n level: I32 @default(3)")
    done = graph.apply_schema(level)
    assert [step.kind for step in done.plan.steps] == ["add_property"]
    assert rows(graph, "node:Ticket")["a"]["level"] == 3
    assert len(graph.history.commits()) == commits + 1
    assert not graph.apply_schema(level).applied
    other = graph.apply_schema(level.replace("@default(3)", "@default(4)"))
    assert [step.kind for step in other.plan.steps] == ["update_property_metadata"]
    with graph.write() as w:
        w.insert("Ticket", {"title": "b", "owner": "ana"})
    levels = {id: row["level"] for id, row in rows(graph, "node:Ticket").items()}
    assert levels == {"a": 3, "b": 4}


def test_a_value_that_is_given_goes_before_the_default(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Ticket", {"title": "a", "owner": "ana"})
    level = SCHEMA.replace("owner: String", "owner: String\n level: I32 @default(3)")
    graph.apply_schema(level, backfill={"Ticket.level": 9})
    assert rows(graph, "node:Ticket")["a"]["level"] == 9
