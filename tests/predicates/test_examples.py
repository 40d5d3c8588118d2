"""Regressions: conditions on which queries and mutations once disagreed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node N {
  k: String @key
  f: F32?
  d: F64?
  i: I32? @index
  u: U32? @index
  w: U64? @index
  hit: Bool?
}
"""


def _graph(where: Path, **values: Any) -> Graph:
    graph = omnigraph.init(where / "graph", SCHEMA)
    graph.load({"N": [{"k": "n", **values}]}, mode="append")
    return graph


def _found(graph: Graph, condition: str) -> int:
    return len(graph.query(f"query q() {{ match {{ $n: N  $n.{condition} }} return {{ $n.k }} }}"))


def _updated(graph: Graph, condition: str) -> int:
    text = f"query w() {{ update N set {{ hit: true }} where {condition} }}"
    return graph.mutate(text).affected_nodes


def _deleted(graph: Graph, condition: str) -> int:
    return graph.mutate(f"query w() {{ delete N where {condition} }}").affected_nodes


@pytest.mark.parametrize(
    ("held", "condition", "matches"),
    [
        ({"f": 0.1}, "f = 0.1", True),
        ({"f": 0.1}, "f != 0.1", False),
        ({"f": 0.1}, "f <= 0.1", True),
        ({"f": 0.1}, "f > 0.1", False),
        ({"d": 2**53}, "d = 9007199254740993", False),
        ({"d": 2**53}, "d != 9007199254740993", True),
        ({"d": 2**53}, "d < 9007199254740993", True),
        ({"d": 2**53}, "d >= 9007199254740993", False),
        ({"w": 2**63 + 1}, "w = 9223372036854775808", False),
        ({"w": 2**63 + 1}, "w = 9223372036854775809", True),
        ({"i": 2}, "i = 2.0", True),
        ({"i": 2}, "i = 2.7", False),
    ],
)
def test_queries_updates_and_deletes_agree_q47(
    tmp_path: Path, held: dict[str, Any], condition: str, matches: bool
) -> None:
    graph = _graph(tmp_path, **held)
    for ask in (_found, _updated, _deleted):
        assert ask(graph, condition) == int(matches), ask.__name__


@pytest.mark.parametrize(
    ("name", "value"), [("u", -5), ("u", 2**32), ("i", 2**31), ("i", -(2**31) - 1), ("w", -1)]
)
def test_a_number_that_a_property_cannot_hold_matches_nothing(
    tmp_path: Path, name: str, value: int
) -> None:
    graph = _graph(tmp_path, i=1, u=1, w=1)
    graph.maintenance.build_indexes()
    text = f"query w($v: I64) {{ delete N where {name} = $v }}"
    assert graph.mutate(text, params={"v": value}).affected_nodes == 0
