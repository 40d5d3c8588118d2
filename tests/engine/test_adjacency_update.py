"""Incremental updates of derived structures: equal, array for array, to a full rebuild."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader
from omnigraph.engine.tables import loaded
from omnigraph.engine.tables.access import SnapshotTables
from omnigraph.engine.tables.loaded_edges import CachedEdges
from tests.support.internals import repository_of

SCHEMA = """
node Spot { k: String @key  v: I32? }
node Town { k: String @key }
edge Link: Spot -> Spot { w: I32? }
edge Lies: Spot -> Town
"""
STEPS = 14


def _reader(graph: Graph) -> Reader:
    return Reader(repository_of(graph), cache=MemoryCache(1 << 24), store=None)


def _filled(where: Path, rng: Random) -> Graph:
    graph = omnigraph.init(where, SCHEMA)
    with graph.write() as w:
        for at in range(40):
            w.insert("Spot", {"k": f"s{at}", "v": at})
        for at in range(8):
            w.insert("Town", {"k": f"t{at}"})
        for _ in range(120):
            w.insert_edge("Link", f"s{rng.randrange(40)}", f"s{rng.randrange(40)}", {})
        for at in range(40):
            w.insert_edge("Lies", f"s{at}", f"t{rng.randrange(8)}", {})
    return graph


def _change(graph: Graph, rng: Random, at: int) -> None:
    """One small write of any kind."""
    spots = [row["a.k"] for row in graph.query("query q() { match { $a: Spot } return { $a.k } }")]
    kind = rng.choice(("edge", "node", "update", "delete node", "delete edge", "both"))
    if kind in ("node", "both"):
        with graph.write() as w:
            w.insert("Spot", {"k": f"n{at}"})
            if kind == "both":
                w.insert_edge("Link", f"n{at}", rng.choice(spots), {})
                w.insert_edge("Link", rng.choice(spots), f"n{at}", {})
    elif kind == "edge":
        with graph.write() as w:
            first = rng.choice(spots)
            for _ in range(2):  # parallel to each other, and perhaps to a known one
                w.insert_edge("Link", first, spots[0], {})
    else:
        texts = {
            "update": "update Spot set { v: 7 } where k = $k",
            "delete node": "delete Spot where k = $k",
            "delete edge": "delete Link where from = $k",
        }
        text = f"query q($k: String) {{ {texts[kind]} }}"
        graph.mutate(text, params={"k": rng.choice(spots)})


def _arrays(found: SnapshotTables) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in ("Link", "Lies"):
        edges = found.edges(name)
        for direction in ("out", "in"):
            adjacency = edges.adjacency(direction)  # type: ignore[arg-type]
            for part in ("starts", "nodes", "edges"):
                made[f"{name}/{direction}/{part}"] = getattr(adjacency, part).tolist()
    for name in ("Spot", "Town"):
        nodes = found.nodes(name)
        ids = nodes.column("id").to_arrow().to_pylist()
        made[name] = [nodes.lookup.get(id) for id in (*ids, "s3", "s11", "unknown")]
    return made


@pytest.mark.parametrize("seed", range(6))
def test_an_updated_structure_equals_a_rebuilt_one(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    graph = _filled(tmp_path / "g", rng)
    warm = _reader(graph)
    _arrays(warm.newest("main"))
    for at in range(STEPS):
        _change(graph, rng, at)
        expected = _arrays(_reader(graph).newest("main"))
        with monkeypatch.context() as patch:
            patch.setattr(CachedEdges, "_make", _not_again)
            found = _arrays(warm.newest("main"))
        assert found == expected, f"step {at}"


def _not_again(*_: object) -> None:
    raise AssertionError("a small write made an adjacency anew")


def test_an_update_can_skip_versions_that_were_never_read(tmp_path: Path) -> None:
    rng = Random(5)
    graph = _filled(tmp_path / "g", rng)
    warm = _reader(graph)
    _arrays(warm.newest("main"))
    for at in range(5):
        _change(graph, rng, at)
    assert _arrays(warm.newest("main")) == _arrays(_reader(graph).newest("main"))


def test_large_changes_and_earlier_versions_cause_a_rebuild(tmp_path: Path) -> None:
    graph = _filled(tmp_path / "g", Random(1))
    first = graph.snapshot().commit_id
    warm = _reader(graph)
    _arrays(warm.newest("main"))
    with graph.write() as w:
        for at in range(100):
            w.insert("Spot", {"k": f"m{at}"})
            w.insert_edge("Link", f"m{at}", "s1", {})
    assert _arrays(warm.newest("main")) == _arrays(_reader(graph).newest("main"))
    then = graph.snapshot(commit=first)
    assert _arrays(warm.tables(then)) == _arrays(_reader(graph).tables(then))


def test_an_evicted_structure_is_rebuilt(tmp_path: Path) -> None:
    graph = _filled(tmp_path / "g", Random(2))
    warm = _reader(graph)
    _arrays(warm.newest("main"))
    warm.cache.clear()
    _change(graph, Random(3), 0)
    assert _arrays(warm.newest("main")) == _arrays(_reader(graph).newest("main"))


def test_many_new_ids_are_gathered_into_a_new_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.engine.tables.id_lookup.FRESH_MAX", 2)
    graph = _filled(tmp_path / "g", Random(4))
    warm = _reader(graph)
    for at in range(5):
        with graph.write() as w:
            w.insert("Spot", {"k": f"z{at}"})
        found = warm.newest("main").nodes("Spot")
        assert found.lookup.get(f"z{at}") == 40 + at
        assert len(found.lookup.fresh) <= 2
    assert len(warm.latest) <= loaded.LATEST_VERSIONS_MAX
