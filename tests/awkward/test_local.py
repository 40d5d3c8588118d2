"""The awkward schema through every verb in process: what comes out is what went in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from omnigraph import Graph
from omnigraph.ingest.load import MODES
from omnigraph.lang.schema import EdgeType, NodeType
from tests.awkward.names import (
    EXPECTED,
    Record,
    as_ndjson,
    content,
    exported,
    records,
    schema,
)

Fresh = Callable[[str], Graph]


def by_type(lines: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for line in lines:
        key = f"edge:{line['edge']}" if "edge" in line else f"node:{line['type']}"
        found.setdefault(key, []).append(line)
    return found


def flat(owner: NodeType | EdgeType, line: Record) -> Record:
    """A record as a row of a table: the ends of an edge beside its properties."""
    ends = {word: line[word] for word in owner.endpoints.values()}
    return {**ends, **{name: line["data"].get(name) for name in ("id", *owner.properties)}}


class TestLoading:
    @pytest.mark.parametrize("mode", MODES)
    def test_every_mode_stores_what_it_is_given(self, fresh: Fresh, mode: str) -> None:
        graph = fresh(mode)
        graph.load(as_ndjson(records()), mode=mode, format="ndjson")  # type: ignore[arg-type]
        assert exported(graph) == EXPECTED

    @pytest.mark.parametrize("mode", MODES)
    def test_every_mode_replaces_what_it_is_given(self, graph: Graph, mode: str) -> None:
        lines = [line for line in records() if mode != "append" or "edge" in line]
        if mode == "append":
            for line in lines:
                line["data"]["id"] += " more"
                line["data"].pop("edge", None)
        graph.load(as_ndjson(lines), mode=mode, format="ndjson")  # type: ignore[arg-type]
        assert exported(graph) == EXPECTED | content(lines)

    def test_the_compatible_reading_takes_the_same_records(self, fresh: Fresh) -> None:
        graph = fresh("c")
        graph.load(as_ndjson(records()), mode="append", format="ndjson", strict=False)
        assert exported(graph) == EXPECTED

    def test_records_of_python_are_loaded(self, fresh: Fresh) -> None:
        graph = fresh("r")
        graph.load(records(), mode="append")
        assert exported(graph) == EXPECTED

    @pytest.mark.parametrize("how", ["parquet", "csv", "arrow"])
    def test_tables_of_every_type_are_loaded(self, fresh: Fresh, tmp_path: Path, how: str) -> None:
        graph, accepted = fresh(how), schema()
        sources: dict[str, Any] = {}
        for number, (key, lines) in enumerate(by_type(records()).items()):
            owner = accepted.type(key)
            if how == "csv":
                sources[key] = str(tmp_path / f"{number}.csv")
                write_csv(sources[key], [flat(owner, line) for line in lines])
                continue
            table = pa.table(
                {
                    name: pa.array([flat(owner, line)[name] for line in lines])
                    for name in flat(owner, lines[0])
                }
            )
            sources[key] = table
            if how == "parquet":
                sources[key] = str(tmp_path / f"{number}.parquet")
                pyarrow.parquet.write_table(table, sources[key])
        graph.load(sources, mode="append")
        assert exported(graph) == EXPECTED

    def test_a_batch_inserts_updates_and_deletes(self, fresh: Fresh) -> None:
        graph, ids = fresh("b"), {}
        with graph.write() as batch:
            for line in records():
                values = {n: v for n, v in line["data"].items() if n != "id"}
                if "type" in line:
                    ids[line["type"], line["data"]["id"]] = batch.insert(line["type"], values)
            for line in records():
                if "edge" in line:
                    owner = schema().edges[line["edge"]]
                    values = {n: v for n, v in line["data"].items() if n != "id"}
                    ends = ids[owner.source, line["from"]], ids[owner.target, line["to"]]
                    ids[line["edge"], line["data"]["id"]] = batch.insert_edge(
                        owner.name, *ends, values
                    )
        # Ids of edges and of nodes without a key are made by the graph; all else is the same.
        given = [
            [key, *sorted(map(repr, row.items()))]
            for (key, _), row in EXPECTED.items()
            if not key.endswith("Found")
        ]
        stored = [
            [key, *sorted(map(repr, row.items()))]
            for (key, _), row in exported(graph).items()
            if not key.endswith("Found")
        ]
        assert sorted(stored) == sorted(given)


def write_csv(path: str, rows: list[Record]) -> None:
    import csv

    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_STRINGS if hasattr(csv, "QUOTE_STRINGS") else 0)
        writer.writerow(list(rows[0]))
        for row in rows:
            writer.writerow([None if v is None else _csv_text(v) for v in row.values()])


def _csv_text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)


class TestExport:
    def test_it_loads_back_to_the_same_bytes(self, graph: Graph, fresh: Fresh) -> None:
        data = b"".join(graph.export())
        again = fresh("again")
        again.load(data, mode="append", format="ndjson")
        assert b"".join(again.export()) == data

    def test_a_baseline_holds_the_same_lines(self, graph: Graph) -> None:
        *lines, last = b"".join(graph.history.baseline()).splitlines()
        assert "baseline" in json.loads(last)
        assert content(map(json.loads, lines)) == EXPECTED
