"""What a hostile client may try: paths, tokens, bombs, slowness, queries without end."""

from __future__ import annotations

import gzip
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import zstandard

import omnigraph
from omnigraph.server.http.operation import Operation
from omnigraph.server.routes.inventory import OPERATIONS
from tests.support.http_contract import check_response
from tests.support.http_server import TOKENS, RunningServer, running

G = "/graphs/people"
TRAVERSALS = ("../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/", "a\0b", "/etc/passwd")
IDLE = int(os.environ.get("OMNIGRAPH_TEST_SERVER_IDLE", "200"))
SLOW = int(os.environ.get("OMNIGRAPH_TEST_SERVER_SLOW", "30"))
NODES = 2_500
FOR_EVER = """
query q() {
  match { $a: P  $b: P  $a.text contains $b.text }
  return { count($a) as n }
}
"""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: item.operation_id)
def test_no_route_answers_without_a_token(server: RunningServer, operation: Operation) -> None:
    path = operation.path.replace("{graph_id}", "people").replace(":path}", "}")
    for name in ("branch", "tag", "commit_id", "name", "entity", "type"):
        path = path.replace(f"{{{name}}}", "x")
    with server.client(None) as client:
        found = client.request(operation.method, path)
    if operation.action is None:
        assert found.status_code == 200
    else:
        assert found.status_code == 401
        assert operation.method == "HEAD" or found.json()["code"] == "unauthorized"


@pytest.mark.parametrize("place", TRAVERSALS)
def test_paths_in_paths_and_parameters_lead_nowhere(server: RunningServer, place: str) -> None:
    with server.client(event_hooks={"response": [check_response]}) as client:
        for operation in OPERATIONS:
            pattern = operation.path.replace(":path}", "}")
            for name in [part.split("}")[0] for part in pattern.split("{")[1:]]:
                path = pattern.replace(f"{{{name}}}", httpx.QueryParams({"x": place})["x"])
                path = path.replace("{graph_id}", "people")
                for other in ("branch", "tag", "commit_id", "name", "entity", "type"):
                    path = path.replace(f"{{{other}}}", "x")
                found = client.request(operation.method, path.replace("\0", "%00"))
                assert found.status_code < 500, (operation.operation_id, path, found.text)
                assert "root:" not in found.text
            for parameter in operation.parameters:
                if parameter.place != "query" or operation.method != "GET":
                    continue
                path = pattern.replace("{graph_id}", "people")
                for other in ("commit_id", "entity", "type"):
                    path = path.replace(f"{{{other}}}", "node")
                found = client.get(path, params={parameter.name: place})
                assert found.status_code < 500, (path, parameter.name, found.text)
                assert "root:" not in found.text


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with small limits, on a graph with blobs and with enough nodes to be slow."""
    folder = tmp_path_factory.mktemp("security")
    schema = (
        "node P { name: String @key  text: String }\nnode Doc { name: String @key  data: Blob? }"
    )
    graph = omnigraph.init(folder / "g", schema)
    rows = [{"type": "P", "data": {"name": f"n{n}", "text": f"{n:06}" * 20}} for n in range(NODES)]
    graph.load(rows, mode="append")
    limits = {
        "OMNIGRAPH_SERVER_READ_THREADS": "2",
        "OMNIGRAPH_SERVER_QUEUE_MAX": "2",
        "OMNIGRAPH_SERVER_BULK_BODY_BYTES_MAX": str(4 << 20),
        "OMNIGRAPH_SERVER_BODY_TIMEOUT_SECONDS": "2",
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "2",
    }
    with running(folder, ["g"], {**TOKENS, **limits}) as found:
        yield found


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "/etc/passwd",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:1/",
        "https://example.org/redirect",
        "s3://bucket/key",
    ],
)
def test_external_blobs_are_refused(guarded: RunningServer, uri: str) -> None:
    with guarded.client() as client:
        text = 'query q($u: Blob) { insert Doc { name: "d", data: $u } }'
        body = {"query": text, "params": {"u": uri}}
        found = client.post("/graphs/g/mutate", json=body)
        assert (found.status_code, found.json()["code"]) == (400, "bad_request")
        record = f'{{"type": "Doc", "data": {{"name": "d", "data": "{uri}"}}}}\n'
        headers = {"Content-Type": "application/x-ndjson"}
        loaded = client.post("/graphs/g/load/ndjson", content=record, headers=headers)
        assert (loaded.status_code, loaded.json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
def test_a_compressed_bomb_is_refused_by_its_real_size(
    guarded: RunningServer, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    headers = {"Content-Encoding": encoding}
    with guarded.client() as client:
        small = compress(b'{"query": "query q() { match { $p: P } return { count($p) as n } }"}')
        json_headers = {**headers, "Content-Type": "application/json"}
        good = client.post("/graphs/g/query", content=small, headers=json_headers)
        assert good.json()["rows"] == [{"n": NODES}]
        bomb = compress(b" " * (64 << 20))
        assert len(bomb) < 1 << 20
        found = client.post("/graphs/g/query", content=bomb, headers=json_headers)
        assert found.status_code == 413
        assert found.json()["resource_limit"]["limit"] == 1 << 20
        bulk = {**headers, "Content-Type": "application/x-ndjson"}
        assert client.post("/graphs/g/load/ndjson", content=bomb, headers=bulk).status_code == 413
        cut = client.post("/graphs/g/query", content=small[:-4], headers=json_headers)
        assert cut.status_code == 400
        wrong = client.post("/graphs/g/query", content=b"\0\1\2\3", headers=json_headers)
        assert wrong.status_code == 400


def test_a_body_beyond_its_limit_is_refused_however_it_is_sent(guarded: RunningServer) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    size = 8 << 20
    with guarded.client() as client:
        declared = client.post("/graphs/g/load/ndjson", content=b" " * size, headers=headers)
        chunks = itertools.repeat(b" " * (1 << 16), size >> 16)
        streamed = client.post("/graphs/g/load/ndjson", content=iter(chunks), headers=headers)
    for found in (declared, streamed):
        assert found.status_code == 413
        assert found.json()["resource_limit"]["resource"] == "graph_batch_request_bytes"


def raw(server: RunningServer) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def test_idle_and_slow_connections_do_not_stop_the_service(guarded: RunningServer) -> None:
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(raw(guarded))
        for n in range(SLOW):
            slow = stack.enter_context(raw(guarded))
            slow.sendall(b"POST /graphs/g/query HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * n)
        with guarded.client() as client:
            text = "query q() { match { $p: P } return { count($p) as n } }"
            found = client.post("/graphs/g/query", json={"query": text})
            assert found.json()["rows"] == [{"n": NODES}]


def test_a_body_that_stops_is_given_up(guarded: RunningServer) -> None:
    with raw(guarded) as slow:
        head = (
            "POST /graphs/g/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer secret-of-ana\r\nContent-Length: 100\r\n\r\n{"
        )
        slow.sendall(head.encode())
        answer = slow.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"body_timeout"' in answer


def test_endless_headers_are_refused(guarded: RunningServer) -> None:
    with raw(guarded) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(OSError):
            for n in range(1_000):
                client.sendall(b"X-%d: %s\r\n" % (n, b"a" * 1_000))
                time.sleep(0.001)
            raise AssertionError("a megabyte of headers was taken")


def test_a_long_url_is_refused(guarded: RunningServer) -> None:
    with guarded.client() as client:
        found = client.get("/graphs/g/changes", params={"type": "x" * 20_000})
    assert found.status_code == 404


def calls_running(server: RunningServer) -> float:
    text = httpx.get(f"{server.url}/metrics", timeout=60).text
    line = next(line for line in text.splitlines() if 'engine_calls{pool="reads"}' in line)
    return float(line.rpartition(" ")[2])


def wait_until_idle(server: RunningServer, within_s: float) -> None:
    ends = time.monotonic() + within_s
    # The scrape itself is one call.
    while calls_running(server) > 1:
        assert time.monotonic() < ends, "a thread is still busy"
        time.sleep(0.05)


def test_a_query_without_end_is_stopped_by_its_time_out(guarded: RunningServer) -> None:
    started = time.monotonic()
    with guarded.client() as client:
        headers = {"Omnigraph-Timeout-Ms": "300"}
        found = client.post("/graphs/g/query", json={"query": FOR_EVER}, headers=headers)
    assert (found.status_code, found.json()["reason"]) == (408, "query_timeout")
    assert time.monotonic() - started < 30
    wait_until_idle(guarded, 20)


def test_a_query_without_end_is_stopped_when_its_client_goes_away(guarded: RunningServer) -> None:
    with guarded.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/graphs/g/query", json={"query": FOR_EVER}, timeout=0.3)
    wait_until_idle(guarded, 20)
    ends = time.monotonic() + 20
    while '"status":499' not in guarded.lines():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_tokens_and_paths_are_in_no_refusal(server: RunningServer, tmp_path: Path) -> None:
    with server.client() as client:
        listed = client.get("/graphs").json()["graphs"][0]["uri"]
        for found in (
            client.get(f"{G}/snapshot", params={"branch": "no"}),
            client.get(f"{G}/commits/x"),
            client.post(f"{G}/query", json={"query": "x"}),
        ):
            assert str(Path(listed).parent) not in found.text
