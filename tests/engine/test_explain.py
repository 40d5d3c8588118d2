"""Explain: the order of steps, estimates, access paths and their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader
from omnigraph.engine.plan import access_choice
from tests.engine.graphs import make_graph
from tests.support.internals import repository_of

SCHEMA = """
node Spot { k: String @key  v: I32  body: String? @index  vec: Vector(2)? }
edge Link: Spot -> Spot { w: I32? }
"""
HOP = """query hop($k: String) { match { $a: Spot { k: $k }  $a link $b  $b.v > 1
  not { $b $e:link $a  $e.w > 0 } } return { $b.k } order { $b.v desc } limit 2 }"""
ALL = "query all() { match { $a: Spot  $a.v > 1 } return { $a.v, count($a) as n } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    nodes = [{"type": "Spot", "data": {"k": f"s{at}", "v": at}} for at in range(10)]
    edges = [
        {"edge": "Link", "from": f"s{at}", "to": f"s{at + 1}", "data": {"w": at}} for at in range(9)
    ]
    return make_graph(tmp_path / "g", SCHEMA, [*nodes, *edges])


def _reader(graph: Graph) -> Reader:
    return Reader(repository_of(graph), cache=MemoryCache(1 << 20), store=None)


def test_small_types_are_loaded_and_a_key_names_one_node(graph: Graph) -> None:
    found = _reader(graph).explain(HOP)
    scan, follow, without, inner = found.steps
    assert (scan.access, scan.rows, scan.why) == ("id look-up", 1, access_choice.SMALL)
    assert (follow.access, follow.why) == ("adjacency, made first", access_choice.SMALL)
    assert without.text.startswith("not")
    assert (inner.depth, inner.text.split()[0]) == (1, "connected")
    assert [line.split()[0] for line in found.answer] == ["order", "limit", "return"]
    assert found.lines()[1].split() == ["rows", "access", "step", "why"]


def test_reasons_follow_what_is_in_memory(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_choice, "SMALL_ROWS_MAX", 0)
    reader = _reader(graph)
    for _ in range(access_choice.PROBES_BEFORE_LOAD):
        assert {step.access for step in reader.explain(HOP).steps if step.access} == {
            "index look-up"
        }
        assert reader.explain(HOP).steps[0].why == access_choice.NAMED
        reader.query(HOP, params={"k": "s3"})
    assert reader.explain(HOP).steps[0].why == access_choice.OFTEN
    reader.query(HOP, params={"k": "s3"})
    assert reader.explain(HOP).steps[0].why == access_choice.IN_MEMORY
    assert reader.explain(HOP).steps[1].access == "adjacency"
    assert _reader(graph).explain(ALL).steps[0].why == access_choice.NOT_NAMED


def test_explaining_loads_nothing_and_counts_as_no_use(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_choice, "SMALL_ROWS_MAX", 0)
    reader = _reader(graph)
    for _ in range(5):
        assert reader.explain(HOP).steps[0].why == access_choice.NAMED
    assert len(reader.cache) == 0


def test_a_search_is_explained_too(graph: Graph) -> None:
    text = """query near() { match { $a: Spot } return { $a.k }
      order { nearest($a.vec, [1.0, 0.0]) } limit 3 }"""
    found = _reader(graph).explain(text)
    assert found.to_json()["steps"][0]["access"] == "columns"
    assert any(line.startswith("rank by") for line in found.answer)
