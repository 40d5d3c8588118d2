"""Requests made from the OpenAPI document: no 5xx, no undocumented status, no wrong body.

``OMNIGRAPH_TEST_SERVER_REQUESTS`` is how many to make at least (`make serving-stress`: 20,000).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.graphs import people_graph
from tests.support.http_server import TOKEN, running

REQUESTS = int(os.environ.get("OMNIGRAPH_TEST_SERVER_REQUESTS", "200"))
SEED = os.environ.get("OMNIGRAPH_TEST_SERVER_SEED", "7")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
CONFIG = """
hooks = "serializers.py"

[parameters]
"path.graph_id" = "people"
"""
SERIALIZERS = """
import json
import schemathesis


@schemathesis.serializer("application/x-ndjson")
def ndjson(ctx, value):
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


@schemathesis.serializer("application/vnd.apache.parquet")
def parquet(ctx, value):
    return ndjson(ctx, value)


@schemathesis.serializer("text/event-stream")
def events(ctx, value):
    return ndjson(ctx, value)
"""
QUICK = "coverage" if REQUESTS < 1_000 else "coverage,fuzzing,stateful"


def test_requests_made_from_the_document(tmp_path: Path) -> None:
    people_graph(tmp_path / "people")
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    (tmp_path / "serializers.py").write_text(SERIALIZERS)
    environment = {
        "OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN,
        "OMNIGRAPH_SERVER_LOG": "warning",
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "64",
    }
    with running(tmp_path, ["people"], environment) as server:
        made = 0
        rounds = 0
        while made < REQUESTS:
            made += run(tmp_path, server.url, rounds)
            rounds += 1
    assert '"level":"error"' not in server.lines()


def run(folder: Path, url: str, number: int) -> int:
    """One run of the generator; returns how many requests it made."""
    words = [
        *("run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}"),
        *("--checks", ",".join(CHECKS), "--phases", QUICK, "--seed", f"{int(SEED) + number}"),
        *("--max-examples", "40", "--request-timeout", "60", "--suppress-health-check", "all"),
        *("--warnings", "off", "--exclude-operation-id", "cluster_deleteBranch"),
    ]
    if QUICK == "coverage":
        words += ["--include-method", "GET"]
    program = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    found = re.search(r"([\d,]+) generated", done.stdout)
    assert found is not None, done.stdout[-2_000:]
    return int(found[1].replace(",", ""))
