"""Loads of large input in process: tasks on threads, with the code that Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, Progress
from omnigraph.bulk import estimate
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..120) }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(estimate, "THREADED_BYTES_MIN", 0)
    return omnigraph.init(tmp_path / "g", SCHEMA)


def _lines(people: int) -> bytes:
    lines = [f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 100}}}}}' for n in range(people)]
    lines += [f'{{"edge":"Knows","from":"p{n}","to":"p{n // 2}"}}' for n in range(people)]
    return "\n".join(lines).encode()


def test_a_large_load_in_process_is_one_commit_and_says_where_it_runs(graph: Graph) -> None:
    seen: list[Progress] = []
    result = graph.load(_lines(500), mode="append", engine="local", progress=seen.append)
    assert result.nodes == {"Person": 500}
    assert result.edges == {"Knows": 500}
    assert seen[0].message == "engine local: it was named"
    assert {"reading", "checking constraints"} <= {step.phase for step in seen}
    assert len(b"".join(graph.export()).splitlines()) == 1_000


def test_a_refused_load_leaves_no_files(graph: Graph, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    bad = _lines(50) + b'\n{"type":"Person","data":{"name":"old","age":121}}'
    with pytest.raises(ConstraintViolation, match="121 is outside"):
        graph.load(bad, mode="append", engine="local")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_records_are_quarantined_in_process(graph: Graph, tmp_path: Path) -> None:
    bad = _lines(50) + b'\n{"edge":"Knows","from":"p1","to":"nobody"}'
    aside = tmp_path / "aside.jsonl"
    result = graph.load(bad, mode="append", engine="local", quarantine=aside)
    assert result.quarantined == 1
    assert result.edges == {"Knows": 50}
    assert '"line": 101' in aside.read_text()
