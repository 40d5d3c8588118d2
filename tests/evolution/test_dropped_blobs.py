"""Dropped properties and types that are blobs, or stand beside some."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Doc {
  name: String @key
  body: Blob?
  scan: Blob?
  note: String?
}
node Other { name: String @key }
"""
LARGE = b"large" * 60_000
SECRET = b"secret-bytes" * 20_000


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        w.insert("Doc", {"name": "a", "body": LARGE, "scan": SECRET, "note": "private-note"})
        w.insert("Doc", {"name": "b", "body": b"", "scan": None})
        w.insert("Doc", {"name": "c", "body": b"small", "scan": b"secret-bytes"})
    with graph.write() as w:
        w.delete("Doc", "c")
        w.insert("Doc", {"name": "d", "body": b"later"})
    return graph


def blob(graph: Graph, id: str, name: str = "body") -> bytes:
    return graph.blob("node", "Doc", id, name).read()


def holding(graph: Graph, text: bytes) -> list[Path]:
    return [p for p in Path(graph.uri).rglob("*") if p.is_file() and text in p.read_bytes()]


def test_V_14_a_blob_is_gone_for_good_and_the_others_stay(graph: Graph) -> None:
    assert holding(graph, b"secret-bytes")
    graph.apply_schema(SCHEMA.replace("  scan: Blob?\n", ""), allow_data_loss=True)
    assert holding(graph, b"secret-bytes") == []
    assert [blob(graph, id) for id in "abd"] == [LARGE, b"", b"later"]
    assert graph.maintenance.check().findings == []


def test_V_14_a_property_beside_blobs_is_gone_for_good(graph: Graph) -> None:
    graph.apply_schema(SCHEMA.replace("  note: String?\n", ""), allow_data_loss=True)
    assert holding(graph, b"private-note") == []
    assert [blob(graph, id) for id in "abd"] == [LARGE, b"", b"later"]
    assert blob(graph, "a", "scan") == SECRET


def test_V_14_a_type_with_blobs_is_gone_for_good(graph: Graph) -> None:
    graph.apply_schema("node Other { name: String @key }", allow_data_loss=True)
    assert holding(graph, b"secret-bytes") == []
    assert graph.maintenance.check().findings == []


def test_a_dropped_blob_comes_back_after_its_entity_was_changed(graph: Graph) -> None:
    graph.apply_schema(SCHEMA.replace("  scan: Blob?\n", ""))
    with graph.write() as w:
        w.update("Doc", "a", {"note": "changed"})
        w.update("Doc", "b", {"note": "changed"})
        w.insert("Doc", {"name": "e", "body": None})
    graph.apply_schema(SCHEMA, undrop=("Doc.scan",))
    assert blob(graph, "a", "scan") == SECRET
    assert graph.entity("node:Doc", "b")["scan"] is None
    assert graph.entity("node:Doc", "e")["scan"] is None
