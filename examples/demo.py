"""The main features, end to end. Run it with ``make demo``.

Every step prints the command a user would type, runs it and shows its output. The graph is in a
temporary directory.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("knowledge.pg", "knowledge.gq", "make_knowledge.py")
GRAPH = ("--uri", "kb")


def main() -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            (Path(folder) / name).write_bytes((HERE / name).read_bytes())
        os.chdir(folder)
        load_on_spark()
        query()
        change_branches()
        review_and_merge()
        time_travel()
        kill_a_writer()
    explain(
        f"Done in {time.monotonic() - started:.0f} s. Next: README.md has ten minutes to start "
        "with, SAFETY.md lists the guarantees and their tests, `omnigraph --help` lists "
        "every command."
    )


def load_on_spark() -> None:
    explain("A graph is a directory (or an s3:// prefix). Its schema says what may exist.")
    omnigraph("init", "--schema", "knowledge.pg", "kb")
    subprocess.run([sys.executable, "make_knowledge.py", "kb.jsonl"], check=True)
    explain(
        "280,500 nodes and edges, read, checked and staged by Spark tasks, become visible in one "
        "commit: every type, every key, both ends of every edge, every @card, or nothing at all."
    )
    flags = ("--mode", "append", "--engine", "spark", "--as", "etl", "-m", "first load")
    omnigraph("load", "kb", "--data", "kb.jsonl", *flags)


def query() -> None:
    explain(
        "One query over vectors, text and graph: of the ten documents nearest to a topic that "
        "mention glaciers, which were written by people whom p7 reaches in seven handshakes?"
    )
    like = [0.0] * 8
    like[1] = 1.0
    values = {"name": "p7", "like": like, "words": "glacier"}
    omnigraph("query", "advice", "--query", "knowledge.gq", *params(values), *GRAPH)


def change_branches() -> None:
    explain("Two agents work at once, each on a branch of its own. A branch costs milliseconds.")
    for agent in ("ada", "bob"):
        omnigraph("branch", "create", f"agents/{agent}", *GRAPH)
    mutate("agents/ada", "ada", "hire", {"name": "zoe", "code": "X1"})
    mutate("agents/ada", "ada", "raise", {"code": "X1", "budget": 500_000})
    mutate("agents/bob", "bob", "raise", {"code": "X1", "budget": 250_000})
    mutate("agents/bob", "bob", "raise", {"code": "X2", "budget": 1})
    explain("What did each of them change?")
    for agent in ("ada", "bob"):
        omnigraph("diff", "main", f"agents/{agent}", *GRAPH)


def review_and_merge() -> None:
    explain("Ada's branch is merged. It conflicts with nothing.")
    omnigraph("branch", "merge", "agents/ada", "--delete-branch", "-m", "hire zoe", *GRAPH)
    explain(
        "Bob set another budget for X1: a real conflict. Nothing is merged until it is decided."
    )
    omnigraph("branch", "merge", "agents/bob", *GRAPH, fails=True)
    explain("A resolution decides it (bob's X1 is dropped, his X2 stays), and the merge succeeds.")
    decided = [
        {"entity_kind": "node", "type_name": "Project", "entity_id": "X1", "take": "ours"},
    ]
    Path("decided.json").write_text(json.dumps(decided))
    print(f"$ cat decided.json\n{Path('decided.json').read_text()}", flush=True)
    omnigraph("branch", "merge", "agents/bob", "--resolve", "decided.json", *GRAPH)
    for code in ("X1", "X2"):
        omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": code}), *GRAPH)


def time_travel() -> None:
    explain("Every commit has an actor and a message, and any commit can be queried.")
    omnigraph("commit", "list", "kb")
    first = json.loads(answer("commit", "list", "kb", "--json"))["commits"][-2]["graph_commit_id"]
    at = ("--snapshot", first)
    omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": "X1"}), *at, *GRAPH)


def kill_a_writer() -> None:
    explain("A writer is killed in the middle of a commit: one table has moved, the other has not.")
    hire = ("mutate", "hire", "--query", "knowledge.gq", *params({"name": "yan", "code": "X3"}))
    omnigraph(*hire, *GRAPH, killed_at="table.after_commit")
    explain("The next command recovers: the unfinished write is rolled back, with an audit row.")
    omnigraph(*hire, *GRAPH)
    omnigraph("recovery", "list", "kb")
    omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": "X3"}), *GRAPH)


def mutate(branch: str, actor: str, query: str, values: dict[str, object]) -> None:
    where = ("--branch", branch, "--as", actor)
    omnigraph("mutate", query, "--query", "knowledge.gq", *params(values), *where, *GRAPH)


def params(values: dict[str, object]) -> tuple[str, str]:
    return ("--params", json.dumps(values))


def omnigraph(*words: str, killed_at: str | None = None, fails: bool = False) -> None:
    """Print and run a command, and check its exit code."""
    armed = "" if killed_at is None else f"OMNIGRAPH_FAILPOINTS={killed_at}=kill "
    print(f"$ {armed}omnigraph {shlex.join(words)}", flush=True)
    environment = dict(os.environ)
    if killed_at is not None:
        environment["OMNIGRAPH_FAILPOINTS"] = f"{killed_at}=kill"
    code = subprocess.run(_program(words), env=environment, check=False).returncode
    expected = -signal.SIGKILL if killed_at is not None else 1 if fails else 0
    if code != expected:
        raise SystemExit(f"the demo failed: exit code {code}")
    if killed_at is not None:
        print("Killed", flush=True)
    print(flush=True)


def answer(*words: str) -> str:
    """The output of a command, without showing it."""
    return subprocess.run(_program(words), check=True, capture_output=True, text=True).stdout


def _program(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "omnigraph.cli.main", *words]


def explain(text: str) -> None:
    print("\n" + textwrap.fill(text, 96) + "\n", flush=True)


if __name__ == "__main__":
    main()
