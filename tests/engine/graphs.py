"""Graphs that reading tests start from, written as data files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.engine import Reader
from omnigraph.engine.exec import (
    blockwise_aggregate,
    evaluator,
    expand,
    intersect,
    match,
    match_frame,
    scan,
    sort,
)
from omnigraph.engine.tables import edge_set, probe
from omnigraph.predicates import chunked, values
from tests.graphs import repository

CASES = Path(__file__).parents[1] / "cases" / "read"


def load_graph(where: Path, name: str, *, indexed_early: bool = False) -> Graph:
    """The graph that ``tests/cases/read/<name>.json`` describes."""
    body = json.loads((CASES / f"{name}.json").read_text())
    return make_graph(where, body["schema"], body["records"], indexed_early=indexed_early)


def make_graph(
    where: Path, schema: str, records: list[dict[str, Any]], *, indexed_early: bool = False
) -> Graph:
    """Nodes in one or two commits, edges in another; indexes after the first if asked for."""
    graph = omnigraph.init(where, schema)
    nodes = [record for record in records if "type" in record]
    for part in (nodes[:2], nodes[2:]) if indexed_early else (nodes,):
        with graph.write() as w:
            for record in part:
                w.insert(record["type"], record["data"])
        if indexed_early and part is not nodes:
            graph.maintenance.build_indexes()
            indexed_early = False
    edges = [record for record in records if "edge" in record]
    if edges:
        with graph.write() as w:
            for record in edges:
                w.insert_edge(record["edge"], record["from"], record["to"], record["data"])
    return graph


def reader_of(where: Path, schema: str, data: Mapping[str, list[dict[str, Any]]]) -> Reader:
    """A reader of a new graph that holds this."""
    graph = omnigraph.init(where, schema)
    graph.load(data, mode="append")
    return Reader(repository(graph))


def use_large_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join small graphs like large ones: hashed edge sets, few candidates at once, joined
    directions, and rows that are merged wherever they may be equal.
    """
    monkeypatch.setattr(edge_set, "PAIRS_MAX", 0)
    monkeypatch.setattr(intersect, "CANDIDATES", 2)
    monkeypatch.setattr(expand, "JOINED_NODES_MIN", 0)
    monkeypatch.setattr(match, "COLLAPSE_ROWS_MIN", 2)
    monkeypatch.setattr(probe, "PROBE_ROWS_MAX", 1)  # look-ups and collapsed rows differ in order


def use_small_blocks(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Process frames of more than a few rows in blocks, like large ones."""
    for module in (match_frame, blockwise_aggregate, evaluator, sort, scan):
        monkeypatch.setattr(module, "BLOCK_ROWS", rows)
    monkeypatch.setattr(sort, "PARTITION_ROWS_MIN", min(rows, 16))
    monkeypatch.setattr(values, "TEXTS_TAKEN_MAX", rows)
    for name in ("RANKED_MAX", "LISTS_ROWS"):
        monkeypatch.setattr(sort, name, rows)
    for name in ("LONG_ROWS", "CHUNK_ROWS", "SORT_ROWS", "ORDER_ROWS"):
        monkeypatch.setattr(chunked, name, rows)
