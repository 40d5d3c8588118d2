"""Metrics, logs, the slow-query log, traces, graphs that cannot be served, TLS."""

from __future__ import annotations

import datetime
import ipaddress
import json
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.graphs import people_graph
from tests.support.http_server import TOKENS, RunningServer, running

QUERY = {"query": "query q() { match { $p: Person } return { $p.name } }"}
INSERT = {"query": 'query q() { insert City { name: "Rome" } }'}
STALE = {"Omnigraph-If-Graph-Commit": "0" * 26}


def lines(server: RunningServer, logger: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in server.lines().splitlines() if line.startswith("{")]
    return [item for item in found if item["logger"] == logger]


def test_what_a_request_leaves_behind(tmp_path: Path) -> None:
    """One server: its metrics, its log, its slow queries, and a graph that is broken."""
    people_graph(tmp_path / "people")
    people_graph(tmp_path / "broken")
    shutil.rmtree(tmp_path / "broken" / "__manifest")
    environment = {**TOKENS, "OMNIGRAPH_SERVER_SLOW_QUERY_MS": "1"}
    with running(tmp_path, ["people", "broken"], environment) as server:
        with server.client() as client:
            client.post("/graphs/people/query", json=QUERY, headers={"X-Request-Id": "first"})
            done = client.post("/graphs/people/mutate", json=INSERT).json()
            path = "/graphs/people/mutate/if-graph-commit"
            assert client.post(path, json=INSERT, headers=STALE).status_code == 412
            blocked = client.post("/graphs/broken/query", json=QUERY)
            listed = client.get("/graphs").json()["graphs"]
            ready = client.get("/readyz").json()
            metrics = client.get("/metrics").text
        log = lines(server, "omnigraph.server.access")
        slow = lines(server, "omnigraph.server.slow")

    assert (blocked.status_code, blocked.json()["code"]) == (503, "graph_unavailable")
    assert blocked.headers["retry-after"]
    assert [(item["graph_id"], item["state"]) for item in listed] == [
        ("broken", "blocked"),
        ("people", "ready"),
    ]
    assert (ready["ready"], ready["status"], ready["blocked_graph_count"]) == (True, "degraded", 1)

    assert 'omnigraph_commits_total{graph="people"} 1.0' in metrics
    conflict = 'omnigraph_conflicts_total{graph="people",reason="precondition_failed"} 1.0'
    assert conflict in metrics
    route = 'method="POST",route="/graphs/{graph_id}/query"'
    assert f'omnigraph_http_requests_total{{{route},status="200"}} 1.0' in metrics
    assert f"omnigraph_http_request_seconds_count{{{route}}} 2.0" in metrics
    for name in ("engine_calls", "engine_cache_bytes", "writes_in_flight", "recoveries_total"):
        assert f"omnigraph_{name}" in metrics

    first = next(item for item in log if item["request_id"] == "first")
    assert (first["status"], first["actor"], first["graph"]) == (200, "ana", "people")
    wrote = next(item for item in log if item["route"].endswith("/mutate"))
    assert wrote["commit"] == done["commit"]["graph_commit_id"]
    lost = next(item for item in log if item["status"] == 412)
    assert lost["reason"] == "precondition_failed"

    assert slow[0]["request_id"] == "first"
    assert slow[0]["plan"]
    assert "Person" in slow[0]["query"]


def test_a_server_that_needs_every_graph_does_not_start_without_one(tmp_path: Path) -> None:
    people_graph(tmp_path / "people")
    environment = {**TOKENS, "OMNIGRAPH_REQUIRE_ALL_GRAPHS": "true"}
    server = running(tmp_path, ["people", "nothing"], environment)
    with pytest.raises(AssertionError, match="did not start"), server:
        raise RuntimeError("it started")


def certificate(folder: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_tls(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    chain, key = certificate(tmp_path)
    with running(tmp_path, ["g", "--tls-cert", chain, "--tls-key", key]) as server:
        url = server.url.replace("http:", "https:")
        ends = time.monotonic() + 20
        while True:  # the port is announced just before the server accepts
            try:
                assert httpx.get(f"{url}/healthz", verify=chain).status_code == 200
                break
            except httpx.ConnectError:
                assert time.monotonic() < ends
                time.sleep(0.05)
