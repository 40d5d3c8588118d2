"""Prefetch: the edges of the first node are read while the node is looked up.

Tests the internals of ``engine/tables/probe.py``: which reads are started, and when.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.tables.probe import ProbedEdges, ProbedTable
from omnigraph.errors import OmnigraphError
from tests.engine.graphs import reader_of

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
DATA = {
    "Person": [{"name": "Ann"}, {"name": "Ben"}, {"name": "Cem"}],
    "Knows": [{"from": "Ann", "to": "Ben"}, {"from": "Cem", "to": "Ann"}],
}
PROBE = ReadOptions(access="probe")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return reader_of(tmp_path / "g", SCHEMA, DATA)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The prefetches that were started."""
    found: list[tuple[str, str]] = []
    begin = ProbedEdges.prefetch

    def noted(self: ProbedEdges, direction: Any, id: str) -> None:
        found.append((direction, id))
        begin(self, direction, id)

    monkeypatch.setattr(ProbedEdges, "prefetch", noted)
    return found


def ask(reader: Reader, pattern: str, name: str = "Ann") -> list[str]:
    text = f"query q($n: String) {{ match {{ {pattern} }} return {{ $q.name as name }} }}"
    rows = reader.query(text, params={"n": name}, options=PROBE).rows()
    assert not [item for item in threading.enumerate() if "omnigraph-prefetch" in item.name]
    return sorted(row["name"] for row in rows)


@pytest.mark.parametrize(
    ("pattern", "names", "ways"),
    [
        ("$p: Person { name: $n }  $p knows $q", ["Ben"], ["out"]),
        ("$p: Person { name: $n }  $q knows $p", ["Cem"], ["in"]),
        ("$p: Person { name: $n }  $p <knows> $q", ["Ben", "Cem"], ["out", "in"]),
        ("$p: Person { name: $n }  $p knows{1,2} $q", ["Ben"], ["out"]),
        ("$q: Person { name: $n }", ["Ann"], []),
    ],
)
def test_edges_are_prefetched_in_the_directions_of_the_pattern(
    reader: Reader, begun: list[tuple[str, str]], pattern: str, names: list[str], ways: list[str]
) -> None:
    assert ask(reader, pattern) == names
    assert begun == [(way, "Ann") for way in ways]


def test_what_was_begun_is_what_is_fetched(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = ProbedTable._read

    def noted(self: ProbedTable, condition: str | None, known: Any) -> Any:
        read.append(f"{self.kind.name} {condition}")
        return original(self, condition, known)

    monkeypatch.setattr(ProbedTable, "_read", noted)
    assert ask(reader, "$p: Person { name: $n }  $p knows $q") == ["Ben"]
    assert sorted(read) == [
        "Knows `src` IN ('Ann')",
        "Person `id` IN ('Ann')",
        "Person `id` IN ('Ben')",
    ]


def test_a_first_node_that_does_not_exist_has_no_edges(reader: Reader) -> None:
    assert ask(reader, "$p: Person { name: $n }  $p knows $q", "Nobody") == []


def test_without_a_thread_to_spare_the_edges_are_read_when_they_are_needed(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert ask(reader, "$p: Person { name: $n }  $p knows $q") == ["Ben"]


def test_an_error_of_a_prefetch_is_raised_by_the_query(reader: Reader, tmp_path: Path) -> None:
    for folder in (tmp_path / "g" / "edges").iterdir():
        shutil.rmtree(folder / "data")
    with pytest.raises(OmnigraphError):
        ask(reader, "$p: Person { name: $n }  $p knows $q")
    assert ask(reader, "$p: Person { name: $n }  $p knows $q", "Nobody") == []
