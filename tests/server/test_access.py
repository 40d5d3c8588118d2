"""Who is let in: tokens, run states, and that nothing is open by accident."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from tests.graphs import people_graph
from tests.support.http_server import TOKEN, RunningServer, running

QUERY = {"query": "query q() { match { $p: Person } return { $p.name } }"}
INSERT = {"query": 'query q() { insert City { name: "Rome" } }'}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "missing bearer token"),
        ([f"bearer {TOKEN}"], "missing bearer token"),
        ([f"Bearer  {TOKEN}"], "invalid bearer token"),
        ([f"Bearer {TOKEN}x"], "invalid bearer token"),
        ([f"Bearer {TOKEN[:-1]}"], "invalid bearer token"),
        (["Basic YTpi"], "missing bearer token"),
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], "missing bearer token"),
    ],
)
def test_only_a_valid_token_is_let_in(server: RunningServer, given: list[str], says: str) -> None:
    with server.client(None) as client:
        headers = [("Authorization", value) for value in given]
        found = client.get("/graphs", headers=headers)
    assert (found.status_code, found.json()["error"]) == (401, says)
    assert found.headers["www-authenticate"] == "Bearer"


def test_the_actor_is_the_one_of_the_token_whatever_is_claimed(server: RunningServer) -> None:
    with server.client("secret-of-bo") as client:
        headers = {"X-Actor": "root", "Omnigraph-Actor": "root", "From": "root@example.org"}
        text = 'query q() { update Person set { age: 31 } where name = "ana" }'
        done = client.post("/graphs/people/mutate", json={"query": text}, headers=headers).json()
        assert done["actor_id"] == done["commit"]["actor_id"] == "bo"
        refused = client.post("/graphs/people/mutate", json={"query": text, "actor": "root"})
        assert refused.status_code == 400


def states(folder: Path, words: list[str], environment: dict[str, str]) -> dict[str, int]:
    """The statuses of a read, a write and the list of graphs, with and without a token."""
    found = {}
    with running(folder, ["g", *words], environment) as server:
        for who, token in (("token", "t"), ("nobody", None)):
            with server.client(token) as client:
                found[f"read {who}"] = client.post("/graphs/g/query", json=QUERY).status_code
                found[f"write {who}"] = client.post("/graphs/g/mutate", json=INSERT).status_code
                found[f"list {who}"] = client.get("/graphs").status_code
    return found


ONE_TOKEN = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["--policy", "none", "--unauthenticated"], {}, [200, 200, 403, 200, 200, 403]),
        (["--policy", "none"], ONE_TOKEN, [200, 403, 403, 401, 401, 401]),
        ([], ONE_TOKEN, [200, 200, 200, 401, 401, 401]),
        (["--read-only"], ONE_TOKEN, [200, 403, 200, 401, 401, 401]),
        (["--unauthenticated"], {}, [200, 200, 200, 200, 200, 200]),
        (["--unauthenticated", "--read-only"], {}, [200, 403, 200, 200, 403, 200]),
    ],
    ids=["open", "default-deny", "policy", "read-only", "unauthenticated", "open and read-only"],
)
def test_run_states(
    tmp_path: Path, words: list[str], environment: dict[str, str], expected: list[int]
) -> None:
    graph = people_graph(tmp_path / "g")
    assert list(states(tmp_path, words, environment).values()) == expected
    writer = graph.history.commits(limit=1)[0].actor
    assert writer in (None, "default")


def test_tokens_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"ana": "one"}))
    with running(tmp_path, ["g"], {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file)}) as server:
        assert status(server, "one") == 200
        file.write_text(json.dumps({"ana": "two", "bo": "three"}))
        wait_for(server, "two", 200)
        assert (status(server, "one"), status(server, "three")) == (401, 200)
        file.write_text("{")
        time.sleep(1.2)  # longer than the interval in which the file is looked at
        assert status(server, "two") == 200
        assert "the former tokens stay in force" in server.lines()


def status(server: RunningServer, token: str) -> int:
    found = httpx.get(f"{server.url}/graphs", headers={"Authorization": f"Bearer {token}"})
    return found.status_code


def wait_for(server: RunningServer, token: str, expected: int) -> None:
    ends = time.monotonic() + 20
    while status(server, token) != expected:
        assert time.monotonic() < ends
        time.sleep(0.05)
