"""``load``, ``mutate``, ``export`` and ``blob`` as the real program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph

import omnigraph as engine

ADD = "query add($n: String) { insert City { name: $n } }"


@pytest.fixture
def graph(tmp_path: Path) -> str:
    people_graph(tmp_path / "g")
    return str(tmp_path / "g")


def test_load_checks_everything_and_is_one_commit(
    omnigraph: Program, graph: str, tmp_path: Path
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"type":"City","data":{"name":"Rome"}}\n')
    flags = ("--message", "cities", "--meta", "ticket=7", "--as", "me", "--json")
    done = omnigraph("load", graph, "--data", str(data), "--mode", "append", *flags)
    assert done.code == 0
    assert done.err == f"omnigraph load → {graph} (direct, local)\n"
    assert list(done.json)[:5] == ["uri", "branch", "base_branch", "branch_created", "mode"]
    assert done.json["nodes"] == [{"name": "City", "entities_loaded": 1}]
    newest = engine.open(graph, read_only=True).history.commits()[0]
    assert done.json["commit"] == newest.to_json()
    assert (newest.message, newest.actor, dict(newest.metadata)) == (
        "cities",
        "me",
        {"ticket": "7"},
    )


def test_a_merge_says_what_it_took_away_and_an_upsert_takes_nothing(
    omnigraph: Program, graph: str, tmp_path: Path
) -> None:
    data = tmp_path / "data.jsonl"
    tie = '{"edge":"Knows","from":"ana","to":"bo","data":{"since":2020}}\n'
    data.write_text('{"type":"Person","data":{"name":"ana"}}\n' + tie)
    done = omnigraph("load", graph, "--data", str(data), "--mode", "upsert")
    assert done.code == 0
    assert "nothing changed" in done.out
    assert "warning" not in done.err
    done = omnigraph("load", graph, "--data", str(data), "--mode", "merge", "--json")
    assert done.code == 0
    assert (done.json["values_nulled"], done.json["edges_repeated"]) == (1, 1)
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert "1 stored values became null" in warnings[0]
    assert "1 edges were added beside equal ones" in warnings[1]


def test_load_lists_every_problem_with_its_line(
    omnigraph: Program, graph: str, tmp_path: Path
) -> None:
    data = tmp_path / "bad.jsonl"
    data.write_text('{"type":"City"}\n{"type":"Town"}\n{"type":"City","data":{"name":7}}\n')
    done = omnigraph("load", graph, "--data", str(data), "--mode", "append", "--quiet")
    assert done.code == 1
    lines = done.err.splitlines()
    assert [line.partition(": ")[0] for line in lines[:3]] == [
        f"{data}:{number}" for number in (2, 3, 1)
    ]
    assert lines[3].startswith("error[invalid_data]: ")


def test_load_takes_tables_and_makes_branches(
    omnigraph: Program, graph: str, tmp_path: Path
) -> None:
    data = tmp_path / "cities.csv"
    data.write_text("label,x\nRome,1\n")
    flags = ("--type", "City", "--column", "label=name", "--column", "x=", "--branch", "dev")
    done = omnigraph(
        "load", graph, "--data", str(data), "--mode", "merge", *flags, "--from", "main"
    )
    assert (done.code, done.out.splitlines()[0]) == (0, "City  1")
    assert b'"Rome"' in b"".join(engine.open(graph, read_only=True).export("dev"))


def test_mutate_says_what_it_did(omnigraph: Program, graph: str) -> None:
    done = omnigraph("mutate", "--uri", graph, "-e", ADD, "--params", '{"n":"Rome"}', "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["affected_nodes"] == 1
    assert done.json["commit"]["graph_branch"] is None
    nothing = 'query q() { delete City where name = "x" }'
    done = omnigraph("mutate", "--uri", graph, "-e", nothing)
    assert (done.code, done.out) == (0, "q: 0 nodes, 0 edges; nothing to commit\n")


def test_M_6_a_lost_race_is_exit_code_4(omnigraph: Program, graph: str) -> None:
    call = ("mutate", "--uri", graph, "-e", ADD, "--params", '{"n":"Rome"}')
    done = omnigraph(*call, "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--json")
    assert done.code == 4
    assert done.json["reason"] == "precondition_failed"
    assert done.json["details"]["expected"] == "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    head = engine.open(graph, read_only=True).snapshot().commit_id
    assert omnigraph(*call, "--if-commit", head).code == 0


def test_a_query_has_exactly_one_source(inline: Program) -> None:
    for flags in ([], ["-e", "x", "--query", "y"], ["-e", " "]):
        done = inline("mutate", "--uri", "g", *flags)
        assert done.code == 1
        assert "remedy:" in done.err


def test_export_prints_what_load_reads(omnigraph: Program, graph: str, tmp_path: Path) -> None:
    done = omnigraph("export", graph)
    assert done.code == 0
    assert done.out.encode() == b"".join(engine.open(graph, read_only=True).export())
    done = omnigraph("export", graph, "--type", "City")
    assert json.loads(done.out)["data"]["name"] == "Oslo"
    assert omnigraph("export", graph, "--type", "Nope").code == 1


def test_blob_get_and_stat(omnigraph: Program, tmp_path: Path) -> None:
    graph = engine.init(tmp_path / "b", "node Doc { k: String @key  body: Blob? }")
    with graph.write() as w:
        w.insert("Doc", {"k": "a", "body": b"hello world"})
    selector = ("node", "Doc", "a", "body", "--uri", graph.uri)
    assert omnigraph("blob", "get", *selector).out == "hello world"
    assert omnigraph("blob", "get", *selector, "--offset", "6", "--length", "3").out == "wor"
    out = tmp_path / "out.bin"
    assert omnigraph("blob", "get", *selector, "--out", str(out)).code == 0
    assert out.read_bytes() == b"hello world"
    stat = omnigraph("blob", "stat", *selector, "--json").json
    assert (stat["kind"], stat["size"]) == ("managed", 11)
    assert stat["target"] == {"resolved_snapshot": graph.snapshot().commit_id}
    assert omnigraph("blob", "get", *selector, "--offset", "99").code == 1


def test_old_names_work_and_warn(inline: Program, graph: str, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"type":"City","data":{"name":"Rome","unknown":1}}\n')
    done = inline("ingest", graph, "--data", str(data))
    assert done.code == 0
    assert "warning: `ingest` is an old name: use `omnigraph load`." in done.err
    assert done.out.splitlines()[-1].startswith("loaded 1 entities into main; commit ")
    changed = inline("change", "--uri", graph, "-e", ADD, "--params", '{"n":"Bari"}')
    assert (changed.code, changed.err.splitlines()[0]) == (
        0,
        "warning: `change` is an old name: use `omnigraph mutate`.",
    )
    query = "query q() { match { $c: City } return { $c.name } order { $c.name } }"
    read = inline("read", "--uri", graph, "-e", query, "--format", "csv")
    assert {"Bari", "Rome"} <= set(read.out.split())
    assert "ingest" not in inline("--help").out
