"""Every operator looks at the deadline often: the largest gap between two checks is measured.

Time is that of the thread's own work (CPU), so that a busy machine does not matter. The graph has
``OMNIGRAPH_TEST_OVERSHOOT_NODES`` nodes (1,200 unless said) and twenty times as many edges:
products and paths of millions of rows. A query runs for ``OMNIGRAPH_TEST_OVERSHOOT_MS`` (3,000)
at most.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.limits import Guard, Limits
from omnigraph.errors import QueryTimeout
from omnigraph.model.checkpoint import checkpoint, install, remove
from tests.graphs import repository

NODES = int(os.environ.get("OMNIGRAPH_TEST_OVERSHOOT_NODES", "1200"))
LIMIT_MS = int(os.environ.get("OMNIGRAPH_TEST_OVERSHOOT_MS", "3000"))
GAP_MAX_S = 0.1
TRIES = 3  # what another process does to the caches of the processor shows in CPU time, too
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")
SCHEMA = """
node N {
  k: String @key
  v: I64
  f: F64
  s: String
  w: String
  t: String
  x: Vector(16)
  tags: [String]
}
edge E: N -> N { w: I64 }
"""

QUERIES = {
    "product": "match { $a: N  $b: N } return { $a.v, $b.v } order { $a.v } limit 5",
    "filter": "match { $a: N  $b: N  $a.v < $b.v  $b.f > 0.5 } return { count($a) as n }",
    "filter on text": "match { $a: N  $b: N  $a.s contains $b.k } return { count($a) as n }",
    "negation": "match { $a: N  not { $b: N  $b.v > $a.v } } return { $a.k }",
    "negation of a product": "match { $a: N  not { $b: N  $c: N  $b.v > $a.v  $c.f < $a.f } } "
    "return { $a.k }",
    "negation over edges": "match { $a: N  $b: N  not { $a e $c  $c e $b } } return { $a.k, $b.k }",
    "paths": "match { $a: N  $a e $b  $b e $c  $c e $d } return { $a.k, $d.v } limit 3",
    "edges": "match { $a: N  $a $p:e $b  $b $q:e $c } return { $p.w, $q.w } order { $p.w }",
    "undirected": "match { $a: N  $a <e> $b  $b <e> $c } return { $a.k, $c.v } order { $c.v }",
    "undirected edges": "match { $a: N  $a $p:<e> $b  $b $q:<e> $c } return { $p.w, $q.w } limit 9",
    "cycle": "match { $a: N  $a e $b  $b e $c  $c e $a } return { count($a) as n }",
    "reach": "match { $a: N  $a e{1,4} $b } return { count($b) as n }",
    "reach pairs": "match { $a: N  $b: N  $a e{1,3} $b } return { count($b) as n }",
    "groups": "match { $a: N  $b: N } return { $a.w as w, count($b) as n, sum($b.v) as s }",
    "groups by text": "match { $a: N  $b: N } return { $a.s as s, $b.w as w, count($b) as n }",
    "groups by list": "match { $a: N  $b: N } return { $a.tags as t, $b.w as w, count($b) as n }",
    "sum of floats": "match { $a: N  $b: N } return { $a.w as w, sum($b.f) as s }",
    "least text": "match { $a: N  $b: N } return { $a.k as k, min($b.s) as s }",
    "many groups": "match { $a: N  $b: N } return { $a.k as a, $b.k as b, max($b.f) as n }",
    "order": "match { $a: N  $b: N  $a.v < $b.v } return { $a.s, $b.v } order { $b.s desc }",
    "entities": "match { $a: N  $b: N  $a.v < $b.v } return { $a, $b } limit 2000000",
    "search": 'match { $a: N  search($a.t, "alpha u17")  $b: N } return { $a.k, $b.k }',
    "phrase": 'match { $a: N  match_text($a.t, "alpha beta")  $b: N } return { $a.k, $b.k }',
    "bm25": 'match { $a: N  $b: N } return { $a.k, $b.k } order { bm25($a.t, "alpha u5") } limit 5',
    "nearest": "match { $a: N  $b: N } return { $a.k, $b.k } "
    "order { nearest($a.x, $q) } limit 5000",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    where: Path = tmp_path_factory.mktemp("wide") / "graph"
    made, rng = omnigraph.init(where, SCHEMA), np.random.default_rng(1)
    keys = np.array([f"a key that is long {at * 7919 % NODES}" for at in range(NODES)])
    texts = [" ".join(rng.choice(WORDS, 20)) + f" u{at}" for at in range(NODES)]
    nodes = {
        "k": keys.tolist(),
        "v": rng.integers(0, 10 * NODES, NODES),
        "f": rng.random(NODES),
        "s": [f"some text {at}" for at in rng.integers(0, NODES, NODES)],
        "w": rng.choice(WORDS, NODES).tolist(),
        "t": texts,
        "x": pa.array(rng.random((NODES, 16)).tolist(), pa.list_(pa.float32(), 16)),
        "tags": [[f"t{at % 50}", "t"] for at in range(NODES)],
    }
    ends = rng.choice(keys, (2, 20 * NODES))
    edges = {"from": ends[0].tolist(), "to": ends[1].tolist()}
    edges["w"] = rng.integers(0, 1_000, 20 * NODES)
    made.load({"N": pa.table(nodes), "E": pa.table(edges)}, mode="append")
    return made


@pytest.fixture
def gaps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of the thread's work between one check and the next; the first item is a mark."""
    found: list[float] = []
    check, last = Guard.check, [time.thread_time()]

    def measured(self: Guard) -> None:
        now = time.thread_time()
        found.append(now - last[0])
        last[0] = now
        check(self)

    monkeypatch.setattr(Guard, "check", measured)
    return found


def _largest_gap(reader: Reader, text: str, gaps: list[float]) -> float:
    head = "$q: Vector(16)" if "$q" in text else ""
    params = {"q": [0.5] * 16} if head else None
    options = ReadOptions(limits=Limits(timeout_ms=LIMIT_MS))
    with suppress(QueryTimeout):
        reader.query(f"query q({head}) {{ {text} }}", params=params, options=options)
    # The first gap began before the query. Where it is the only one, the time was over before the
    # thread had done anything: nothing was measured.
    return max(gaps[1:], default=float("inf"))


@pytest.mark.parametrize("name", QUERIES)
def test_no_operator_works_for_long_between_two_checks(
    graph: Graph, gaps: list[float], name: str
) -> None:
    for _ in range(TRIES):
        gaps.clear()
        # Nothing is in memory: what is loaded and built counts as well.
        reader = Reader(repository(graph), cache=MemoryCache(1 << 30))
        largest = _largest_gap(reader, QUERIES[name], gaps)
        if largest <= GAP_MAX_S:
            return
    pytest.fail(f"{largest:.3f} s of work without a check")


def test_a_negation_of_millions_of_pairs_ends_when_its_time_is_over(graph: Graph) -> None:
    text = f"query q() {{ {QUERIES['negation of a product']} }}"
    began = time.thread_time()
    with pytest.raises(QueryTimeout):
        graph.query(text, options=ReadOptions(limits=Limits(timeout_ms=20)))
    assert time.thread_time() - began < 0.02 + 3 * GAP_MAX_S


def test_a_checkpoint_does_what_was_installed_and_nothing_without() -> None:
    found: list[int] = []
    checkpoint()
    token = install(lambda: found.append(1))
    checkpoint()
    remove(token)
    checkpoint()
    assert found == [1]


def test_rows_are_converted_within_the_time_that_the_query_left(
    graph: Graph, gaps: list[float]
) -> None:
    text = f"query q() {{ {QUERIES['entities'].replace('2000000', '5000')} }}"
    options = ReadOptions(limits=Limits(timeout_ms=600_000))
    result = Reader(repository(graph), cache=MemoryCache(1 << 30)).query(text, options=options)
    for _ in range(TRIES):
        gaps.clear()
        rows = result.rows()
        if max(gaps[1:]) <= GAP_MAX_S:
            break
    else:
        pytest.fail(f"{max(gaps[1:]):.3f} s of work without a check")
    assert len(rows) == len(result)

    short = replace(result, limits=Limits(timeout_ms=1))
    with pytest.raises(QueryTimeout):
        short.to_json()
