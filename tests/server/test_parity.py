"""The command line on a graph and the same operation over HTTP print the same JSON.

Bodies are compared as text after decoding, so that the order of members counts. What differs by
nature is replaced: ids of commits, times, versions of tables, places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.cli.main import run
from tests.graphs import people_graph
from tests.support.http_server import TOKEN, running

G = "/graphs/people"
QUERY = "query q($n: String) { match { $p: Person { name: $n } } return { $p, $p.age as age } }"
INSERT = "query add($n: String) { insert City { name: $n } }"
RECORDS = '{"type": "City", "data": {"name": "Lima"}}\n'
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
NEVER_EQUAL = {
    "created_at", "authored_at", "uri", "operation_id", "cursor", "next_page_token", "dataset_path",
    "resume_cursor", "seconds", "snapshot_commit_id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Same:
    """One operation: as a command line, and as a request."""

    name: str
    words: list[str]
    method: str
    path: str
    body: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    content: str | None = None
    drop: frozenset[str] = frozenset()


def insert(name: str) -> Same:
    words = ["mutate", "-e", INSERT, "--params", json.dumps({"n": name})]
    return Same(
        f"insert {name}", words, "POST", "/mutate", {"query": INSERT, "params": {"n": name}}
    )


OPERATIONS = [
    Same("snapshot", ["snapshot", "{uri}"], "GET", "/snapshot"),
    Same("schema show", ["schema", "show", "{uri}"], "GET", "/schema"),
    Same(
        "query",
        ["query", "-e", QUERY, "--params", '{"n": "ana"}'],
        "POST",
        "/query",
        {"query": QUERY, "params": {"n": "ana"}},
    ),
    Same(
        "explain",
        ["explain", "-e", QUERY],
        "POST",
        "/explain",
        {"query": QUERY},
    ),
    insert("Rome"),
    insert("Rome"),
    Same(
        "nothing to write",
        ["mutate", "-e", 'query q() { delete City where name = "No" }'],
        "POST",
        "/mutate",
        {"query": 'query q() { delete City where name = "No" }'},
    ),
    Same(
        "load",
        ["load", "{uri}", "--data", "{data}", "--mode", "upsert"],
        "POST",
        "/load/ndjson",
        params={"mode": "upsert"},
        headers={"Content-Type": "application/x-ndjson"},
        content=RECORDS,
        drop=frozenset({"uri"}),
    ),
    Same(
        "load that conflicts",
        ["load", "{uri}", "--data", "{data}", "--mode", "append"],
        "POST",
        "/load/ndjson",
        params={"mode": "append"},
        headers={"Content-Type": "application/x-ndjson"},
        content=RECORDS,
    ),
    Same(
        "ingest",
        ["ingest", "{uri}", "--data", "{data}"],
        "POST",
        "/ingest",
        {"data": RECORDS, "from": "main", "mode": "merge"},
    ),
    Same("branch create", ["branch", "create", "dev"], "POST", "/branches", {"name": "dev"}),
    Same("branch exists", ["branch", "create", "dev"], "POST", "/branches", {"name": "dev"}),
    Same("branch list", ["branch", "list"], "GET", "/branches"),
    Same(
        "write to the branch",
        ["mutate", "-e", INSERT, "--params", '{"n": "Bern"}', "--branch", "dev"],
        "POST",
        "/mutate",
        {"query": INSERT, "params": {"n": "Bern"}, "branch": "dev"},
    ),
    Same(
        "diff",
        ["diff", "main", "dev", "--limit", "5"],
        "GET",
        "/diff",
        params={"from": "main", "to": "dev", "limit": "5"},
    ),
    Same(
        "diff summary",
        ["diff", "main", "dev", "--summary"],
        "GET",
        "/diff",
        params={"from": "main", "to": "dev", "summary": "true"},
    ),
    Same(
        "merge preview",
        ["branch", "merge", "dev", "--dry-run"],
        "POST",
        "/branches/merge",
        {"source": "dev", "dry_run": True},
        drop=frozenset({"commit", "actor_id"}),
    ),
    Same("merge", ["branch", "merge", "dev"], "POST", "/branches/merge", {"source": "dev"}),
    Same(
        "merge again",
        ["branch", "merge", "dev"],
        "POST",
        "/branches/merge",
        {"source": "dev"},
        drop=frozenset({"commit"}),
    ),
    Same("branch delete", ["branch", "delete", "dev"], "DELETE", "/branches/dev"),
    Same("branch is gone", ["branch", "delete", "dev"], "DELETE", "/branches/dev"),
    Same("tag create", ["tag", "create", "v1"], "POST", "/tags", {"name": "v1"}),
    Same("tag exists", ["tag", "create", "v1"], "POST", "/tags", {"name": "v1"}),
    Same("tag list", ["tag", "list"], "GET", "/tags"),
    Same("commit list", ["commit", "list", "{uri}"], "GET", "/commits"),
    Same("no commit", ["commit", "show", "bogus"], "GET", "/commits/bogus"),
    Same(
        "changes poll",
        ["changes", "poll", "--start", "beginning"],
        "GET",
        "/changes",
        params={"start": "beginning"},
    ),
    Same(
        "history",
        ["history", "node", "City", "Rome"],
        "GET",
        "/entities/node/City/history",
        params={"id": "Rome"},
    ),
    Same(
        "blame",
        ["blame", "node", "Person", "ana"],
        "GET",
        "/entities/node/Person/blame",
        params={"id": "ana"},
    ),
    Same(
        "a query that is wrong",
        ["query", "-e", "query q() { match { $p: Persn } return { $p } }"],
        "POST",
        "/query",
        {"query": "query q() { match { $p: Persn } return { $p } }"},
    ),
    Same(
        "a parameter that is wrong",
        ["query", "-e", QUERY, "--params", '{"n": 1}'],
        "POST",
        "/query",
        {"query": QUERY, "params": {"n": 1}},
    ),
    Same(
        "a branch that is missing",
        ["query", "-e", QUERY, "--branch", "no"],
        "POST",
        "/query",
        {"query": QUERY, "branch": "no"},
    ),
    Same("tag delete", ["tag", "delete", "v1"], "DELETE", "/tags/v1"),
    Same(
        "a condition that is lost",
        ["mutate", "-e", INSERT, "--params", '{"n": "x"}', "--if-commit", "0" * 26],
        "POST",
        "/mutate/if-graph-commit",
        {"query": INSERT, "params": {"n": "x"}},
        headers={"Omnigraph-If-Graph-Commit": "0" * 26},
    ),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    folder = tmp_path_factory.mktemp("parity")
    people_graph(folder / "local")
    people_graph(folder / "served")
    (folder / "data.jsonl").write_text(RECORDS)
    served = f"people={folder / 'served'}"
    with running(folder, [served]) as server, server.client(TOKEN) as client:
        yield folder, client


def test_command_line_and_server_say_the_same(
    sides: tuple[Path, httpx.Client], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, client = sides
    different = {}
    for number, item in enumerate(OPERATIONS):
        run(words_of(folder, item))
        local = json.loads(capsys.readouterr().out)
        response = client.request(
            item.method,
            G + item.path,
            json=item.body,
            params=item.params,
            headers=item.headers,
            content=item.content,
        )
        remote = response.json()
        ours, theirs = (shown(body, item.drop) for body in (local, remote))
        if ours != theirs:
            different[f"{number} {item.name}"] = (ours, theirs)
    assert different == {}


def words_of(folder: Path, item: Same) -> list[str]:
    """The command line of an operation, which runs in this process."""
    places = {"{uri}": str(folder / "local"), "{data}": str(folder / "data.jsonl")}
    words = [places.get(word, word) for word in item.words]
    if "{uri}" not in item.words:
        flag = "--store" if item.words[0] in ("explain",) else "--uri"
        words += [flag, places["{uri}"]]
    if item.words[0] in WRITING or item.words[:2] in BRANCH_WRITES:
        words += ["--as", "ana"]
    return [*words, "--json"]


WRITING = ("mutate", "load", "ingest")
BRANCH_WRITES = (
    ["branch", "create"],
    ["branch", "merge"],
    ["branch", "delete"],
    ["tag", "create"],
    ["tag", "delete"],
)


def shown(body: Any, drop: frozenset[str]) -> str:
    """A body with what never is equal replaced."""
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in drop}
    text = json.dumps(_plain(body), ensure_ascii=False)
    return _ID.sub("<id>", text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {name: item for name, item in value.items() if name != "file"}
        return {
            name: "<varies>" if name in NEVER_EQUAL else _plain(item)
            for name, item in shown.items()
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
