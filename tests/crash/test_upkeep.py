"""Six processes write, read, optimize, index and clean up at once: no error but typed conflicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crash.upkeep_worker import BRANCHES
from tests.support.children import child_environment
from tests.support.crash_writers import make_graph, rows
from tests.support.promises import Expected, broken_promises

import omnigraph

SECONDS = float(os.environ.get("OMNIGRAPH_UPKEEP_SECONDS", "600"))
ENDING_S_MAX = 120.0
READER_GRACE_S = "10"  # no single read of the test takes nearly as long
NAMES = ("write.1", "write.2", "write.3", "read.1", "optimize.1", "cleanup.1")


@pytest.mark.crash
def test_writers_and_readers_keep_working_while_a_graph_is_maintained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = make_graph(str(tmp_path / "g"))
    graph.branches.create("side")
    environment = child_environment(OMNIGRAPH_READER_GRACE_SECONDS=READER_GRACE_S)
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.upkeep_worker", graph.uri, name, str(SECONDS)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    ]
    told = []
    for child in children:
        out, err = child.communicate(timeout=SECONDS + ENDING_S_MAX)
        assert child.returncode == 0, err[-2_000:]
        told.append(json.loads(out))
    with capsys.disabled():
        for one in told:
            print(f"\n{one['name']}: {one['done']} done, {one['refused']} refused", end="")
    assert all(one["done"] for one in told)
    fresh = omnigraph.open(graph.uri)
    for branch in BRANCHES:
        expected: dict[str, int] = {}
        for one in told:
            expected |= one["model"][branch]
        people = {row["id"]: row["age"] for row in rows(fresh, "node:Person", branch)}
        assert {name: age for name, age in people.items() if name.startswith("write.")} == expected
    assert fresh.maintenance.check().findings == []
    undone = frozenset(
        one["operation_id"] for one in fresh.maintenance.recoveries()
    )  # and tried again
    assert broken_promises(graph.uri, Expected(recovered=undone)) == []
