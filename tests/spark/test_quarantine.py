"""Quarantine: bad records go to a file with their violations, the others are one commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.outcomes import two_graphs
from tests.support.inline_tasks import bulk_graph

from omnigraph import Graph
from omnigraph.errors import AlreadyExists, ConstraintViolation


@pytest.fixture
def graph(empty: Path, tmp_path: Path) -> Graph:
    stored = b'{"type":"Person","data":{"name":"p0"}}'
    return bulk_graph(two_graphs(empty, tmp_path, stored)[1])


LINES = [
    '{"type":"Person","data":{"name":"a","age":30}}',
    '{"type":"Person","data":{"name":"b","age":300}}',
    "{nonsense",
    '{"type":"Person","data":{"name":"a"}}',
    '{"type":"Person","data":{"age":3}}',
    '{"edge":"Knows","from":"a","to":"p0"}',
    '{"edge":"Knows","from":"b","to":"p0"}',
    '{"type":"Person","data":{"name":"p0"}}',
    '{"edge":"Knows","from":"a","to":"nobody"}',
    '{"type":"Person","data":{"name":"c"}}',
]


def test_bad_records_and_their_dependents_are_quarantined(graph: Graph, tmp_path: Path) -> None:
    file, aside = tmp_path / "in.jsonl", tmp_path / "bad.jsonl"
    file.write_text("\n".join(LINES))
    commits = len(graph.history.commits())
    result = graph.load(file, mode="append", quarantine=aside)
    assert len(graph.history.commits()) == commits + 1
    assert (result.nodes, result.edges) == ({"Person": 2}, {"Knows": 1})
    assert result.quarantined == 7
    found = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [body["line"] for body in found] == [2, 3, 4, 5, 7, 8, 9]
    assert [body["record"] for body in found] == [LINES[body["line"] - 1] for body in found]
    rules = [[violation["rule"] for violation in body["violations"]] for body in found]
    assert rules == [
        ["range"], ["syntax"], ["key"], ["required"], ["endpoint"], ["exists"], ["endpoint"],
    ]  # fmt: skip
    with pytest.raises(AlreadyExists):
        graph.load(file, mode="append", quarantine=aside)


def test_good_input_leaves_no_quarantine(graph: Graph, tmp_path: Path) -> None:
    result = graph.load(LINES[0].encode(), mode="append", quarantine=tmp_path / "bad.jsonl")
    assert (result.total, result.quarantined) == (1, 0)
    assert not (tmp_path / "bad.jsonl").exists()


def test_violations_without_a_record_still_refuse_the_load(graph: Graph, tmp_path: Path) -> None:
    edges = b"\n".join(b'{"edge":"Knows","from":"p0","to":"p0"}' for _ in range(4))
    with pytest.raises(ConstraintViolation, match="@card"):
        graph.load(edges, mode="append", quarantine=tmp_path / "bad.jsonl")
    assert not (tmp_path / "bad.jsonl").exists()
