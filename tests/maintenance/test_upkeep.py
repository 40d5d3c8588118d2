"""Upkeep after writes: indexes that look-ups rest on, built once and kept up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation, KeyConflict
from omnigraph.maintenance import upkeep
from omnigraph.storage.lance.staging import indexes as indexing
from omnigraph.storage.lance.staging.indexes import IndexSpec
from omnigraph.storage.lance.tables import PinnedTable

SCHEMA = """
node P { k: String @key  u: String? @unique  a: I32?  b: Date?  @unique(a, b) }
edge E: P -> P { w: I32? @unique }
"""
ROWS = 60


def lookup_index(column: str) -> str:
    return IndexSpec(column, "BTREE").name


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(upkeep, "LARGE_WRITE_ROWS", 50)
    return omnigraph.init(tmp_path / "g", SCHEMA)


def rows(start: int = 0) -> list[dict[str, Any]]:
    return [{"k": f"k{i}", "u": f"u{i}", "a": i, "b": i} for i in range(start, start + ROWS)]


def table(graph: Graph, key: str) -> PinnedTable:
    return repository_of(graph).tables.open(graph.snapshot().pin(key).ref)


def indexes(graph: Graph, key: str) -> dict[str, int]:
    """Segments per index."""
    return {i.name: len(i.segments) for i in table(graph, key).dataset.describe_indices()}


def uses_index(found: PinnedTable, condition: str) -> bool:
    return "ScalarIndexQuery" in found.dataset.scanner(filter=condition).explain_plan()


def test_a_large_load_is_indexed_without_a_commit(graph: Graph) -> None:
    commits = len(graph.history.commits())
    graph.load(
        {"P": rows(), "E": [{"from": "k1", "to": "k2", "w": i} for i in range(ROWS)]}, mode="append"
    )
    assert len(graph.history.commits()) == commits + 1
    assert set(indexes(graph, "node:P")) == {lookup_index(c) for c in ("id", "k", "u", "a", "b")}
    assert set(indexes(graph, "edge:E")) == {lookup_index(c) for c in ("id", "src", "dst", "w")}
    assert uses_index(table(graph, "node:P"), "`u` IN ('u5')")
    assert uses_index(table(graph, "edge:E"), "`dst` IN ('k2')")


def test_small_writes_and_unwanted_upkeep_build_nothing(graph: Graph) -> None:
    graph.load({"P": rows()[:40]}, mode="append")
    assert indexes(graph, "node:P") == {}
    graph.load({"P": rows(100)}, mode="append", upkeep=False)
    assert indexes(graph, "node:P") == {}


def test_later_loads_add_segments_until_the_index_is_built_anew(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "INDEX_SEGMENTS_MAX", 2)
    counts = []
    for number in range(4):
        graph.load({"P": rows(number * ROWS)}, mode="append")
        counts.append(indexes(graph, "node:P")[lookup_index("id")])
    assert counts == [1, 2, 1, 2]
    found = table(graph, "node:P")
    for number in range(4):
        id = f"k{number * ROWS + 7}"
        assert found.scan(["id"], f"id = '{id}'")["id"].to_pylist() == [id]


def test_checks_give_the_same_answers_through_an_index(graph: Graph) -> None:
    graph.load({"P": rows()}, mode="append")
    graph.mutate('query q() { update P set { u: "moved" } where k = "k5" }')
    graph.mutate('query q() { delete P where k = "k6" }')
    graph.mutate('query q() { insert P { k: "new", u: "u5" } }')
    graph.mutate('query q() { insert P { k: "k6", u: "u6" } }')
    for text in ("moved", "u7", "u6"):
        with pytest.raises(ConstraintViolation, match="@unique"):
            graph.mutate('query q($u: String) { insert P { k: "x", u: $u } }', params={"u": text})
    with pytest.raises(ConstraintViolation, match="@unique"):
        graph.load([{"type": "P", "data": {"k": "y", "a": 9, "b": 9}}], mode="append")
    with pytest.raises(KeyConflict, match="k9"):
        graph.load({"P": [{"k": "k9"}]}, mode="append")
    graph.load({"P": [{"k": "y", "a": 9, "b": 10}]}, mode="append")
