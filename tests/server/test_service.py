"""The server itself: what needs no graph, how it starts and stops, and its error body."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.graphs import people_graph
from tests.support.http_server import TOKENS, RunningServer, command, running

ENVELOPE = {"error", "code", "reason", "remedy", "retryable"}


def test_health_is_what_clients_of_the_api_expect(client: httpx.Client) -> None:
    found = client.get("/healthz")
    body = found.json()
    assert (found.status_code, body["status"]) == (200, "ok")
    assert body["version"].startswith("0.10.")
    assert body["internal_schema_version"] == 6
    assert found.headers["cache-control"] == "no-store"


def test_head_of_health_has_no_body_and_names_the_version_that_was_asked_for(
    client: httpx.Client,
) -> None:
    found = client.head("/healthz", headers={"Omnigraph-Http-Api": "0.13"})
    assert (found.status_code, found.content) == (200, b"")
    assert found.headers.get_list("omnigraph-http-api") == ["0.13"]
    assert "omnigraph-http-api" not in client.head("/healthz").headers


def test_readiness_counts_the_graphs(client: httpx.Client) -> None:
    body = client.get("/readyz").json()
    assert body["ready"] is True
    assert (body["served_graph_count"], body["loading_graph_count"]) == (1, 0)


def test_the_list_of_graphs(client: httpx.Client) -> None:
    (graph,) = client.get("/graphs").json()["graphs"]
    assert graph["graph_id"] == "people"
    assert graph["state"] == "ready"


def test_request_ids_are_taken_over_or_made(client: httpx.Client) -> None:
    given = client.get("/healthz", headers={"X-Request-Id": "trace-1"})
    assert given.headers["x-request-id"] == "trace-1"
    made = client.get("/healthz", headers={"X-Request-Id": "two words"})
    assert made.headers["x-request-id"] not in ("", "two words")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/graphs/people", 404, "not_found"),
        ("GET", "/graphs/people/snapshot/", 404, "not_found"),
        ("PUT", "/healthz", 405, "method_not_allowed"),
        ("GET", "/graphs/people/query", 405, "method_not_allowed"),
        ("POST", "/graphs/other/query", 404, "not_found"),
        ("POST", "/graphs/a_b/query", 400, "bad_request"),
        ("POST", "/graphs/healthz/query", 400, "bad_request"),
    ],
)
def test_whatever_is_refused_has_the_same_body(
    client: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    found = client.request(method, path, json={"query": "q"})
    body = found.json()
    assert (found.status_code, body["code"]) == (status, code)
    assert body.keys() >= ENVELOPE
    assert found.headers["content-type"] == "application/json"
    assert ("allow" in found.headers) == (status == 405)


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "application/json"}, b"{", 400),
        ({"Content-Type": "application/json"}, b"[]", 400),
        ({"Content-Type": "application/json"}, b'{"query": 1}', 400),
        ({"Content-Type": "application/json"}, b'{"query": "x", "other": 1}', 400),
        ({"Content-Type": "application/json"}, b'{"query": "\xff"}', 400),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({"Content-Type": "application/json", "Content-Encoding": "br"}, b"{}", 415),
        ({"Content-Type": "application/json"}, b" " * (1 << 20) + b"{}", 413),
    ],
)
def test_a_body_that_is_no_request(
    client: httpx.Client, headers: dict[str, str], content: bytes, status: int
) -> None:
    found = client.post("/graphs/people/query", content=content, headers=headers)
    assert found.status_code == status
    assert found.json()["code"] == "bad_request"


@pytest.mark.parametrize("version", ["0.9", "0.14", "1", "0.10, 0.13", ""])
def test_another_version_of_the_api_is_refused(client: httpx.Client, version: str) -> None:
    found = client.get("/graphs", headers={"Omnigraph-Http-Api": version})
    assert (found.status_code, found.json()["code"]) == (400, "api_contract_mismatch")


def test_a_stop_is_graceful(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    with running(tmp_path, ["g"]) as server:
        assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
        assert server.stop() == 0


def test_one_line_on_stdout_and_a_token_on_stderr(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    with running(tmp_path, ["people=g"], {}) as server:
        said = server.lines()
        token = said.partition("token of this run: ")[2].split()[0]
        with server.client(token) as client:
            assert client.get("/graphs").json()["graphs"][0]["graph_id"] == "people"


def test_with_several_workers_metrics_are_those_of_all(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    with running(tmp_path, ["g", "--workers", "2"]) as server:
        for _ in range(20):  # a new connection each: the workers share them
            assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
        line = 'omnigraph_http_requests_total{method="GET",route="/healthz",status="200"}'
        assert f"{line} 20.0" in httpx.get(f"{server.url}/metrics", timeout=60).text
        assert server.stop() == 0


def test_what_it_cannot_start_with_is_said_on_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        command("nothing", "--json"), capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "these graphs cannot be opened: nothing"


def test_tokens_are_in_no_log(server: RunningServer) -> None:
    (text,) = TOKENS.values()
    assert all(token not in server.lines() for token in json.loads(text).values())
