"""The story of a graph, end to end. Run it with ``make demo``.

Every step prints the command a user would type, runs it for real, and shows what came back. Nothing
is kept: the graph lives in a temporary directory.
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
        ask()
        work_on_branches()
        review_and_merge()
        look_back()
        kill_a_writer()
    tell(
        f"Done in {time.monotonic() - started:.0f} s. Next: README.md has ten minutes to start "
        "with, SAFETY.md says what is promised and how it is proved, `omnigraph --help` lists "
        "every command."
    )


def load_on_spark() -> None:
    tell("A graph is a directory (or an s3:// prefix). Its schema says what may exist.")
    omnigraph("init", "--schema", "knowledge.pg", "kb")
    subprocess.run([sys.executable, "make_knowledge.py", "kb.jsonl"], check=True)
    tell(
        "280,500 nodes and edges, read, checked and staged by Spark tasks, become visible in one "
        "commit: every type, every key, both ends of every edge, every @card, or nothing at all."
    )
    flags = ("--mode", "append", "--engine", "spark", "--as", "etl", "-m", "first load")
    omnigraph("load", "kb", "--data", "kb.jsonl", *flags)


def ask() -> None:
    tell(
        "One question over vectors, text and graph: of the ten documents nearest to a topic that "
        "mention glaciers, which were written by people whom p7 reaches in seven handshakes?"
    )
    like = [0.0] * 8
    like[1] = 1.0
    ask_for = {"name": "p7", "like": like, "words": "glacier"}
    omnigraph("query", "advice", "--query", "knowledge.gq", *params(ask_for), *GRAPH)


def work_on_branches() -> None:
    tell("Two agents work at once, each on a branch of its own. A branch costs milliseconds.")
    for agent in ("ada", "bob"):
        omnigraph("branch", "create", f"agents/{agent}", *GRAPH)
    mutate("agents/ada", "ada", "hire", {"name": "zoe", "code": "X1"})
    mutate("agents/ada", "ada", "raise", {"code": "X1", "budget": 500_000})
    mutate("agents/bob", "bob", "raise", {"code": "X1", "budget": 250_000})
    mutate("agents/bob", "bob", "raise", {"code": "X2", "budget": 1})
    tell("What did each of them change?")
    for agent in ("ada", "bob"):
        omnigraph("diff", "main", f"agents/{agent}", *GRAPH)


def review_and_merge() -> None:
    tell("Ada's work is merged. Nobody else touched what she touched.")
    omnigraph("branch", "merge", "agents/ada", "--delete-branch", "-m", "hire zoe", *GRAPH)
    tell("Bob set another budget for X1: a real conflict. Nothing is merged until it is decided.")
    omnigraph("branch", "merge", "agents/bob", *GRAPH, fails=True)
    tell("It is decided (bob's X1 loses, his X2 stays), and the merge goes on.")
    decided = [
        {"entity_kind": "node", "type_name": "Project", "entity_id": "X1", "take": "ours"},
    ]
    Path("decided.json").write_text(json.dumps(decided))
    print(f"$ cat decided.json\n{Path('decided.json').read_text()}", flush=True)
    omnigraph("branch", "merge", "agents/bob", "--resolve", "decided.json", *GRAPH)
    for code in ("X1", "X2"):
        omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": code}), *GRAPH)


def look_back() -> None:
    tell("Every commit says who and why, and any of them can be read again.")
    omnigraph("commit", "list", "kb")
    first = json.loads(answer("commit", "list", "kb", "--json"))["commits"][-2]["graph_commit_id"]
    at = ("--snapshot", first)
    omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": "X1"}), *at, *GRAPH)


def kill_a_writer() -> None:
    tell("A writer is killed in the middle of a commit: one table has moved, the other has not.")
    hire = ("mutate", "hire", "--query", "knowledge.gq", *params({"name": "yan", "code": "X3"}))
    omnigraph(*hire, *GRAPH, killed_at="table.after_commit")
    tell("The next command finds nothing wrong: what was half done is undone, and on record.")
    omnigraph(*hire, *GRAPH)
    omnigraph("recovery", "list", "kb")
    omnigraph("query", "team", "--query", "knowledge.gq", *params({"code": "X3"}), *GRAPH)


def mutate(branch: str, actor: str, query: str, values: dict[str, object]) -> None:
    where = ("--branch", branch, "--as", actor)
    omnigraph("mutate", query, "--query", "knowledge.gq", *params(values), *where, *GRAPH)


def params(values: dict[str, object]) -> tuple[str, str]:
    return ("--params", json.dumps(values))


def omnigraph(*words: str, killed_at: str | None = None, fails: bool = False) -> None:
    """Show and run a command; it succeeds unless something else is expected of it."""
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
    """What a command prints, without showing it."""
    return subprocess.run(_program(words), check=True, capture_output=True, text=True).stdout


def _program(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "omnigraph.cli.main", *words]


def tell(text: str) -> None:
    print("\n" + textwrap.fill(text, 96) + "\n", flush=True)


if __name__ == "__main__":
    main()
