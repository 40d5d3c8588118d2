"""Every route once: what it answers when it works, and its own refusals.

The fixture ``client`` checks each response against the declared status and shape.
"""

from __future__ import annotations

import itertools
import json
import re
import urllib.parse
from collections.abc import Iterator
from io import BytesIO

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

G = "/graphs/people"
PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
_numbers = itertools.count()


@pytest.fixture
def branch(client: httpx.Client) -> Iterator[str]:
    """A branch of its own for one test, with a name that must be encoded in paths."""
    name = f"team/b{next(_numbers)}"
    assert client.post(f"{G}/branches", json={"name": name}).status_code == 200
    yield name
    client.delete(f"{G}/branches/{quoted(name)}", params={"force": "true"})


def quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def mutate(client: httpx.Client, branch: str, text: str, **more: object) -> httpx.Response:
    return client.post(f"{G}/mutate", json={"query": text, "branch": branch, **more})


def insert(client: httpx.Client, branch: str, name: str) -> dict[str, object]:
    done = mutate(client, branch, f'query add() {{ insert City {{ name: "{name}" }} }}')
    assert done.status_code == 200, done.text
    found: dict[str, object] = done.json()["commit"]
    return found


def names(client: httpx.Client, branch: str, kind: str = "City") -> list[str]:
    text = f"query q() {{ match {{ $c: {kind} }} return {{ $c.name }} order {{ $c.name }} }}"
    body = client.post(f"{G}/query", json={"query": text, "branch": branch}).json()
    return [row["c.name"] for row in body["rows"]]


# -- reading ---------------------------------------------------------------------------------------


def test_a_query_keeps_nulls_and_names_its_commit(client: httpx.Client, branch: str) -> None:
    text = PEOPLE.replace("$p.name, $p.age", "$p.name as n, $p.age")
    body = client.post(f"{G}/query", json={"query": text, "branch": branch}).json()
    assert list(body) == [
        "query_name",
        "target",
        "row_count",
        "columns",
        "rows",
        "graph_commit_id",
    ]
    assert body["target"] == {"branch": branch, "snapshot": None}
    assert body["rows"][1] == {"n": "bo", "p.age": None}
    at = {"query": text, "snapshot": body["graph_commit_id"]}
    again = client.post(f"{G}/query", json=at).json()
    assert again["rows"] == body["rows"]
    assert again["target"] == {"branch": None, "snapshot": body["graph_commit_id"]}


def test_read_is_the_query_of_before(client: httpx.Client) -> None:
    found = client.post(f"{G}/read", json={"query_source": PEOPLE, "query_name": "q"})
    assert list(found.json()) == ["query_name", "target", "row_count", "columns", "rows"]
    assert found.headers["deprecation"] == "true"
    assert found.headers["link"] == f'<{G}/query>; rel="successor-version"'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"query": "garbage"}, ""),
        ({"query": PEOPLE, "branch": "main", "snapshot": "x"}, "exclude each other"),
        ({"query": PEOPLE, "params": {"x": 1}}, "x"),
        ({"query": PEOPLE, "params": [1]}, "object"),
        ({"query": PEOPLE + PEOPLE.replace(" q()", " r()")}, ""),
        ({"query": 'query q() { insert City { name: "x" } }'}, "writes"),
    ],
)
def test_a_query_that_is_refused(client: httpx.Client, body: dict[str, object], says: str) -> None:
    found = client.post(f"{G}/query", json=body)
    assert (found.status_code, found.json()["code"]) == (400, "bad_request")
    assert says in found.json()["error"]


def test_a_refused_query_says_where(client: httpx.Client) -> None:
    body = client.post(f"{G}/query", json={"query": PEOPLE.replace("Person", "Persn")}).json()
    assert body["diagnostic"]["position"]["line"] == 1
    assert body["diagnostic"]["fix"] == "did you mean `Person`?"


def test_parameters_keep_their_numbers(client: httpx.Client, branch: str) -> None:
    text = "query q($n: I64) { match { $p: Person } return { $p.name, $n as n } limit 1 }"
    content = b'{"query": %s, "params": {"n": 9007199254740993}}' % json.dumps(text).encode()
    headers = {"Content-Type": "application/json"}
    found = client.post(f"{G}/query", content=content, headers=headers)
    if found.status_code == 200:  # a parameter as a column
        assert found.json()["rows"][0]["n"] == 9007199254740993
    else:
        text = "query q($n: I64) { match { $p: Person } return { $p.name } limit 1 }"
        content = b'{"query": %s, "params": {"n": 9223372036854775808}}' % json.dumps(text).encode()
        refused = client.post(f"{G}/query", content=content, headers=headers)
        assert "9223372036854775808" in refused.text


def test_rows_as_arrow_and_as_ndjson(client: httpx.Client) -> None:
    body = {"query": PEOPLE}
    expected = client.post(f"{G}/query", json=body).json()
    arrow = client.post(
        f"{G}/query", json=body, headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert arrow.headers["omnigraph-graph-commit-id"] == expected["graph_commit_id"]
    assert pa.ipc.open_stream(arrow.content).read_all().to_pylist() == expected["rows"]
    lines = client.post(
        f"{G}/query", json=body, headers={"Accept": "application/x-ndjson, */*;q=0"}
    )
    assert [json.loads(line) for line in lines.text.splitlines()] == expected["rows"]
    assert lines.headers["omnigraph-row-count"] == "2"
    assert client.post(f"{G}/query", json=body, headers={"Accept": "image/png"}).status_code == 406
    sdk = {"Accept": "application/json, application/x-ndjson"}
    assert client.post(f"{G}/query", json=body, headers=sdk).json() == expected


def test_explain_and_profile(client: httpx.Client) -> None:
    plan = client.post(f"{G}/explain", json={"query": PEOPLE}).json()
    assert plan["steps"][0].keys() >= {"estimated_rows", "access"}
    measured = client.post(f"{G}/explain", json={"query": PEOPLE, "analyze": True}).json()
    assert measured["row_count"] == 2


def test_the_snapshot_lists_edges_before_nodes(client: httpx.Client) -> None:
    body = client.get(f"{G}/snapshot").json()
    assert body["graph_branch"] == "main"
    keys = [(item["entity_kind"], item["type_name"]) for item in body["datasets"]]
    assert keys == sorted(keys)
    assert client.get(f"{G}/snapshot", params={"branch": "no"}).status_code == 404


def test_schema_show_plan_apply(client: httpx.Client, branch: str) -> None:
    source = client.get(f"{G}/schema").json()["schema_source"]
    assert "node Person" in source
    wanted = source.replace("age: I32?", "age: I32?\n  email: String?")
    body = {"schema_source": wanted, "branch": branch}
    assert client.post(f"{G}/schema/plan", json=body).json()["steps"][0]["kind"] == "add_property"
    headers = {"Idempotency-Key": "s1"}
    done = client.post(f"{G}/schema/apply", json=body, headers=headers).json()
    assert (done["applied"], done["step_count"]) == (True, 1)
    assert client.post(f"{G}/schema/apply", json=body, headers=headers).json() == done
    assert client.get(f"{G}/schema", params={"branch": branch}).json()["schema_source"] == wanted


def test_an_export_can_be_loaded_again(client: httpx.Client, branch: str) -> None:
    found = client.post(f"{G}/export", json={"type_names": ["City"]})
    assert found.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert [json.loads(line)["type"] for line in found.text.splitlines()] == ["City"]
    loaded = client.post(
        f"{G}/load/ndjson",
        params={"branch": branch, "mode": "merge"},
        content=found.content,
        headers={"Content-Type": "Application/X-NDJSON; charset=utf-8"},
    )
    assert loaded.json()["total_entities"] == 1
    assert client.post(f"{G}/export", json={"other": 1}).status_code == 400
    assert client.post(f"{G}/export", json={"type_names": ["No"]}).status_code == 404


# -- writing ---------------------------------------------------------------------------------------


def test_a_receipt_is_the_commit(client: httpx.Client, branch: str) -> None:
    done = mutate(client, branch, 'query add() { insert City { name: "Rome" } }').json()
    assert (done["affected_nodes"], done["actor_id"]) == (1, "ana")
    commit = done["commit"]
    assert commit["graph_branch"] == branch
    assert client.get(f"{G}/commits/{commit['graph_commit_id']}").json() == commit
    assert client.get(f"{G}/commits/bogus").status_code == 404


def test_a_mutation_that_matches_nothing_has_no_commit(client: httpx.Client, branch: str) -> None:
    done = mutate(client, branch, 'query q() { delete City where name = "Nowhere" }').json()
    assert (done["affected_nodes"], done["commit"]) == (0, None)


def test_change_is_the_mutate_of_before(client: httpx.Client, branch: str) -> None:
    body = {"query_source": 'query a() { insert City { name: "Bern" } }', "query_name": "a"}
    found = client.post(f"{G}/change", json={**body, "branch": branch})
    assert found.json()["affected_nodes"] == 1
    assert found.headers["link"] == f'<{G}/mutate>; rel="successor-version"'


def test_an_idempotency_key_returns_the_first_receipt(client: httpx.Client, branch: str) -> None:
    headers = {"Idempotency-Key": "k"}
    body = {"query": 'query a() { insert City { name: "Bern" } }', "branch": branch}
    first = client.post(f"{G}/mutate", json=body, headers=headers)
    again = client.post(f"{G}/mutate", json=body, headers=headers)
    assert first.json() == again.json()
    other = {**body, "query": body["query"].replace("Bern", "Rome")}
    refused = client.post(f"{G}/mutate", json=other, headers=headers)
    assert (refused.status_code, refused.json()["reason"]) == (409, "idempotency_mismatch")


def test_conditional_writes(client: httpx.Client, branch: str) -> None:
    path = f"{G}/mutate/if-graph-commit"
    head = insert(client, branch, "Rome")["graph_commit_id"]
    body = {"query": 'query a() { insert City { name: "Bern" } }', "branch": branch}

    def attempt(value: object) -> httpx.Response:
        return client.post(path, json=body, headers={"Omnigraph-If-Graph-Commit": str(value)})

    assert attempt(head).status_code == 200
    lost = attempt(head)
    assert lost.status_code == 412
    assert "code" not in lost.json()
    failure = lost.json()["precondition_failure"]
    assert failure["expected"] == head
    assert failure["actual"] not in (None, head)
    nothing = {**body, "query": 'query q() { delete City where name = "Nowhere" }'}
    headers = {"Omnigraph-If-Graph-Commit": failure["actual"]}
    assert client.post(path, json=nothing, headers=headers).json()["commit"] is None


@pytest.mark.parametrize("value", [None, "", "*", '"A"', "W/A", "A,B"])
def test_a_condition_must_be_one_raw_commit_id(client: httpx.Client, value: str | None) -> None:
    headers = {} if value is None else {"Omnigraph-If-Graph-Commit": value}
    found = client.post(f"{G}/mutate/if-graph-commit", json={"query": "x"}, headers=headers)
    assert found.status_code == 400
    assert "Omnigraph-If-Graph-Commit" in found.json()["error"]


def test_a_condition_where_it_would_be_ignored(client: httpx.Client) -> None:
    headers = {"Omnigraph-If-Graph-Commit": "A"}
    for path in ("mutate", "change", "queries/x"):
        found = client.post(f"{G}/{path}", json={"query": "x"}, headers=headers)
        assert found.status_code == 400
        assert "if-graph-commit" in found.json()["remedy"]


def test_keys_that_exist_are_a_conflict_with_all_of_them(client: httpx.Client, branch: str) -> None:
    data = "".join(json.dumps({"type": "City", "data": {"name": f"c{n}"}}) + "\n" for n in range(3))
    where = {"branch": branch, "mode": "append"}
    headers = {"Content-Type": "application/x-ndjson"}
    first = client.post(f"{G}/load/ndjson", params=where, content=data, headers=headers)
    assert first.json()["nodes"] == [{"name": "City", "entities_loaded": 3}]
    assert "uri" not in first.json()
    again = client.post(f"{G}/load/ndjson", params=where, content=data, headers=headers)
    assert again.status_code == 409
    assert again.json()["key_conflict"]["type_name"] == "City"
    assert again.json()["details"]["total"] == 3


def test_a_load_creates_its_branch(client: httpx.Client) -> None:
    name = f"made{next(_numbers)}"
    body = {"data": '{"type": "City", "data": {"name": "Oslo"}}\n', "branch": name}
    missing = client.post(f"{G}/load", json=body)
    assert missing.status_code == 404
    assert missing.json()["error"] == f"branch '{name}' not found; pass `from` to create it"
    done = client.post(f"{G}/load", json={**body, "from": "main"}).json()
    assert (done["branch_created"], done["base_branch"]) == (True, "main")
    assert (done["mode"], done["uri"].endswith("people.omni")) == ("merge", True)
    again = client.post(f"{G}/ingest", json={**body, "from": "main"})
    assert again.json()["branch_created"] is False
    assert again.headers["link"] == f'<{G}/load>; rel="successor-version"'


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "City"}',
        '{"type": "City", "data": {"name": "a", "name": "b"}}',
        '{"type": "City", "data": {"name": "a"}, "other": 1}',
        '{"type": "Town", "data": {}}',
        '{"edge": "Knows", "from": "ana", "to": "nobody"}',
        "not json",
    ],
)
def test_a_strict_load_names_the_line(client: httpx.Client, branch: str, line: str) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    where = {"branch": branch, "mode": "merge"}
    found = client.post(f"{G}/load/ndjson", params=where, content=f"\n{line}\n", headers=headers)
    assert found.status_code == 400
    assert found.json()["details"]["violations"][0]["line"] == 2
    assert "omnigraph-body" not in found.text
    assert names(client, branch) == ["Oslo"]


def test_tables_are_loaded(client: httpx.Client, branch: str) -> None:
    sink = BytesIO()
    pq.write_table(pa.table({"town": ["Rome", "Bern"]}), sink)
    where = {"branch": branch, "mode": "append", "type": "City", "column": "town=name"}
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    done = client.post(f"{G}/load/table", params=where, content=sink.getvalue(), headers=headers)
    assert done.json()["total_entities"] == 2
    where = {"branch": branch, "mode": "upsert", "type": "City"}
    headers = {"Content-Type": "text/csv"}
    client.post(f"{G}/load/table", params=where, content=b"name\nLima\n", headers=headers)
    assert names(client, branch) == ["Bern", "Lima", "Oslo", "Rome"]


# -- branches, tags, merges ------------------------------------------------------------------------


def test_branches_with_slashes(client: httpx.Client) -> None:
    name, headers = f"etl/run-{next(_numbers)}", {"Idempotency-Key": f"b{next(_numbers)}"}
    body = {"name": name}
    made = client.post(f"{G}/branches", json=body, headers=headers)
    assert made.json()["from"] == "main"
    assert client.post(f"{G}/branches", json=body, headers=headers).json() == made.json()
    assert client.post(f"{G}/branches", json=body).status_code == 409
    assert name in client.get(f"{G}/branches").json()["branches"]
    path = f"{G}/branches/{quoted(name)}"
    assert client.patch(path, json={"protected": True}).json()["protected"] is True
    assert client.delete(path).status_code == 403
    assert client.patch(path, json={"protected": False}).json()["protected"] is False
    gone = {"Idempotency-Key": f"d{next(_numbers)}"}
    deleted = client.delete(path, headers=gone)
    assert deleted.json()["name"] == name
    assert client.delete(path, headers=gone).json() == deleted.json()
    assert client.delete(path).status_code == 404
    assert client.delete(f"{G}/branches/main").status_code == 400


def test_a_merge_and_its_repetition(client: httpx.Client, branch: str) -> None:
    source = f"{branch}-work"
    client.post(f"{G}/branches", json={"name": source, "from": branch})
    insert(client, source, "Rome")
    body = {"source": source, "target": branch, "delete_branch": True}
    preview = client.post(f"{G}/branches/merge", json={**body, "dry_run": True}).json()
    assert (preview["outcome"], len(preview["changes"])) == ("fast_forward", 1)
    headers = {"Idempotency-Key": f"m{next(_numbers)}"}
    done = client.post(f"{G}/branches/merge", json=body, headers=headers).json()
    assert (done["outcome"], done["branch_deleted"]) == ("fast_forward", True)
    assert names(client, branch) == ["Oslo", "Rome"]
    again = client.post(f"{G}/branches/merge", json=body, headers=headers).json()
    assert again["commit"] == done["commit"]


def test_a_merge_with_conflicts_and_its_resolution(client: httpx.Client, branch: str) -> None:
    source = f"{branch}-work"
    client.post(f"{G}/branches", json={"name": source, "from": branch})
    for where, age in ((branch, 1), (source, 2)):
        text = f'query q() {{ update Person set {{ age: {age} }} where name = "ana" }}'
        mutate(client, where, text)
    body = {"source": source, "target": branch}
    refused = client.post(f"{G}/branches/merge", json=body)
    (conflict,) = refused.json()["merge_conflicts"]
    assert (refused.status_code, conflict["kind"]) == (409, "divergent_update")
    assert (conflict["entity_kind"], conflict["entity_id"]) == ("node", "ana")
    decided = [{**conflict, "take": "theirs"}]
    done = client.post(f"{G}/branches/merge", json={**body, "resolutions": decided}).json()
    assert done["outcome"] == "merged"
    assert client.delete(f"{G}/branches/{quoted(source)}").status_code == 200


def test_tags(client: httpx.Client, branch: str) -> None:
    headers = {"Idempotency-Key": f"t{next(_numbers)}"}
    body = {"name": f"v/{next(_numbers)}", "target": "main"}
    made = client.post(f"{G}/tags", json=body, headers=headers).json()
    assert client.post(f"{G}/tags", json=body, headers=headers).json() == made
    assert client.post(f"{G}/tags", json=body).status_code == 409
    assert made in client.get(f"{G}/tags").json()["tags"]
    (listed,) = client.get(f"{G}/commits", params={"limit": 1}).json()["commits"]
    assert body["name"] in listed["tags"]
    assert client.delete(f"{G}/tags/{quoted(body['name'])}").json() == made
    assert client.delete(f"{G}/tags/{quoted(body['name'])}").status_code == 404


def test_undoing_and_repeating(client: httpx.Client, branch: str) -> None:
    before = insert(client, branch, "Rome")["graph_commit_id"]
    added = insert(client, branch, "Bern")["graph_commit_id"]
    headers = {"Idempotency-Key": "r"}
    body = {"commit": added, "branch": branch}
    done = client.post(f"{G}/revert", json=body, headers=headers).json()["commit"]
    assert (done["kind"], done["actor_id"]) == ("revert", "ana")
    assert client.post(f"{G}/revert", json=body, headers=headers).json()["commit"] == done
    assert names(client, branch) == ["Oslo", "Rome"]
    picked = client.post(f"{G}/cherry-pick", json=body).json()["commit"]
    assert picked["kind"] == "cherry_pick"
    keyed = {"Idempotency-Key": "z"}
    body = {"target": before, "branch": branch}
    reset = client.post(f"{G}/reset", json=body, headers=keyed).json()["commit"]
    assert client.post(f"{G}/reset", json=body, headers=keyed).json()["commit"] == reset
    assert names(client, branch) == ["Oslo", "Rome"]
    body = {"target": added, "branch": branch, "only": {"node:City": ["Bern"]}}
    assert client.post(f"{G}/restore", json=body).json()["commit"]["kind"] == "restore"
    assert names(client, branch) == ["Bern", "Oslo", "Rome"]


# -- history ---------------------------------------------------------------------------------------


def test_commits_in_pages(client: httpx.Client, branch: str) -> None:
    made = [insert(client, branch, name)["graph_commit_id"] for name in ("a", "b", "c")]
    where: dict[str, object] = {"branch": branch}
    everything = client.get(f"{G}/commits", params=where).json()
    assert "next_after" not in everything
    listed = [item["graph_commit_id"] for item in everything["commits"]]
    assert listed[:3] == made[::-1]
    page = client.get(f"{G}/commits", params={**where, "limit": 2}).json()
    assert page["next_after"] == listed[1]
    after = {**where, "limit": 2, "after": page["next_after"]}
    assert (
        client.get(f"{G}/commits", params=after).json()["commits"][0]["graph_commit_id"]
        == (listed[2])
    )
    by = client.get(f"{G}/commits", params={**where, "actor": "nobody"}).json()
    assert by == {"commits": []}


def test_changes_of_a_commit_and_of_the_feed(client: httpx.Client, branch: str) -> None:
    start = client.get(f"{G}/changes", params={"branch": branch}).json()
    assert (start["blocks"], start["caught_up"]) == ([], True)
    commit = insert(client, branch, "Rome")["graph_commit_id"]
    page = client.get(f"{G}/commits/{commit}/changes").json()
    assert page["cause"]["graph_commit_id"] == commit
    (change,) = page["changes"]
    assert (change["op"], change["id"], "before" in change) == ("insert", "Rome", False)
    feed = client.get(f"{G}/changes", params={"branch": branch, "cursor": start["cursor"]}).json()
    assert feed["blocks"][0]["changes"] == [change]
    other = client.get(f"{G}/changes", params={"branch": "main", "cursor": start["cursor"]})
    assert other.status_code == 400
    assert other.json()["error"].startswith("the cursor or page token cannot be used: ")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 400),
        ("limit=9000", 413),
        ("limit=x", 400),
        ("start=now&cursor=x", 400),
        ("limit=1&limit=2", 400),
        ("unknown=1", 400),
        ("kind=table", 400),
        ("kind=node&kind=edge", 200),
        ("branch=nowhere", 404),
    ],
)
def test_parameters_of_the_feed(client: httpx.Client, query: str, status: int) -> None:
    assert client.get(f"{G}/changes?{query}").status_code == status


def test_the_first_commit_has_no_changes_to_show(client: httpx.Client) -> None:
    first = client.get(f"{G}/commits").json()["commits"][-1]["graph_commit_id"]
    found = client.get(f"{G}/commits/{first}/changes")
    assert found.status_code == 409
    assert found.json()["change_diff_refusal"]["reason"] == "parentless_commit"


def test_a_baseline_ends_with_its_cursor(client: httpx.Client, branch: str) -> None:
    found = client.post(f"{G}/changes/baseline", json={"branch": f" {branch} ", "type": ["City"]})
    *records, last = [json.loads(line) for line in found.text.splitlines()]
    assert [item["type"] for item in records] == ["City"]
    cursor = last["baseline"]["resume_cursor"]
    insert(client, branch, "Rome")
    where = {"branch": branch, "cursor": cursor, "type": "City"}
    assert len(client.get(f"{G}/changes", params=where).json()["blocks"]) == 1


def test_the_feed_as_events(client: httpx.Client, server: object, branch: str) -> None:
    start = client.get(f"{G}/changes", params={"branch": branch}).json()["cursor"]
    insert(client, branch, "Rome")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": start}
    with server.client() as plain:  # type: ignore[attr-defined]
        where = {"branch": branch}
        with plain.stream("GET", f"{G}/changes", params=where, headers=headers) as events:
            assert events.headers["content-type"] == "text/event-stream"
            lines = events.iter_lines()
            assert next(lines) == "event: commit"
            assert json.loads(next(lines).removeprefix("data: "))["changes"][0]["id"] == "Rome"
            assert [next(lines) for _ in range(2)] == ["", "event: cursor"]
            assert next(lines).startswith("id: ")
            insert(client, branch, "Bern")
            assert any("Bern" in line for line in itertools.islice(lines, 8))


def test_differences(client: httpx.Client, branch: str) -> None:
    insert(client, branch, "Rome")
    where = {"from": "main", "to": branch, "type": "City"}
    body = client.get(f"{G}/diff", params=where).json()
    assert [(item["op"], item["id"]) for item in body["changes"]] == [("insert", "Rome")]
    summary = client.get(f"{G}/diff", params={**where, "summary": "true"}).json()
    assert summary["stats"]["inserts"] == 1
    since = client.get(f"{G}/diff", params={**where, "from_merge_base": "true"}).json()
    assert since["changes"] == body["changes"]
    lines = client.get(f"{G}/diff", params=where, headers={"Accept": "application/x-ndjson"})
    head, change = map(json.loads, lines.text.splitlines())
    assert "from_graph_manifest_version" in head
    assert change == body["changes"][0]
    assert client.get(f"{G}/diff", params={"from": "main"}).status_code == 400
    assert client.get(f"{G}/diff", params={"from": "main", "to": "no"}).status_code == 404


def test_history_and_blame_of_an_entity(client: httpx.Client, branch: str) -> None:
    text = 'query q() { update Person set { age: 7 } where name = "bo" }'
    commit = mutate(client, branch, text).json()["commit"]["graph_commit_id"]
    path = f"{G}/entities/node/Person"
    where = {"id": "bo", "branch": branch}
    events = client.get(f"{path}/history", params=where).json()["events"]
    assert [event["op"] for event in events] == ["update", "insert"]
    found = client.get(f"{path}/blame", params=where).json()["properties"]
    assert {item["property"]: item["commit"]["graph_commit_id"] for item in found}["age"] == commit
    assert client.get(f"{path}/history", params={"id": "nobody"}).status_code == 404
    assert client.get(f"{path}/history").status_code == 400


def test_analytics(client: httpx.Client) -> None:
    body = {"algorithm": "degrees", "limit": 1}
    found = client.post(f"{G}/analyze", json=body).json()
    assert found["algorithm"] == "degrees"
    assert len(found["top"]) == 1
    assert client.post(f"{G}/analyze", json={"algorithm": "no"}).status_code == 400


def test_there_are_no_stored_queries_yet(client: httpx.Client) -> None:
    assert client.get(f"{G}/queries").json() == {"queries": []}
    found = client.post(f"{G}/queries/any", json={})
    assert (found.status_code, found.json()["error"]) == (404, "stored query not found")
    assert client.post(f"{G}/queries/any").status_code == 404


def test_the_document_describes_every_route(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["paths"][f"{G.replace('people', '{graph_id}')}/read"]["post"]["deprecated"]
    ids = [op["operationId"] for path in document["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    assert set(UPSTREAM_IDS) <= set(ids)


UPSTREAM_IDS = re.findall(
    r"\w+",
    """health listGraphs cluster_getSnapshot cluster_getBlob cluster_headBlob cluster_read
    cluster_query cluster_export cluster_change cluster_mutate cluster_mutate_if_graph_commit
    cluster_list_queries cluster_invoke_query cluster_invoke_query_if_graph_commit
    cluster_applySchema cluster_getSchema cluster_load cluster_loadNdjson cluster_ingest
    cluster_listBranches cluster_createBranch cluster_deleteBranch cluster_mergeBranches
    cluster_listCommits cluster_getCommit cluster_getCommitChanges cluster_pollChanges
    cluster_captureChangeBaseline""",
)
