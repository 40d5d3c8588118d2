"""Invariants of every algorithm, computed independently, on graphs of realistic size.

On graphs of some dozens of nodes nearly any stopping rule gives the right numbers. Here graphs have
``OMNIGRAPH_TEST_ANALYTICS_NODES`` nodes (20,000 unless said; 200,000 for a full run): random edges
with loops and repeated ones, nodes without edges, hubs, long chains. What is checked is what the
answer means (the residual of PageRank, union-find, breadth-first search, common neighbours), by
code that shares nothing with the implementation.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.inline_tasks import InlineTasks

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput
from omnigraph.spark.analytics import network

NODES = int(os.environ.get("OMNIGRAPH_TEST_ANALYTICS_NODES", "20000"))
DAMPING, TOLERANCE = 0.85, 1e-6
SCHEMA = """
node Thing { name: String @key }
edge Link: Thing -> Thing { weight: F64?  big: I64? }
"""

Vector = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Edges:
    """A graph as it was generated: nodes are 0 to ``nodes`` - 1."""

    nodes: int
    source: Vector
    target: Vector
    weight: Vector

    def store(self, where: Path) -> Graph:
        graph = omnigraph.init(where, SCHEMA)
        names = np.array([f"n{number}" for number in range(self.nodes)])
        quarters = (np.minimum(self.weight, 2.0) * 4).astype(np.int64)
        links = pa.table(
            {
                "src": names[self.source],
                "dst": names[self.target],
                "weight": self.weight,
                "big": np.where(self.weight > 0, quarters << 59 | 1, 0),
            }
        )
        tables = {"Thing": pa.table({"name": names}), "Link": links}
        graph.load(tables, mode="append", engine="local", upkeep=False)
        return graph

    def neighbours(self) -> list[set[int]]:
        """Distinct neighbours in either direction, without the node itself."""
        found: list[set[int]] = [set() for _ in range(self.nodes)]
        for a, b in zip(self.source.tolist(), self.target.tolist(), strict=True):
            if a != b:
                found[a].add(b)
                found[b].add(a)
        return found


def values(found: Any, column: str) -> list[Any]:
    """A column by number of node."""
    table = found.table()
    at = np.array([int(id[1:]) for id in table["id"].to_pylist()])
    order = np.argsort(at)
    assert np.array_equal(at[order], np.arange(len(at)))
    return table[column].take(pa.array(order)).to_pylist()


def random_edges(seed: int, nodes: int, per_node: float) -> Edges:
    """Half of the targets are among few nodes; a tenth of the nodes has no edge to follow."""
    chance = np.random.default_rng(seed)
    count = int(nodes * per_node)
    source = chance.integers(nodes // 10, nodes, count)
    target = chance.integers(0, nodes, count)
    hubs = chance.random(count) < 0.5
    target[hubs] = (nodes * chance.random(int(hubs.sum())) ** 4).astype(np.int64)
    target[:20] = source[:20]  # loops
    target[20:40], source[20:40] = target[20], source[20]  # repeated edges
    return Edges(nodes, source, target, chance.integers(0, 8, count) / 4)


@pytest.fixture(scope="module", params=[1, 3], ids=["one block", "three blocks"])
def blocks(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param > 1:
            patch.setattr(network, "NODES_PER_BLOCK", -(-NODES // request.param))
            tasks = "omnigraph.spark.engine_choice.start_tasks"
            patch.setattr(tasks, lambda *_: InlineTasks())
        yield request.param


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edges, Graph]:
    edges = random_edges(7, NODES, 5)
    return edges, edges.store(tmp_path_factory.mktemp("dense") / "g")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> tuple[Edges, Graph]:
    """Many components: random edges among some nodes, and one chain through the others."""
    edges = random_edges(8, NODES, 0.5)
    chain = np.arange(NODES - 2_000, NODES)
    edges = Edges(
        NODES,
        np.concatenate([edges.source, chain[1:]]),
        np.concatenate([edges.target, chain[:-1]]),
        np.concatenate([edges.weight, np.ones(len(chain) - 1)]),
    )
    return edges, edges.store(tmp_path_factory.mktemp("sparse") / "g")


# -- PageRank --------------------------------------------------------------------------------------


def step(edges: Edges, rank: Vector, weight: Vector) -> Vector:
    """One power iteration, by the definition."""
    leaving = np.zeros(edges.nodes)
    np.add.at(leaving, edges.source, weight)
    moves = leaving > 0
    arriving = np.zeros(edges.nodes)
    carried = np.where(moves, rank, 0.0) / np.where(moves, leaving, 1.0)
    np.add.at(arriving, edges.target, carried[edges.source] * weight)
    everywhere = (1 - DAMPING + DAMPING * rank[~moves].sum()) / edges.nodes
    return everywhere + DAMPING * arriving


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("weight", [None, "weight"])
def test_ranks_are_as_near_to_the_exact_ones_as_the_tolerance_says(
    dense: tuple[Edges, Graph], weight: str | None
) -> None:
    edges, graph = dense
    weights = np.ones(len(edges.source)) if weight is None else edges.weight
    settings = {} if weight is None else {"weight": weight}
    found = graph.spark.analyze("pagerank", **settings)
    rank = np.array(values(found, "rank"))
    assert found.facts.converged
    assert found.facts.statistics["residual"] <= TOLERANCE
    assert rank.sum() == pytest.approx(1.0, abs=1e-9)
    residual = np.abs(step(edges, rank, weights) - rank).sum()
    assert residual <= DAMPING * TOLERANCE + 1e-12
    exact = rank
    for _ in range(200):
        exact = step(edges, exact, weights)
    assert np.abs(rank - exact).sum() <= TOLERANCE * DAMPING / (1 - DAMPING)
    assert (np.abs(rank - exact) / exact).max() < 1e-3


@pytest.mark.parametrize("sweeps", [0, 1, 5])
def test_ranks_are_not_converged_when_the_sweeps_run_out(
    dense: tuple[Edges, Graph], sweeps: int
) -> None:
    edges, graph = dense
    found = graph.spark.analyze("pagerank", sweeps_max=sweeps)
    assert (found.facts.converged, found.facts.sweeps) == (False, sweeps)
    rank = np.array(values(found, "rank"))
    assert rank.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(step(edges, rank, np.ones(len(edges.source))) - rank).sum() > TOLERANCE


def test_a_tighter_tolerance_takes_more_sweeps_and_comes_nearer(
    dense: tuple[Edges, Graph],
) -> None:
    edges, graph = dense
    residuals, sweeps = [], []
    for tolerance in (1e-2, 1e-5, 1e-12):
        found = graph.spark.analyze("pagerank", tolerance=tolerance, sweeps_max=500)
        assert found.facts.converged
        rank = np.array(values(found, "rank"))
        residuals.append(np.abs(step(edges, rank, np.ones(len(edges.source))) - rank).sum())
        sweeps.append(found.facts.sweeps)
        assert residuals[-1] <= tolerance
    assert sweeps == sorted(set(sweeps))


def test_without_damping_a_cycle_does_not_converge(tmp_path: Path) -> None:
    """Without damping the ranks of a graph of period two oscillate."""
    edges = Edges(3, np.array([0, 1, 2]), np.array([1, 0, 1]), np.ones(3))
    found = edges.store(tmp_path / "g").spark.analyze("pagerank", damping=1.0)
    assert (found.facts.converged, found.facts.sweeps) == (False, 100)


# -- the others ------------------------------------------------------------------------------------


def roots(edges: Edges) -> list[int]:
    """Union-find: the root of each node."""
    parent = list(range(edges.nodes))

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        parent[find(a)] = find(b)
    return [find(node) for node in range(edges.nodes)]


@pytest.mark.usefixtures("blocks")
def test_components_are_those_of_union_find(sparse: tuple[Edges, Graph]) -> None:
    edges, graph = sparse
    found = graph.spark.analyze("components")
    labels, expected = values(found, "component"), roots(edges)
    pairs = set(zip(labels, expected, strict=True))
    assert len(pairs) == len(set(labels)) == len(set(expected))
    assert found.facts.converged
    assert found.facts.statistics == {
        "components": len(set(expected)),
        "largest": max(Counter(expected).values()),
    }


@pytest.mark.usefixtures("blocks")
def test_triangles_are_common_neighbours_of_joined_nodes(dense: tuple[Edges, Graph]) -> None:
    edges, graph = dense
    near = edges.neighbours()
    expected = [0] * edges.nodes
    for node, others in enumerate(near):
        for other in others:
            if node < other:
                small, large = sorted((near[node], near[other]), key=len)
                for third in small:
                    if third > other and third in large:
                        for corner in (node, other, third):
                            expected[corner] += 1
    found = graph.spark.analyze("triangles")
    assert values(found, "triangles") == expected
    assert found.facts.statistics == {"triangles": sum(expected) // 3}
    assert sum(expected) > 0


@pytest.mark.usefixtures("blocks")
def test_degrees_are_counts_of_edges(dense: tuple[Edges, Graph]) -> None:
    edges, graph = dense
    found = graph.spark.analyze("degrees")
    leaving = np.bincount(edges.source, minlength=edges.nodes)
    arriving = np.bincount(edges.target, minlength=edges.nodes)
    assert values(found, "out_degree") == leaving.tolist()
    assert values(found, "in_degree") == arriving.tolist()
    assert values(found, "degree") == (leaving + arriving).tolist()
    assert found.facts.statistics["isolated"] == int(np.sum(leaving + arriving == 0))
    assert found.facts.statistics["degree"]["mean"] == 2 * len(edges.source) / edges.nodes


def breadth_first(edges: Edges, start: int, direction: str) -> list[int | None]:
    near: list[list[int]] = [[] for _ in range(edges.nodes)]
    for a, b in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        if direction in ("out", "both"):
            near[a].append(b)
        if direction in ("in", "both"):
            near[b].append(a)
    found: list[int | None] = [None] * edges.nodes
    found[start], waiting = 0, deque([start])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if found[other] is None:
                found[other] = (found[node] or 0) + 1
                waiting.append(other)
    return found


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_distances_are_those_of_a_breadth_first_search(
    dense: tuple[Edges, Graph], direction: str
) -> None:
    edges, graph = dense
    start = int(edges.source[50])
    found = graph.spark.analyze("distances", sources=f"n{start}", direction=direction)
    expected = breadth_first(edges, start, direction)
    assert values(found, "distance") == expected
    reached = [far for far in expected if far is not None]
    assert found.facts.converged
    assert found.facts.statistics == {"reached": len(reached), "farthest": max(reached)}


def test_distances_along_a_long_chain_are_exact(sparse: tuple[Edges, Graph]) -> None:
    edges, graph = sparse
    found = graph.spark.analyze("distances", sources=f"n{NODES - 1}")
    assert found.facts.converged
    assert values(found, "distance") == breadth_first(edges, NODES - 1, "out")


@pytest.mark.usefixtures("blocks")
def test_weighted_distances_are_those_of_dijkstra(dense: tuple[Edges, Graph]) -> None:
    edges, graph = dense
    start = int(edges.source[50])
    near: list[list[tuple[int, float]]] = [[] for _ in range(edges.nodes)]
    for a, b, far in zip(
        edges.source.tolist(), edges.target.tolist(), edges.weight.tolist(), strict=True
    ):
        near[a].append((b, far))
    expected: dict[int, float] = {}
    waiting = [(0.0, start)]
    while waiting:
        far, node = heapq.heappop(waiting)
        if node not in expected:
            expected[node] = far
            for other, more in near[node]:
                heapq.heappush(waiting, (far + more, other))
    found = graph.spark.analyze("distances", sources=f"n{start}", weight="weight")
    assert values(found, "distance") == [expected.get(node) for node in range(edges.nodes)]


def next_labels(edges: Edges, labels: list[int]) -> list[int]:
    """The labels after one sweep of label propagation."""
    votes: list[Counter[int]] = [Counter([label]) for label in labels]
    for a, b in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        votes[b][labels[a]] += 1
        votes[a][labels[b]] += 1
    return [min((-count, label) for label, count in one.items())[1] for one in votes]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_labels_converge_only_when_one_more_sweep_changes_none(
    name: str, request: pytest.FixtureRequest
) -> None:
    edges, graph = request.getfixturevalue(name)
    for sweeps in (3, 12):
        found = graph.spark.analyze("communities", sweeps_max=sweeps)
        labels = values(found, "label")
        changed = sum(a != b for a, b in zip(labels, next_labels(edges, labels), strict=True))
        # A run that has just stopped changing has not seen that yet, so only one way is strict.
        assert changed == 0 if found.facts.converged else found.facts.sweeps == sweeps
        assert found.facts.statistics["communities"] == len(set(labels))


def test_labels_of_cliques_converge(tmp_path: Path) -> None:
    """A clique of ten is one community, whatever the number of cliques."""
    base = np.arange(NODES // 10).repeat(90) * 10
    pairs = [(a, b) for a in range(10) for b in range(10) if a != b]
    inside = np.tile(np.array(pairs), (NODES // 10, 1))
    edges = Edges(NODES // 10 * 10, base + inside[:, 0], base + inside[:, 1], np.ones(len(base)))
    found = edges.store(tmp_path / "g").spark.analyze("communities")
    labels = values(found, "label")
    assert found.facts.converged
    assert all(len(set(labels[at : at + 10])) == 1 for at in range(0, len(labels), 10))
    assert found.facts.statistics == {"communities": NODES // 10, "largest": 10}


# -- weights ---------------------------------------------------------------------------------------


def test_large_whole_numbers_are_weights(dense: tuple[Edges, Graph]) -> None:
    """Numbers beyond 2^53 have no exact float; the nearest one is as good a weight."""
    _, graph = dense
    by_big, by_weight = (graph.spark.analyze("pagerank", weight=name) for name in ("big", "weight"))
    assert values(by_big, "rank") == pytest.approx(values(by_weight, "rank"), abs=1e-6)


@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_weights_whose_sums_are_not_numbers_are_refused(tmp_path: Path, weight: float) -> None:
    edges = Edges(3, np.array([0, 0, 0]), np.array([1, 2, 2]), np.full(3, weight))
    graph = edges.store(tmp_path / "g")
    with pytest.raises(InvalidInput, match="weight"):
        graph.spark.analyze("pagerank", weight="weight")
