"""Input splits of every format: the bulk load reads the same rows as a load in process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.outcomes import content, outcome, two_graphs
from tests.support.inline_tasks import bulk_graph

from omnigraph import Graph
from omnigraph.bulk.load.driver import Sizes
from omnigraph.errors import InvalidData, InvalidInput, NotAvailable

STORED = b'{"type":"Person","data":{"name":"p0"}}'


@pytest.fixture
def pair(empty: Path, tmp_path: Path) -> tuple[Graph, Graph]:
    local, other = two_graphs(empty, tmp_path, STORED)
    return local, bulk_graph(other)


def _same(pair: tuple[Graph, Graph], source: Any, **options: Any) -> Any:
    expected = outcome(pair[0], source, engine="local", **options)
    assert outcome(pair[1], source, **options) == expected
    return expected


def _people(first: int, count: int) -> list[str]:
    return [
        json.dumps({"type": "Person", "data": {"name": f"n{n}", "age": n % 90}})
        for n in range(first, first + count)
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("part_bytes", [1, 7, 64, 1000, 10_000])
def test_lines_are_read_once_wherever_parts_begin(
    pair: tuple[Graph, Graph], ending: str, part_bytes: int, tmp_path: Path
) -> None:
    file = tmp_path / "people.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + ending.join(_people(0, 40)).encode())
    pair[1].sizes = Sizes(part_bytes, 3)
    nodes, *_ = _same(pair, file, mode="append")
    assert nodes == {"Person": 40}


def test_violations_are_located_by_line_of_the_whole_file(
    pair: tuple[Graph, Graph], tmp_path: Path
) -> None:
    lines = _people(0, 60)
    lines[17] = lines[17].replace('"age": 17', '"age": 170')
    lines[41] = lines[40]
    file = tmp_path / "people.jsonl"
    file.write_text("\n".join(lines))
    _same(pair, file, mode="append")
    with pytest.raises(InvalidData) as caught:
        pair[1].load(file, mode="append")
    found = [(v["rule"], v["file"], v["line"]) for v in caught.value.violations]
    assert found == [("range", str(file), 18), ("key", str(file), 42)]
    assert f"first in {file}:41" in caught.value.violations[1]["message"]


def test_many_files_some_of_them_compressed(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(_people(0, 20)))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(_people(20, 20)).encode()))
    with pa.CompressedOutputStream(str(folder / "c.jsonl.zst"), "zstd") as out:
        out.write("\n".join(_people(40, 20)).encode())
    (folder / "d.jsonl").write_text("")
    nodes, *_ = _same(pair, folder, mode="append")
    assert nodes == {"Person": 60}


def test_row_groups_of_parquet_are_parts(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    names = [f"n{n}" for n in range(50)]
    table = pa.table({"who": names, "age": [n % 90 for n in range(50)]})
    pq.write_table(table, file, row_group_size=7)
    pair[1].sizes = Sizes(part_bytes=1, buckets=2)
    options = {"mode": "append", "type": "Person", "columns": {"who": "name"}}
    nodes, *_ = _same(pair, file, **options)
    assert nodes == {"Person": 50}
    bad = tmp_path / "bad.parquet"
    ages = pa.array([n + 100 for n in range(50)])
    pq.write_table(table.set_column(1, "age", ages), bad, row_group_size=7)
    _same(pair, bad, **{**options, "mode": "merge"})


def test_csv_with_a_mapping(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    rows = [f"n{n},{n}" for n in range(30)]
    file.write_text("\n".join(["who,years", *rows, "n31,old"]))
    options = {"mode": "append", "type": "Person", "columns": {"who": "name", "years": "age"}}
    code, total, _ = _same(pair, file, **options)
    assert (code, total) == ("invalid_data", 1)
    file.write_text("\n".join(["who,years", *rows]))
    assert _same(pair, file, **options)[0] == {"Person": 30}


def test_types_of_several_sources_and_tables_in_memory(pair: tuple[Graph, Graph]) -> None:
    source = {
        "Person": pa.table({"name": ["a", "b"]}),
        "Knows": pa.table({"from": ["a"], "to": ["p0"], "since": [7]}),
        "Note": pa.table({"text": pa.array([], pa.string())}),
    }
    nodes, edges, *_ = _same(pair, source, mode="append")
    assert (nodes, edges) == ({"Person": 2, "Note": 0}, {"Knows": 1})


def test_overwriting_with_an_empty_table_empties_the_type(pair: tuple[Graph, Graph]) -> None:
    _same(pair, {"Person": pa.table({"name": pa.array([], pa.string())})}, mode="overwrite")
    assert content(pair[1]) == []


def test_an_empty_input_is_one_commit(pair: tuple[Graph, Graph]) -> None:
    _same(pair, b"", mode="merge")


def test_a_branch_that_is_missing_is_made_only_by_a_load_that_succeeds(
    pair: tuple[Graph, Graph],
) -> None:
    graph = pair[1]
    bad = b'{"edge":"Knows","from":"p0","to":"nobody"}'
    with pytest.raises(InvalidData):
        graph.load(bad, mode="append", branch="side", from_="main")
    assert graph.branches.list() == ["main"]
    good = b'{"edge":"Knows","from":"p0","to":"p0"}'
    result = graph.load(good, mode="append", branch="side", from_="main")
    assert result.branch_created
    again = graph.load(good, mode="append", branch="side")
    assert again.edges == {"Knows": 1}
    assert graph.snapshot("side").pin("edge:Knows").rows == 2
    assert graph.snapshot("main").pin("edge:Knows").rows == 0


def test_an_idempotency_key_makes_a_repeated_load_one_commit(
    pair: tuple[Graph, Graph],
) -> None:
    data = b'{"edge":"Knows","from":"p0","to":"p0"}'
    first = pair[1].load(data, mode="append", idempotency_key="k")
    again = pair[1].load(data, mode="append", idempotency_key="k")
    assert again.repeated
    assert again.commit == first.commit


def test_a_load_removes_its_temporary_objects(pair: tuple[Graph, Graph]) -> None:
    graph = pair[1]
    before = set(_data_files(graph))
    with pytest.raises(InvalidData):
        graph.load(b'{"edge":"Knows","from":"p0","to":"nobody"}', mode="append")
    assert set(_data_files(graph)) == before
    graph.load(b'{"edge":"Knows","from":"p0","to":"p0"}', mode="append")
    assert not list((Path(graph.uri) / "_staging").rglob("*.json"))
    assert len(set(_data_files(graph)) - before) == 1


def _data_files(graph: Graph) -> list[str]:
    found = [*Path(graph.uri).glob("nodes/*/data/*"), *Path(graph.uri).glob("edges/*/data/*")]
    return [str(path) for path in found]


def test_generated_ids_depend_on_the_operation_and_the_position_alone(
    pair: tuple[Graph, Graph],
) -> None:
    lines = b"\n".join(b'{"edge":"Knows","from":"p0","to":"p0"}' for _ in range(3))
    pair[1].load(lines, mode="append")
    ids = [json.loads(line)["data"]["id"] for line in _edges(pair[1])]
    assert len(set(ids)) == 3
    assert ids == sorted(ids)


def _edges(graph: Graph) -> list[bytes]:
    return [line for line in b"".join(graph.export()).splitlines() if b'"edge"' in line]


def test_sources_that_only_a_load_in_process_reads_are_refused(pair: tuple[Graph, Graph]) -> None:
    with pytest.raises(InvalidInput, match="cannot read from list"):
        pair[1].load([{"type": "Person", "data": {"name": "x"}}], mode="append")
    with pytest.raises(NotAvailable):
        pair[1].load(b"", mode="append", strict=False)
