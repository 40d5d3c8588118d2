"""The recovery verbs: what is pending is shown truthfully, and recover resolves it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Program
from tests.graphs import people_graph

from omnigraph.storage import failpoints

WRITE = """
import omnigraph, sys
with omnigraph.open(sys.argv[1]).write(actor="unlucky") as w:
    w.insert("City", {"name": "Rome"})
"""


def _die(where: Path, failpoint: str) -> None:
    environment = {**os.environ, failpoints.ENVIRONMENT: f"{failpoint}=kill"}
    command = [sys.executable, "-c", WRITE, str(where)]
    assert subprocess.run(command, env=environment, check=False).returncode == -9


def test_pending_writes_are_listed_and_recovered(omnigraph: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    _die(tmp_path / "g", "publish.before_commit")
    listed = omnigraph("recovery", "list", "g", "--json").json
    (pending,) = listed["pending"]
    assert (pending["state"], pending["actor_id"]) == ("abandoned", "unlucky")
    assert "rolled forward" in pending["outlook"]
    assert "abandoned" in omnigraph("recovery", "list", "g").out  # looking changed nothing
    done = omnigraph("recover", "g", "--json")
    assert [r["action"] for r in done.json["resolved"]] == ["rolled_forward"]
    assert "nothing to recover" in omnigraph("recover", "g").out
    after = omnigraph("recovery", "list", "g", "--json").json
    assert after["pending"] == []
    assert [r["operation_id"] for r in after["finished"]] == [pending["operation_id"]]
    commits = omnigraph("commit", "list", "g", "--filter", "actor=omnigraph:recovery", "--json")
    assert [c["graph_commit_id"] for c in commits.json["commits"]] == [pending["operation_id"]]


def test_an_unreadable_record_is_named_and_set_aside_on_request(
    omnigraph: Program, tmp_path: Path
) -> None:
    people_graph(tmp_path / "g")
    _die(tmp_path / "g", "table.after_commit")
    (record,) = (tmp_path / "g" / "__recovery" / "main").glob("*.json")
    record.write_text("{")
    refused = omnigraph("recover", "g")
    assert refused.code == 1
    assert record.name in refused.out
    assert "--set-aside" in refused.out
    done = omnigraph("recover", "g", "--set-aside", "--json")
    assert done.code == 0
    assert done.json["set_aside"] == [f"__recovery/main/{record.name}"]
    assert omnigraph("recovery", "list", "g", "--json").json["pending"] == []
