"""Graphs that reading tests start from, written as data files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.graph import Graph

CASES = Path(__file__).parents[1] / "cases" / "read"


def load_graph(where: Path, name: str) -> Graph:
    """The graph that ``tests/cases/read/<name>.json`` describes."""
    body = json.loads((CASES / f"{name}.json").read_text())
    return make_graph(where, body["schema"], body["records"])


def make_graph(where: Path, schema: str, records: list[dict[str, Any]]) -> Graph:
    """Nodes in one commit, edges in a second."""
    graph = omnigraph.init(where, schema)
    with graph.write() as w:
        for record in records:
            if "type" in record:
                w.insert(record["type"], record["data"])
    edges = [record for record in records if "edge" in record]
    if edges:
        with graph.write() as w:
            for record in edges:
                w.insert_edge(record["edge"], record["from"], record["to"], record["data"])
    return graph
