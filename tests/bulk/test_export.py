"""Exports to files: every format, on this machine and to an object store, all of it or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.outcomes import content

import omnigraph
from omnigraph import Graph
from omnigraph.bulk import export
from omnigraph.bulk.export import FORMATS, MANIFEST
from omnigraph.errors import AlreadyExists, InvalidInput
from omnigraph.settings import StorageSettings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]?  at: DateTime? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", SCHEMA)
    people = [{"name": f"p{n}", "age": n, "tags": ["a", "b"]} for n in range(21)]
    knows = [{"from": f"p{n}", "to": "p20", "since": n} for n in range(5)]
    made.load({"Person": people, "Knows": knows}, mode="append")
    return made


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_can_be_loaded_again(graph: Graph, tmp_path: Path, format: str) -> None:
    target = tmp_path / "out"
    assert graph.spark.export(target, format=format) == {"node:Person": 21, "edge:Knows": 5}
    with pytest.raises(AlreadyExists):
        graph.spark.export(target, format=format)
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == ["out"]
    copy = omnigraph.init(tmp_path / "copy", SCHEMA)
    if format == "ndjson":
        copy.load(target, mode="append")
    else:
        for kind, name in (("node", "Person"), ("edge", "Knows")):
            copy.load({name: _source(target, f"{kind}-{name}-00000", format)}, mode="append")
    assert content(copy) == content(graph)


def _source(target: Path, stem: str, format: str) -> Any:
    if format != "arrow":
        return target / f"{stem}.{format}"
    with pa.OSFile(str(target / f"{stem}.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def test_the_manifest_lists_the_files_and_their_commit(graph: Graph, tmp_path: Path) -> None:
    graph.spark.export(tmp_path / "out", format="parquet")
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert manifest["commit"] == graph.history.commits()[0].commit_id
    assert {file["name"]: file["rows"] for file in manifest["files"]} == {
        "node-Person-00000.parquet": 21,
        "edge-Knows-00000.parquet": 5,
    }
    for file in manifest["files"]:
        assert (tmp_path / "out" / file["name"]).stat().st_size == file["bytes"]


def test_an_object_store_holds_all_of_an_export_or_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "memory://exports/people"
    objects = open_objects(parse_location(target), StorageSettings())
    encode = export.encode_rows

    def failing(owner: Any, *rest: Any) -> bytes:
        if owner.name == "Person":
            raise InvalidInput("the disk is full")
        return encode(owner, *rest)

    monkeypatch.setattr(export, "encode_rows", failing)
    with pytest.raises(InvalidInput, match="the disk is full"):
        graph.spark.export(target)
    assert objects.list() == []
    monkeypatch.undo()
    graph.spark.export(target)
    names = [found.path for found in objects.list()]
    assert names == [MANIFEST, "edge-Knows-00000.jsonl", "node-Person-00000.jsonl"]
    with pytest.raises(AlreadyExists):
        graph.spark.export(target)
