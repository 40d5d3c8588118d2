"""Building indexes: which ones, when, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.graphs import load_graph
from tests.graphs import people_graph, rows

from omnigraph import Graph
from omnigraph.errors import ReadOnly


def _states(graph: Graph, branch: str = "main") -> dict[tuple[str, str, str], str]:
    found = graph.maintenance.build_indexes(branch)
    return {(item.type_key, item.property, item.kind): item.state for item in found}


def test_X_10_each_kind_of_property_gets_its_index(tmp_path: Path) -> None:
    graph = load_graph(tmp_path / "g", "doc")
    assert _states(graph) == {
        ("node:Page", "id", "BTREE"): "built",
        ("node:Page", "body", "BTREE"): "built",
        ("node:Page", "body", "INVERTED"): "built",
        ("node:Page", "slug", "BTREE"): "built",
        ("node:Page", "vec", "IVF_FLAT"): "built",
        ("edge:Cites", "id", "BTREE"): "built",
        ("edge:Cites", "src", "BTREE"): "built",
        ("edge:Cites", "dst", "BTREE"): "built",
    }
    assert set(_states(graph).values()) == {"current"}


def test_building_adds_no_commit_and_keeps_every_row(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    before, commits = rows(graph, "node:Person"), graph.history.commits()
    _states(graph)
    assert rows(graph, "node:Person") == before
    assert graph.history.commits() == commits


def test_rows_written_later_are_found_and_indexed_by_the_next_build(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    _states(graph)
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    assert "cy" in rows(graph, "node:Person")
    states = _states(graph)
    assert states["node:Person", "id", "BTREE"] == "built"
    assert states["node:City", "id", "BTREE"] == "current"


def test_X_11_what_cannot_be_trained_is_pending(tmp_path: Path) -> None:
    from tests.engine.graphs import make_graph

    schema = (
        "node Page { slug: String @key  vec: Vector(2)? @index }\nnode Empty { k: String @key }"
    )
    graph = make_graph(tmp_path / "g", schema, [{"type": "Page", "data": {"slug": "a"}}])
    states = _states(graph)
    assert states["node:Page", "vec", "IVF_FLAT"] == "pending"
    assert states["node:Page", "slug", "BTREE"] == "built"
    assert states["node:Empty", "id", "BTREE"] == "empty"


def test_a_branch_leaves_what_it_has_not_written_to_its_parent(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("City", {"name": "Rome"})
    states = _states(graph, "dev")
    assert states["node:Person", "id", "BTREE"] == "inherited"
    assert states["node:City", "id", "BTREE"] == "built"


def test_a_read_only_handle_builds_nothing(tmp_path: Path) -> None:
    import omnigraph

    graph = people_graph(tmp_path / "g")
    with pytest.raises(ReadOnly):
        omnigraph.open(graph.uri, read_only=True).maintenance.build_indexes()
