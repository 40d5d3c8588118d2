"""Vector search with an index: opt-in, measured recall, exact where no index helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader, ReadOptions
from tests.graphs import repository

ROWS, WIDTH, MIDDLES = 3_000, 8, 40
INDEXED = ReadOptions(nearest="indexed")
NEAREST = """query q($q: Vector(8), $n: I32) {
  match { $p: Page  $p.year >= $n }
  return { $p.slug as slug, nearest($p.vec, $q) as far } order { nearest($p.vec, $q) } limit 10 }"""


def _graph(where: Path, metric: str) -> Graph:
    """Pages around some middles, with vectors that two of them share and some that are null."""
    rng = np.random.default_rng(4)
    middles = rng.normal(size=(MIDDLES, WIDTH)) * 10
    vectors = (middles[rng.integers(MIDDLES, size=ROWS)] + rng.normal(size=(ROWS, WIDTH))).tolist()
    vectors[7] = vectors[5]
    pages = {
        "slug": [f"p{at:04}" for at in range(ROWS)],
        "year": pa.array([at % 10 for at in range(ROWS)], pa.int32()),
        "vec": pa.array(
            [None if at % 50 == 49 else vectors[at] for at in range(ROWS)],
            pa.list_(pa.float32(), WIDTH),
        ),
    }
    schema = (
        "node Page { slug: String @key  year: I32  "
        f"vec: Vector({WIDTH})? @vector({metric}, partitions={MIDDLES}) @index }}"
    )
    graph = omnigraph.init(where, schema)
    graph.load({"Page": pa.table(pages)}, mode="append")
    return graph


@pytest.fixture(scope="module", params=["l2", "cosine", "dot"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = _graph(tmp_path_factory.mktemp("indexed") / "g", request.param)
    made.maintenance.build_indexes()
    with made.write() as w:  # rows that the index does not know, and one that is gone from it
        w.insert("Page", {"slug": "late", "year": 9, "vec": [10.0] * WIDTH})
        w.update("Page", "p0003", {"vec": [11.0] * WIDTH})
    made.mutate('query q() { delete Page where slug = "p0004" }')
    return made


def _queries() -> list[list[float]]:
    rng = np.random.default_rng(6)
    found: list[list[float]] = (rng.normal(size=(20, WIDTH)) * 8).tolist()
    return [*found, [10.0] * WIDTH]


@pytest.mark.parametrize("year", [0, 4])
def test_most_of_the_nearest_are_found_and_measured_exactly(graph: Graph, year: int) -> None:
    same = 0
    for query in _queries():
        params = {"q": query, "n": year}
        exact = graph.query(NEAREST, params=params).rows()
        indexed = graph.query(NEAREST, params=params, options=INDEXED).rows()
        distances = {row["slug"]: row["far"] for row in _all(graph, params)}
        assert [row["far"] for row in indexed] == [distances[row["slug"]] for row in indexed]
        assert indexed == sorted(indexed, key=lambda row: (row["far"], row["slug"]))
        assert len(indexed) == 10
        same += len({row["slug"] for row in exact} & {row["slug"] for row in indexed})
    assert same >= 0.9 * 10 * len(_queries())


def _all(graph: Graph, params: dict[str, Any]) -> list[dict[str, Any]]:
    return graph.query(NEAREST.replace("limit 10", f"limit {2 * ROWS}"), params=params).rows()


def test_what_was_written_after_the_index_is_found(graph: Graph) -> None:
    params = {"q": [10.0] * WIDTH, "n": 0}
    slugs = [row["slug"] for row in graph.query(NEAREST, params=params, options=INDEXED).rows()]
    assert slugs[:2] == [row["slug"] for row in graph.query(NEAREST, params=params).rows()][:2]
    assert "p0004" not in slugs


def test_few_candidates_and_no_index_are_measured_one_by_one(graph: Graph, tmp_path: Path) -> None:
    bare = _graph(tmp_path / "bare", "l2")
    for made, year in ((graph, 9), (bare, 0)):
        for query in _queries():
            params = {"q": query, "n": year}
            exact = made.query(NEAREST, params=params).rows()
            assert made.query(NEAREST, params=params, options=INDEXED).rows() == exact


@pytest.mark.parametrize(("direction", "limit"), [(0.0, 10), (1.0, ROWS)])
def test_where_the_index_has_too_few_all_are_measured(
    graph: Graph, direction: float, limit: int
) -> None:
    """It knows nothing in the direction of no vector, and no vectors that are null."""
    text, params = NEAREST.replace("limit 10", f"limit {limit}"), {"q": [direction] * WIDTH, "n": 0}
    exact = graph.query(text, params=params).rows()
    indexed = graph.query(text, params=params, options=INDEXED).rows()
    assert [row["far"] for row in indexed] == [row["far"] for row in exact]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    empty = _graph(tmp_path / "empty", "l2")
    empty.maintenance.build_indexes()
    empty.mutate("query q() { delete Page where year >= 0 }")
    params = {"q": [1.0] * WIDTH, "n": 0}
    assert empty.query(NEAREST, params=params, options=INDEXED).rows() == []


def test_a_search_by_index_does_not_load_the_vectors(graph: Graph) -> None:
    reader = Reader(repository(graph), cache=MemoryCache(1 << 26), store=None)
    params = {"q": [1.0] * WIDTH, "n": 0}
    reader.query(NEAREST, params=params, options=INDEXED)
    nodes = reader.newest("main").nodes("Page")
    assert not nodes.has_columns(["vec"])
    reader.query(NEAREST, params=params)
    assert nodes.has_columns(["vec"])


def test_ranks_of_two_searches_are_joined_as_without_an_index(graph: Graph) -> None:
    text = """query q($q: Vector(8)) { match { $p: Page } return { $p.slug as slug }
      order { rrf(nearest($p.vec, $q), bm25($p.slug, "p0007 p0005 late")) } limit 5 }"""
    params = {"q": [10.0] * WIDTH}
    found = graph.query(text, params=params, options=INDEXED).rows()
    assert {"slug": "late"} in found
    assert len(found) == 5
