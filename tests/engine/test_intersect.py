"""Intersections and edge sets: the nodes that several lists of neighbours share, by brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from omnigraph.engine.exec import intersect
from omnigraph.engine.exec.intersect import Intersection, KnownEnd
from omnigraph.engine.tables import edge_set
from omnigraph.engine.tables.adjacency import Adjacency, build_adjacency
from omnigraph.engine.tables.edge_set import EdgeSet
from omnigraph.errors import ResourceLimit

NODES = 30


def _adjacency(rng: np.random.Generator, edges: int) -> Adjacency:
    near, far = rng.integers(0, NODES, edges), rng.integers(0, NODES, edges) ** 2 // NODES
    return build_adjacency(near.astype(np.int32), far.astype(np.int32), NODES).distinct()


def _neighbours(adjacency: Adjacency, node: int) -> set[int]:
    return set(adjacency.nodes[adjacency.starts[node] : adjacency.starts[node + 1]].tolist())


@pytest.fixture(params=["bitmap", "hashes"])
def sets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "hashes":
        monkeypatch.setattr(edge_set, "PAIRS_MAX", 0)
    monkeypatch.setattr(intersect, "CANDIDATES", 7)
    return str(request.param)


def test_an_edge_set_holds_exactly_the_edges(sets: str) -> None:
    adjacency = _adjacency(np.random.default_rng(1), 200)
    near, far = (axis.ravel() for axis in np.indices((NODES, NODES)))
    found = EdgeSet(adjacency, NODES).contains(near, far)
    expected = [int(b) in _neighbours(adjacency, int(a)) for a, b in zip(near, far, strict=True)]
    assert found.tolist() == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize("sides", [1, 2, 3])
@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("different", [0, 1, 2])
def test_an_intersection_is_found_and_counted(
    sets: str, sides: int, absent: int, different: int
) -> None:
    rng = np.random.default_rng(sides + 10 * absent + 100 * different)
    adjacencies = [_adjacency(rng, edges) for edges in (60, 200, 120, 90, 150)[: sides + absent]]
    rows = 80
    known = [rng.integers(0, NODES, rows).astype(np.int32) for _ in adjacencies]
    other = [rng.integers(0, NODES, rows).astype(np.int32) for _ in range(different)]
    made = [
        KnownEnd(adjacency, column, EdgeSet(adjacency, NODES).contains)
        for adjacency, column in zip(adjacencies, known, strict=True)
    ]
    expected = []
    for row in range(rows):
        lists = [_neighbours(a, int(k[row])) for a, k in zip(adjacencies, known, strict=True)]
        nodes = set.intersection(*lists[:sides]).difference(*lists[sides:])
        expected.append(sorted(nodes - {int(column[row]) for column in other}))
    intersection = Intersection(made[:sides], made[sides:], other, rows=rows)
    found = intersection.nodes(lambda rows: None)
    by_row = [sorted(found.node[found.origin == row].tolist()) for row in range(rows)]
    assert by_row == expected
    assert (np.diff(found.origin) >= 0).all()
    assert intersection.counts().tolist() == [len(nodes) for nodes in expected]
    assert sum(map(len, expected)) > 0


def test_too_many_nodes_are_refused_before_all_are_found(sets: str) -> None:
    adjacency = _adjacency(np.random.default_rng(3), 200)
    side = KnownEnd(adjacency, np.arange(NODES, dtype=np.int32), EdgeSet(adjacency, NODES).contains)
    seen: list[int] = []
    with pytest.raises(ResourceLimit):
        Intersection((side,), rows=NODES).nodes(_refusing(seen, 20))
    assert seen[-1] < len(adjacency.nodes)


def _refusing(seen: list[int], rows_max: int) -> Callable[[int], None]:
    def allow(rows: int) -> None:
        seen.append(rows)
        if rows > rows_max:
            raise ResourceLimit("query_memory_bytes", rows_max, rows, remedy="Ask for less.")

    return allow
