"""Frames given to a load: pandas, polars and everything that speaks Arrow, as rows of a type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.graphs import rows
from tests.support.inline_tasks import bulk_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidInput

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  born: Date?
  seen: DateTime?
  tags: [String]?
  level: enum(low, high)?
}
edge Knows: Person -> Person { since: I32? }
"""
DAY, INSTANT = dt.date(1990, 2, 3), dt.datetime(2024, 5, 6, 7, 8, 9)
COLUMNS: dict[str, list[Any]] = {
    "name": ["ana", "bo"],
    "age": [30, None],
    "score": [1.5, None],
    "born": [DAY, None],
    "seen": [INSTANT, None],
    "tags": [["x", "y"], None],
    "level": ["low", None],
}
TIES = {"from": ["ana"], "to": ["bo"], "since": [2020]}


class Old:
    """A frame of a library that knows only the older protocol."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __dataframe__(self, *args: Any, **options: Any) -> Any:
        return self._frame.__dataframe__(*args, **options)


def categorical(columns: dict[str, list[Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.astype({"level": "category"}) if "level" in columns else frame


MAKERS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas filtered": lambda columns: (
        pd.concat([pd.DataFrame(columns)] * 2).iloc[-len(TIES) :]
        if "from" in columns
        else pd.DataFrame(columns).iloc[::-1]
    ),
    "pandas indexed": lambda columns: pd.DataFrame(columns).set_index(next(iter(columns))),
    "pandas categories": categorical,
    "polars": pl.DataFrame,
    "table": pa.table,
    "batch": pa.RecordBatch.from_pydict,
    "reader": lambda columns: pa.table(columns).to_reader(),
    "records": lambda columns: [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ],
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA)


def check(graph: Graph) -> None:
    people = rows(graph, "node:Person")
    assert set(people) == {"ana", "bo"}
    ana = people["ana"]
    assert (ana["age"], ana["score"], ana["born"], ana["tags"]) == (30, 1.5, DAY, ["x", "y"])
    seen = graph.query('query q() { match { $p: Person { name: "ana" } } return { $p.seen } }')
    assert "2024-05-06T07:08:09" in str(seen.rows())
    assert ana["level"] == "low"
    assert all(value is None for name, value in people["bo"].items() if name not in ("id", "name"))
    (tie,) = rows(graph, "edge:Knows").values()
    assert (tie["src"], tie["dst"], tie["since"]) == ("ana", "bo", 2020)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_frame_is_rows_of_its_type(graph: Graph, maker: str) -> None:
    make, columns = MAKERS[maker], dict(COLUMNS)
    if maker == "records":
        columns["born"], columns["seen"] = ["1990-02-03", None], ["2024-05-06T07:08:09Z", None]
    ties = pd.DataFrame(TIES) if maker == "pandas filtered" else make(TIES)
    graph.load({"Person": make(columns), "Knows": ties}, mode="append")
    check(graph)


@pytest.mark.parametrize("maker", ["pandas", "polars", "table", "reader"])
def test_the_bulk_load_takes_them_too(graph: Graph, maker: str) -> None:
    make = MAKERS[maker]
    bulk_graph(graph).load({"Person": make(COLUMNS), "Knows": make(TIES)}, mode="append")
    check(graph)


def test_the_older_protocol_works(graph: Graph) -> None:
    frame = Old(pd.DataFrame({"name": ["ana"], "age": [30]}))
    graph.load({"Person": frame}, mode="append")
    assert rows(graph, "node:Person")["ana"]["age"] == 30


def test_one_frame_with_its_type_and_other_column_names(graph: Graph) -> None:
    frame = pd.DataFrame({"who": ["ana", "bo"], "years": [30, None]})
    graph.load(frame, type="Person", columns={"who": "name", "years": "age"}, mode="upsert")
    assert rows(graph, "node:Person")["ana"]["age"] == 30


@pytest.mark.parametrize("maker", ["pandas", "polars", "table", "batch", "reader"])
def test_a_frame_alone_is_told_how_to_give_its_type(graph: Graph, maker: str) -> None:
    for target in (graph, bulk_graph(graph)):
        with pytest.raises(InvalidInput, match="needs the name of its type") as refused:
            target.load(MAKERS[maker]({"name": ["ana"]}), mode="append")
        assert '{"Person": table}' in refused.value.remedy


def test_what_does_not_fit_is_named_with_its_row(graph: Graph) -> None:
    frame = pd.DataFrame({"name": ["ana", "bo"], "age": [30.5, 4]})
    with pytest.raises(InvalidData, match=r"Person\.age") as refused:
        graph.load({"Person": frame}, mode="append")
    assert refused.value.details["violations"][0]["line"] == 1
    with pytest.raises(InvalidInput, match="no property 'shoe'"):
        graph.load({"Person": pd.DataFrame({"name": ["ana"], "shoe": [1]})}, mode="append")


def test_a_column_of_many_kinds_is_invalid_input(graph: Graph) -> None:
    mixed = pd.DataFrame({"name": ["ana", 7, b"x"]})
    with pytest.raises(InvalidInput, match="DataFrame cannot be read as a table"):
        graph.load({"Person": mixed}, mode="append")
    with pytest.raises(InvalidInput, match="cannot be read as a table"):
        graph.load({"Person": pa.chunked_array([[1, 2]])}, mode="append")
