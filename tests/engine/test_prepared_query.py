"""Prepared queries: the rows of ``query``, compiled once per snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, ReadOptions
from omnigraph.engine import engine
from omnigraph.errors import LanguageError, NotFound, ParameterError
from omnigraph.lang.query import compile_cached

SCHEMA = "node Town { name: String @key  size: I32? }"
TEXT = "query q($n: String) { match { $t: Town { name: $n } } return { $t.size as size } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as batch:
        batch.insert("Town", {"name": "Lima", "size": 3})
    return graph


def test_every_run_reads_the_newest_state_with_its_own_parameters(graph: Graph) -> None:
    prepared = graph.prepare(TEXT)
    assert prepared.query({"n": "Lima"}).rows() == [{"size": 3}]
    assert prepared.query({"n": "Oslo"}).rows() == []
    with graph.write() as batch:
        batch.insert("Town", {"name": "Oslo", "size": 1})
    assert prepared.query({"n": "Oslo"}).rows() == [{"size": 1}]


def test_a_query_is_compiled_once_per_snapshot(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    def counted(text: str, *rest: object, **named: object) -> object:
        compiled.append(text)
        return compile_cached(text, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "compile_cached", counted)
    prepared = graph.prepare(TEXT)
    for _ in range(3):
        prepared.query({"n": "Lima"})
    assert len(compiled) == 1
    with graph.write() as batch:
        batch.insert("Town", {"name": "Oslo"})
    prepared.query({"n": "Lima"})
    assert len(compiled) == 2


def test_a_state_and_a_branch_can_be_prepared_for(graph: Graph) -> None:
    graph.tags.create("before")
    graph.branches.create("dev")
    with graph.branch("dev").write() as batch:
        batch.insert("Town", {"name": "Oslo", "size": 1})
    oslo = {"n": "Oslo"}
    assert graph.prepare(TEXT, branch="dev").query(oslo).rows() == [{"size": 1}]
    assert graph.branch("dev").prepare(TEXT).query(oslo).rows() == [{"size": 1}]
    assert graph.prepare(TEXT, at="before").query(oslo).rows() == []
    assert graph.at("before").prepare(TEXT).query(oslo).rows() == []


def test_what_is_wrong_with_a_query_is_said_when_it_is_prepared(graph: Graph) -> None:
    with pytest.raises(LanguageError):
        graph.prepare("query q() { match { $t: City } return { $t.name } }")
    with pytest.raises(NotFound):
        graph.prepare(TEXT, "other")
    with pytest.raises(ParameterError):
        graph.prepare(TEXT, options=ReadOptions()).query({"m": "Lima"})


def test_a_schema_change_compiles_it_again(graph: Graph) -> None:
    prepared = graph.prepare(TEXT)
    assert prepared.query({"n": "Lima"}).rows() == [{"size": 3}]
    graph.apply_schema("node Town { name: String @key  people: I32? @rename_from(size) }")
    with pytest.raises(LanguageError):
        prepared.query({"n": "Lima"})
