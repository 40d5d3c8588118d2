"""The awkward schema on Spark: loads, exports, DataFrames, changes, merges, maintenance."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.awkward.names import (
    EXPECTED,
    FULL,
    LINK,
    as_ndjson,
    content,
    exported,
    records,
    schema,
    schema_text,
    thinned,
)

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.export import FORMATS, MANIFEST
from omnigraph.ingest.load import MODES
from omnigraph.spark.source.data_source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FLAT = [owner.key for owner in schema().types() if owner.name != "Found"]
FLAT_NAMES = sorted({key.partition(":")[2] for key in FLAT})
EXPECTED_FLAT = {place: row for place, row in EXPECTED.items() if place[0] in FLAT}
READ = FLAT if FULL else [f"edge:{LINK}", "node:Pair", "node:Src"]

Copy = Callable[[str], Graph]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("awkward") / "empty"
    omnigraph.init(where, schema_text())
    return where


@pytest.fixture(scope="module")
def loaded(bare: Path, spark: SparkSession) -> Path:
    """Loaded on Spark; never written to afterwards."""
    where = bare.parent / "loaded"
    shutil.copytree(bare, where)
    omnigraph.open(where).load(as_ndjson(records()), mode="append", format="ndjson", engine="spark")
    return where


@pytest.fixture
def fresh(bare: Path, tmp_path: Path) -> Copy:
    def make(name: str) -> Graph:
        shutil.copytree(bare, tmp_path / name)
        return omnigraph.open(tmp_path / name)

    return make


@pytest.fixture
def graph(loaded: Path, tmp_path: Path) -> Graph:
    shutil.copytree(loaded, tmp_path / "g")
    return omnigraph.open(tmp_path / "g")


def test_a_load_stores_what_it_is_given(loaded: Path) -> None:
    assert exported(omnigraph.open(loaded, read_only=True)) == EXPECTED


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "append"])
def test_every_mode_replaces_what_it_is_given(graph: Graph, mode: str) -> None:
    lines = records(2)
    for line in lines:
        if line.get("edge") == LINK:
            line["data"].pop("edge", None)
    graph.load(as_ndjson(lines), mode=mode, format="ndjson", engine="spark")  # type: ignore[arg-type]
    kept = {} if mode == "overwrite" else EXPECTED
    expected = kept | content(lines)
    if mode == "upsert":  # what is not given keeps its value
        for key in expected.keys() & EXPECTED.keys():
            if key[0] == f"edge:{LINK}":
                expected[key] = {**expected[key], "edge": EXPECTED[key]["edge"]}
    assert exported(graph) == expected


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "arrow"])
def test_an_export_loads_back(graph: Graph, fresh: Copy, tmp_path: Path, format: str) -> None:
    where = tmp_path / "out"
    types = None if format == "ndjson" else FLAT_NAMES
    counts = graph.spark.export(where, format=format, types=types)
    expected = EXPECTED if types is None else EXPECTED_FLAT
    assert sum(counts.values()) == len(expected)
    files = sorted(path.name for path in where.iterdir() if path.name != MANIFEST)
    assert len({name.casefold() for name in files}) == len(files)
    again = fresh("again")
    if format == "ndjson":
        again.load(str(where), mode="append", engine="local")
    else:
        sources = {}
        for key in FLAT:
            (sources[key],) = (str(where / name) for name in files if is_of(name, key))
        again.load(sources, mode="append", engine="local")
    assert exported(again) == expected


def is_of(file: str, key: str) -> bool:
    """Whether an exported file holds a type; a hash tells names apart that differ in case."""
    name = key.replace(":", "-")
    hashed = hashlib.sha256(name.encode()).hexdigest()[:8]
    return file.startswith((f"{name}-0", f"{name[:200]}-{hashed}-0"))


def frame_of(spark: SparkSession, graph: Graph, key: str, **options: str) -> DataFrame:
    register(spark)
    reader = spark.read.format("omnigraph").option("type", key)
    for name, text in options.items():
        reader = reader.option(name, text)
    return reader.load(graph.uri)


@pytest.mark.parametrize("key", READ)
def test_frames_are_read_filtered_and_loaded_back(
    spark: SparkSession, graph: Graph, fresh: Copy, key: str
) -> None:
    owner = schema().type(key)
    frame = frame_of(spark, graph, key)
    assert frame.columns == [column.name for column in owner.columns()]
    rows = {row[0]: row for row in frame.collect()}
    assert len(rows) == 3
    for word in thinned(owner.properties):
        item = owner.properties[word]
        if item.type.is_string:
            given = next(
                row[word] for (k, _), row in EXPECTED.items() if k == key and row[word] is not None
            )
            found = frame.where(frame[f"`{word}`"] == given).select("id", f"`{word}`").collect()
            wanted = {i for (k, i), row in EXPECTED.items() if k == key and row[word] == given}
            assert {row[0] for row in found} == wanted, word
    assert {row[0]: row for row in frame.collect()} == rows  # a filter does not stay with a frame
    again = fresh("again")
    nodes = [line for line in records() if "type" in line and line["type"] != owner.name]
    if owner.kind == "edge":
        nodes = [line for line in records() if "type" in line]
    again.load(as_ndjson(nodes), mode="append", format="ndjson", engine="local")
    again.load({key: frame}, mode="append", engine="spark")
    assert exported(again) == {
        **content(nodes),
        **{p: r for p, r in EXPECTED.items() if p[0] == key},
    }


def test_changes_show_every_property_inside_a_structure(spark: SparkSession, graph: Graph) -> None:
    owner, before = schema().nodes["Pair"], graph.history.commits(limit=1)[0].commit_id
    id = next(i for key, i in EXPECTED if key == owner.key)
    with graph.write() as batch:
        batch.update("Pair", id, {"src": "new", "to": "new"})
    (row,) = frame_of(spark, graph, owner.key, changes=before).collect()
    assert (row["op"], row["id"]) == ("update", id)
    assert row["after"].asDict().keys() == {"id", *owner.properties}
    assert (row["after"]["src"], row["after"]["to"]) == ("new", "new")


def test_records_that_break_a_rule_are_quarantined(fresh: Copy, tmp_path: Path) -> None:
    given = as_ndjson(records()) + b'{"type": "Nobody", "data": {}}\n'
    target = fresh("aside")
    aside = tmp_path / "bad.jsonl"
    result = target.load(given, mode="append", format="ndjson", engine="spark", quarantine=aside)
    assert result.quarantined == 1
    assert exported(target) == EXPECTED


def test_branches_merge_and_maintenance_keeps_the_content(graph: Graph) -> None:
    graph.branches.create("select")
    id = next(i for key, i in EXPECTED if key == "node:Pair")
    with graph.write("select") as batch:
        batch.update("Pair", id, {"src": "new", "to": "new"})
    expected = exported(graph, "select")
    assert expected != exported(graph)
    graph.merge("select", engine="spark")
    assert exported(graph) == expected
    graph.maintenance.optimize(engine="spark")
    graph.maintenance.build_indexes(engine="spark")
    assert exported(graph) == expected
