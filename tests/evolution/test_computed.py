"""New properties that are computed from others, for the entities that exist already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput, SchemaChangeRefused

BEFORE = "node P {\n  k: String @key\n  first: String\n  last: String?\n  n: I32?\n}\n"
AFTER = "node P {\n  k: String @key\n  full: String\n  n: I32?\n  twice: I32?\n}\n"
FULL = 'coalesce(first + " " + last, first)'
COMPUTE = {"P.full": FULL, "P.twice": "n * 2"}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", BEFORE)
    with graph.write() as w:
        w.insert("P", {"k": "a", "first": "Ana", "last": "Lopez", "n": 4})
        w.insert("P", {"k": "b", "first": "Bob", "n": 2**31 - 1})
    return graph


def rows(graph: Graph, branch: str | None = None) -> list[dict[str, Any]]:
    text = "query q() { match { $p: P } return { $p.k, $p.full, $p.twice } order { $p.k } }"
    return [{k[2:]: v for k, v in row.items()} for row in graph.query(text, branch=branch).rows()]


EXPECTED = [
    {"k": "a", "full": "Ana Lopez", "twice": 8},
    {"k": "b", "full": "Bob", "twice": None},  # no I32 could hold it
]


def test_values_are_made_of_properties_that_may_go_away_in_the_same_change(graph: Graph) -> None:
    graph.apply_schema(AFTER, compute=COMPUTE)
    assert rows(graph) == EXPECTED
    assert broken_promises(graph.uri) == []
    assert graph.maintenance.check().healthy


def test_no_entity_has_changed_because_a_property_was_computed(graph: Graph) -> None:
    first = graph.snapshot().commit_id
    graph.apply_schema(AFTER, compute=COMPUTE)
    assert graph.diff(first, "main").stats.total == 0
    with graph.write() as w:
        w.update("P", "a", {"n": 5})
    assert [change.id for change in graph.diff(first, "main")] == ["a"]
    assert len(list(graph.history.entity("P", "b"))) == 1


def test_the_same_change_again_does_nothing(graph: Graph) -> None:
    assert graph.apply_schema(AFTER, compute=COMPUTE).applied
    assert not graph.apply_schema(AFTER, compute=COMPUTE).applied


def test_a_merge_computes_for_what_came_from_the_other_side(graph: Graph) -> None:
    graph.branches.create("dev")
    graph.apply_schema(AFTER, branch="dev", compute=COMPUTE)
    with graph.write() as w:
        w.insert("P", {"k": "c", "first": "Cy", "last": "Dee", "n": 3})
        w.update("P", "b", {"n": 1})
    graph.merge("dev")
    assert rows(graph) == [
        EXPECTED[0],
        {"k": "b", "full": "Bob", "twice": 2},
        {"k": "c", "full": "Cy Dee", "twice": 6},
    ]
    assert broken_promises(graph.uri) == []


def test_a_changed_value_that_lives_on_in_a_computed_property_is_no_conflict(
    graph: Graph,
) -> None:
    graph.branches.create("dev")
    graph.apply_schema(AFTER, branch="dev", compute=COMPUTE)
    with graph.write() as w:
        w.update("P", "b", {"first": "Rob"})
    graph.merge("dev")
    assert rows(graph)[1]["full"] == "Rob"


def test_what_a_required_property_cannot_be_computed_for_is_listed(graph: Graph) -> None:
    with pytest.raises(SchemaChangeRefused) as caught:
        graph.apply_schema(AFTER, compute={**COMPUTE, "P.full": 'first + " " + last'})
    assert [one["id"] for one in caught.value.details["violations"]] == ["b"]
    assert graph.schema().source == BEFORE


def test_new_rules_hold_for_what_was_computed(graph: Graph) -> None:
    text = AFTER.replace("full: String", "full: String @unique")
    with graph.write() as w:
        w.insert("P", {"k": "c", "first": "Bob"})
    with pytest.raises(SchemaChangeRefused):
        graph.apply_schema(text, compute=COMPUTE)


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        ({"P.n": "n"}, "not a property that this schema adds"),
        ({"P.none": "n"}, "not a property that this schema adds"),
        ({"P.full": "frist"}, "there is no property frist"),
        ({"P.full": "full"}, "there is no property full"),
    ],
)
def test_bad_input(graph: Graph, compute: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        graph.apply_schema(AFTER, compute={**COMPUTE, **compute})
    with pytest.raises(InvalidInput, match="has a backfill and a compute"):
        graph.apply_schema(AFTER, compute=COMPUTE, backfill={"P.full": "x"})


def test_a_property_that_is_newer_than_the_rows_counts_as_what_they_were_given(
    graph: Graph,
) -> None:
    """Three states: before a property, with it, and with another that is computed from it."""
    first = graph.snapshot().commit_id
    second = BEFORE.replace("n: I32?", "n: I32?\n  m: I32?")
    graph.apply_schema(second, backfill={"P.m": 5})
    graph.apply_schema(second.replace("m: I32?", "m: I32?\n  o: I32?"), compute={"P.o": "m + 1"})
    assert graph.diff(first, "main").stats.total == 0
