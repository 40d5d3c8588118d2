"""Awkward names through the command line: the same entry point, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.main import run
from omnigraph.ingest.load import MODES
from tests.awkward.names import (
    EXPECTED,
    FULL,
    KEYED,
    LINK,
    LONG_TYPE,
    as_ndjson,
    content,
    exported,
    records,
    schema,
    schema_text,
    value,
)

BRANCHES = ("from", "select", "id", "_rowid", "é", "a/b", "NULL")


class Program:
    """Runs commands that must succeed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> str:
        code = run(arguments)
        out, err = self._capsys.readouterr()
        assert code == 0, (arguments, err)
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Program:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Program(capsys)


def test_a_graph_goes_through_every_command(cli: Program, tmp_path: Path) -> None:
    Path("s.pg").write_text(schema_text())
    Path("d.jsonl").write_bytes(as_ndjson(records()))
    cli("fmt", "s.pg")
    cli("init", "--schema", "s.pg", "g")
    cli("load", "--data", "d.jsonl", "--mode", "append", "g")
    for mode in MODES:
        if mode != "append":
            cli("load", "--data", "d.jsonl", "--mode", mode, "g")
    graph = omnigraph.open("g")
    assert exported(graph) == EXPECTED
    assert content(map(json.loads, cli("export", "g").splitlines())) == EXPECTED

    words = schema().nodes[KEYED].properties
    columns = ", ".join(f"$x.{w} as {w}" for w, item in words.items() if not item.type.is_blob)
    text = f"query q() {{ match {{ $x: {KEYED} }} return {{ {columns} }} order {{ every }} }}"
    Path("q.gq").write_text(text)
    cli("fmt", "q.gq")
    cli("lint", "--schema", "s.pg", "--query", "q.gq")
    cli("explain", "--uri", "g", "--query", "q.gq")
    for shape in ("json", "jsonl", "csv", "kv", "table"):
        assert "nAme" in cli("query", "--uri", "g", "--query", "q.gq", "--format", shape)
    rows = cli.json("query", "--uri", "g", "--query", "q.gq")["rows"]
    assert len(rows) == 3
    assert set(rows[0]) == set(words)

    kind = words["from"].type
    text = f'query q($v: {kind}) {{ update {KEYED} set {{ from: $v }} where every != "" }}'
    cli("mutate", "--uri", "g", "-e", text, "--params", json.dumps({"v": value(kind, 99)}))
    id = next(i for key, i in EXPECTED if key == f"node:{KEYED}")
    shown = cli.json("blame", "node", KEYED, id, "--uri", "g")
    assert {item["property"] for item in shown["properties"]} == set(words)
    cli.json("history", "node", KEYED, id, "--uri", "g")
    head = graph.history.commits(limit=2)
    changes = cli.json("diff", head[1].commit_id, "main", "--uri", "g")["changes"]
    assert all("endpoints" not in change for change in changes)
    assert {name for c in changes for name in c["after"]["properties"]} == set(words)
    cli("diff", head[1].commit_id, "main", "--uri", "g")
    cli("changes", "poll", "--uri", "g", "--start", "beginning")
    cli("changes", "baseline", "--uri", "g", "--out", "b.jsonl")
    *lines, _ = Path("b.jsonl").read_text().splitlines()
    assert content(map(json.loads, lines)) == exported(graph)
    cli("schema", "show", "g")
    cli("schema", "plan", "--schema", "s.pg", "g")
    for name in BRANCHES if FULL else BRANCHES[:2]:
        cli("branch", "create", "--uri", "g", name)
        cli("tag", "create", "--uri", "g", f"t{name}", "main")
        assert exported(graph, name) == exported(graph)
        cli("branch", "delete", "--uri", "g", name)
    for command in (("index", "build"), ("optimize",), ("fsck",)):
        cli(*command, "g")
    cli("purge", "node", LONG_TYPE, next(i for k, i in EXPECTED if k == f"node:{LONG_TYPE}"), "g")
    cli("purge", "edge", LINK, next(i for k, i in EXPECTED if k == f"edge:{LINK}"), "g")


def test_what_a_commit_did_is_undone_and_done_again(cli: Program) -> None:
    Path("s.pg").write_text(schema_text())
    Path("d.jsonl").write_bytes(as_ndjson(records()))
    cli("init", "--schema", "s.pg", "g")
    cli("load", "--data", "d.jsonl", "--mode", "append", "g")
    graph = omnigraph.open("g")
    start = graph.history.commits(limit=1)[0].commit_id
    words = schema().nodes[KEYED].properties
    params = {f"v{n}": value(item.type, 99) for n, item in enumerate(words.values())}
    chosen = {
        f"v{n}": (name, item.type)
        for n, (name, item) in enumerate(words.items())
        if name != "every" and not item.type.is_blob
    }
    head = ", ".join(f"${v}: {kind}" for v, (_, kind) in chosen.items())
    body = ", ".join(f"{name}: ${v}" for v, (name, _) in chosen.items())
    text = f'query q({head}) {{ update {KEYED} set {{ {body} }} where every != "" }}'
    given = json.dumps({v: params[v] for v in chosen})
    commit = cli.json("mutate", "--uri", "g", "-e", text, "--params", given)["commit"]
    changed = exported(graph)
    assert changed != EXPECTED

    cli("revert", commit["graph_commit_id"], "--uri", "g")
    assert exported(graph) == EXPECTED
    cli("cherry-pick", commit["graph_commit_id"], "--uri", "g")
    assert exported(graph) == changed
    places = [f"{key}:{id}" for key, id in changed if changed[key, id] != EXPECTED[key, id]]
    cli("restore", start, *places, "--uri", "g")
    assert exported(graph) == EXPECTED
    cli("reset", commit["graph_commit_id"], "--uri", "g")
    assert exported(graph) == changed
