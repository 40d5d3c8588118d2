"""What a load reads: files by content, tables with a mapping, records; bad ones are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.graphs import PEOPLE

import omnigraph
from omnigraph import Graph
from omnigraph.constraints import VIOLATIONS_SHOWN_MAX
from omnigraph.errors import InvalidData, InvalidInput, ResourceLimit
from omnigraph.ingest import ndjson
from omnigraph.ingest.load import Progress

LINES = b'{"type":"City","data":{"name":"Rome"}}\n{"type":"City","data":{"name":"Bern"}}\n'
TYPED = """
node Row { k: String @key  i: I32?  f: F32?  ok: Bool?  day: Date?  at: DateTime?
  tags: [String]?  v: Vector(2)?  file: Blob? }
edge Next: Row -> Row { w: I64? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", PEOPLE)


@pytest.fixture
def typed(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "t", TYPED)


def names(graph: Graph, type_name: str = "City") -> list[str]:
    lines = b"".join(graph.export(types=[type_name])).splitlines()
    return [json.loads(line)["data"]["id"] for line in lines]


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_compression_is_recognised_by_content(graph: Graph, tmp_path: Path, pack: Any) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(pack(LINES))
    assert graph.load(file, mode="append").nodes == {"City": 2}
    assert names(graph) == ["Bern", "Rome"]


def test_directories_and_globs_are_one_load(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, line in enumerate(LINES.splitlines()):
        (folder / f"{number}.jsonl").write_bytes(line)
    (folder / ".hidden").write_text("not data")
    before = len(graph.history.commits())
    graph.load(folder, mode="append")
    graph.load(str(folder / "*.jsonl"), mode="merge")
    assert len(graph.history.commits()) == before + 2
    assert names(graph) == ["Bern", "Rome"]
    with pytest.raises(InvalidInput, match="no file"):
        graph.load(tmp_path / "missing.jsonl", mode="append")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n"),
        b"\n\n" + LINES + b"\n",
        LINES.rstrip(b"\n"),
    ],
)
def test_L_1_harmless_variations_are_read(graph: Graph, data: bytes) -> None:
    assert graph.load(data, mode="append").total == (2 if data else 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"type":"City","data":{"name":"a\xff"}}', "UTF-8"),
        (b'{"type":"City","data":{"name":"a\xc3', "UTF-8"),
        (b'\xef\xbb\xbf{"type":"City","data":{"name":"a"}}', "JSON"),
        (b'{"type":"City","data":{"name":"a","name":"b"}}', "twice"),
        (b'{"type":"Person","data":{"name":"a","age":NaN}}', "NaN"),
        (b'{"type":"Person","data":{"name":"a","age":1e5}}', "whole number"),
        (b'{"type":"Person","data":{"name":"a","age":99999999999}}', "between"),
        (b'{"type":"City","data":{"name":"\\ud800"}}', "surrogate"),
        (b'{"type":"City","data":{"name":' + b"[" * 100_000 + b"}}", "nested"),
        (b'{"type":"City","data":{"name":"a"}} {"type":"City"}', "JSON"),
        (b'{"edge":"Knows","from":1,"to":"b"}', "`from`"),
    ],
)
def test_L_4_bad_lines_are_named_and_nothing_is_written(
    graph: Graph, line: bytes, says: str
) -> None:
    before = graph.snapshot()
    with pytest.raises(InvalidData) as caught:
        graph.load(LINES + line + b"\n" + LINES.replace(b'":"', b'":"x', 2), mode="append")
    first = caught.value.violations[0]
    assert first["line"] == 3
    assert says in first["message"]
    assert caught.value.remedy
    assert graph.snapshot() == before


def test_a_record_that_is_too_long_is_a_typed_error(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson, "LINE_BYTES_MAX", 1 << 16)
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 1 << 12)
    with pytest.raises(ResourceLimit) as caught:
        graph.load(
            b'\n\n{"type":"City","data":{"name":"' + b"x" * (1 << 17) + b'"}}', mode="append"
        )
    assert caught.value.details["limit"] == 1 << 16
    assert "<data>:3" in caught.value.message


def test_L_18_the_limit_is_memory_and_the_remedy_is_spark(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOAD_BYTES_MAX", "10")
    graph = omnigraph.open(graph.uri)
    with pytest.raises(ResourceLimit) as caught:
        graph.load(LINES, mode="append")
    assert "Spark" in caught.value.remedy


@pytest.mark.parametrize("damage", [slice(0, 20), slice(0, -4)])
def test_damaged_gzip_is_a_typed_error(graph: Graph, damage: slice) -> None:
    with pytest.raises(InvalidData, match="damaged"):
        graph.load(gzip.compress(LINES)[damage], mode="append")


def test_blocks_do_not_change_what_is_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", 64)
    lines = [f'{{"type":"City","data":{{"name":"c{i}"}}}}' for i in range(50)]
    with pytest.raises(InvalidData) as caught:
        graph.load("\n".join([*lines, "{", *lines]).encode(), mode="append")
    assert [v["line"] for v in caught.value.violations if v["rule"] == "syntax"] == [51]
    assert graph.load("\n".join(lines).encode(), mode="append").total == 50


def test_the_list_of_problems_is_bounded_and_their_number_is_not(graph: Graph) -> None:
    with pytest.raises(InvalidData) as caught:
        graph.load(b'{"type":"Nope"}\n' * 1_000, mode="append")
    assert caught.value.total == 1_000
    assert len(caught.value.violations) == VIOLATIONS_SHOWN_MAX


def test_L_14_the_last_of_two_spellings_of_a_line_counts(graph: Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": n}} for n in ("a", "b")], mode="append")
    graph.load(
        b'{ "edge": "Knows", "from":"a","to":"b","data":{"id":"e","since":1}}\n'
        b'{"edge":"Knows","from":"a","to":"b","data":{"id":"e","since":2}}\n'
        b'{"from":"a","to":"b","data":{"id":"e","since":3},"edge":"Knows"}\n'
        b'{"edge":"knows","from":"b","to":"a","data":{"id":"e","since":4}}\n',
        mode="merge",
    )
    assert b'"from":"b","to":"a","data":{"id":"e","since":4}' in b"".join(graph.export())


def test_csv_with_a_mapping(typed: Graph, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(
        "key,i,f,ok,day,at,tags,v,skip\n"
        'a,1,1.5,true,2024-02-29,2024-02-29T12:00:00Z,"[""x"",""y""]","[1, 2]",zz\n'
        'b,,,,,,,,zz\n"c,d",-7,2,false,,,"[]",,\n'
    )
    typed.load(file, mode="append", type="Row", columns={"key": "k", "skip": ""})
    exported = b"".join(typed.export()).decode().splitlines()
    assert exported[0] == (
        '{"type":"Row","data":{"id":"a","at":"2024-02-29T12:00:00.000Z","day":"2024-02-29","f":1.5,"file":null,'
        '"i":1,"k":"a","ok":true,"tags":["x","y"],"v":[1.0,2.0]}}'
    )
    assert [json.loads(line)["data"]["id"] for line in exported] == ["a", "b", "c,d"]


def test_csv_problems_name_their_line(typed: Graph, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("k,i,ok\na,1,true\nb,x,true\nc,1.5,yes\n,1,true\n")
    with pytest.raises(InvalidData) as caught:
        typed.load(file, mode="append", type="Row")
    places = [(v["line"], v["property"]) for v in caught.value.violations]
    assert places == [(3, "i"), (4, "i"), (4, "ok"), (5, "k")]


def test_parquet_and_arrow_are_conformed(typed: Graph, tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": pa.array(["a", "b"]).dictionary_encode(),
            "i": pa.array([1, None], pa.int64()),
            "f": pa.array([1, 2], pa.float64()),
            "day": pa.array([19782, None], pa.int32()).cast(pa.date32()),
            "at": pa.array([5, None], pa.timestamp("us")),
            "tags": pa.array([["x"], []], pa.large_list(pa.string())),
            "v": pa.array([[1, 2], None], pa.list_(pa.float32(), 2)),
            "file": pa.array([b"\x00\x01", None]),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    typed.load(tmp_path / "rows.parquet", mode="append", type="Row")
    first = b"".join(typed.export())
    typed.load(table, mode="overwrite", type="node:Row")
    assert b"".join(typed.export()) == first
    assert (
        b'"at":"1970-01-01T00:00:00.000Z","day":"2024-02-29","f":1.0,"file":"base64:AAE="' in first
    )
    edges = {"from": ["a"], "to": ["b"], "w": [7]}
    typed.load({"Next": pa.table(edges)}, mode="append")
    assert b'{"edge":"Next","from":"a","to":"b"' in b"".join(typed.export())


def test_tables_that_do_not_fit_say_which_rows(typed: Graph) -> None:
    table = pa.table({"k": ["a", "b", "c"], "i": [1, 2**40, 3], "v": [[1.0], [1.0, 2.0], None]})
    with pytest.raises(InvalidData) as caught:
        typed.load(table, mode="append", type="Row")
    assert [(v["line"], v["property"]) for v in caught.value.violations] == [(2, "i"), (1, "v")]
    with pytest.raises(InvalidInput, match="has no property 'zz'"):
        typed.load(pa.table({"zz": [1]}), mode="append", type="Row")
    with pytest.raises(InvalidInput, match="needs a column `to`"):
        typed.load(pa.table({"from": ["a"]}), mode="append", type="Next")
    with pytest.raises(InvalidInput, match="needs the name of its type"):
        typed.load(table, mode="append")
    with pytest.raises(InvalidData, match="Parquet"):
        typed.load(b"PAR1 but no more", mode="append", type="Row")


def test_W_5_overwrite_to_empty(typed: Graph) -> None:
    typed.load({"Row": [{"k": "a"}]}, mode="append")
    typed.load({"Row": []}, mode="overwrite")
    assert b"".join(typed.export()) == b""
    typed.load({"Row": [{"k": "a"}], "Next": [{"from": "a", "to": "a"}]}, mode="append")
    assert len(b"".join(typed.export()).splitlines()) == 2


def test_L_16_the_result_says_what_was_loaded(graph: Graph) -> None:
    records = [{"type": "Person", "data": {"name": n}} for n in "ab"]
    records.append({"edge": "knows", "from": "a", "to": "b"})
    result = graph.load(records, mode="append", message="m", actor="me", metadata={"k": "v"})
    assert (result.nodes, result.edges, result.total) == ({"Person": 2}, {"Knows": 1}, 3)
    body = result.to_json(graph.uri)
    assert body["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert (body["branch_created"], body["base_branch"], body["actor_id"]) == (False, None, "me")
    assert body["commit"] == graph.history.commits()[0].to_json()
    assert result.commit is not None
    assert (result.commit.message, dict(result.commit.metadata)) == ("m", {"k": "v"})


def test_L_17_a_missing_branch_is_made_from_its_base(graph: Graph) -> None:
    with pytest.raises(omnigraph.errors.BranchNotFound):
        graph.load(LINES, mode="append", branch="dev")
    result = graph.load(LINES, mode="append", branch="dev", from_="main")
    assert (result.branch_created, result.base_branch) == (True, "main")
    again = graph.load(LINES, mode="merge", branch="dev", from_="main")
    assert (again.branch_created, again.base_branch) == (False, "main")
    assert names(graph) == []
    assert len(b"".join(graph.export("dev")).splitlines()) == 2
    orphan = b'{"edge":"Knows","from":"x","to":"y"}'
    for bad in (b"{", orphan):
        with pytest.raises(InvalidData):
            graph.load(bad, mode="append", branch="other", from_="main")
    with pytest.raises(omnigraph.errors.PreconditionFailed):
        graph.load(LINES, mode="append", branch="other", from_="main", expected_head="no")
    assert graph.branches.list() == ["dev", "main"]


def test_progress_is_told(graph: Graph) -> None:
    seen: list[Progress] = []
    graph.load(LINES, mode="append", progress=seen.append)
    assert [p.phase for p in seen] == ["read", "check", "done"]
    assert (seen[-1].rows, seen[-1].bytes_read) == (2, len(LINES))


def test_an_unknown_mode_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidInput, match="not a load mode"):
        graph.load(LINES, mode="replace")  # type: ignore[arg-type]
