"""The story of a graph, end to end. Run it with ``make demo``.

Every step prints the command or the code a user would type, runs it for real, and shows what came
back. Nothing is kept: the graph lives in a temporary directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

SCHEMA = Path(__file__).with_name("people.pg")
PEOPLE = 2_000


def main() -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _tell("A graph is a directory (or an s3:// prefix). Its schema says what may exist.")
        command("omnigraph", "init", "--schema", str(SCHEMA), "people")
        write_people()
        branches()
        time_travel()
        kill_a_writer()
        _tell("The history, as anybody can read it:")
        command("omnigraph", "commit", "list", "people")
    _tell(
        f"Done in {time.monotonic() - started:.0f} s. Next: read README.md, open SAFETY.md to see "
        "what is promised and how it is proved, and try `omnigraph --help`."
    )


def write_people() -> None:
    _tell(f"A block of changes is one commit. This one writes {PEOPLE:,} people and their ties.")
    python(
        f"""
        import omnigraph
        graph = omnigraph.open("people")
        with graph.write(message="first load", actor="etl") as w:
            w.insert("City", {{"name": "Oslo"}})
            for i in range({PEOPLE}):
                w.insert("Person", {{"name": f"p{{i}}", "role": "analyst", "age": 20 + i % 50}})
                w.insert_edge("LivesIn", f"p{{i}}", "Oslo")
                w.insert_edge("Knows", f"p{{i}}", f"p{{(i * 7 + 1) % {PEOPLE}}}", {{"since": 2020}})
        """
    )
    command("omnigraph", "snapshot", "people")


def branches() -> None:
    _tell("Two agents work on branches of their own. Creating one costs milliseconds.")
    command("omnigraph", "branch", "create", "agents/one", "--uri", "people")
    command("omnigraph", "branch", "create", "agents/two", "--uri", "people")
    python(
        """
        import omnigraph
        graph = omnigraph.open("people")
        with graph.write("agents/one", message="promote p1", actor="agent-1") as w:
            w.update("Person", "p1", {"role": "engineer"})
        with graph.write("agents/two", message="p1 leaves", actor="agent-2") as w:
            w.delete("Person", "p1")
        print("main:      ", graph.entity("node:Person", "p1"))
        print("agents/one:", graph.entity("node:Person", "p1", "agents/one"))
        print("agents/two:", graph.snapshot("agents/two").pins["node:Person"].rows, "people")
        """
    )


def time_travel() -> None:
    _tell("Every commit can be read again.")
    python(
        """
        import omnigraph
        graph = omnigraph.open("people")
        for commit in reversed(graph.commits("agents/two")):
            then = graph.snapshot("agents/two", commit=commit.commit_id)
            print(commit.commit_id, commit.kind, commit.message, "→", then.pins["node:Person"].rows)
        """
    )


def kill_a_writer() -> None:
    _tell("A writer is killed in the middle of a commit: one table has moved, the other has not.")
    python(
        """
        import omnigraph
        graph = omnigraph.open("people")
        with graph.write(message="never finished", actor="unlucky") as w:
            w.insert("City", {"name": "Rome"})
            w.insert("Person", {"name": "zoe", "role": "agent"})
        """,
        killed_at="table.after_commit",
    )
    _tell("The next command finds nothing wrong: what was half done was undone, and recorded.")
    python(
        """
        import omnigraph
        graph = omnigraph.open("people")
        print({key: pin.rows for key, pin in graph.snapshot().pins.items()})
        for recovery in graph.recoveries():
            print(recovery["action"], recovery["types"])
        with graph.write(message="second try", actor="lucky") as w:
            w.insert("City", {"name": "Rome"})
            w.insert("Person", {"name": "zoe", "role": "agent"})
        print({key: pin.rows for key, pin in graph.snapshot().pins.items()})
        """
    )


def command(*words: str) -> None:
    """Show and run a command line."""
    shown = [Path(word).name if word == str(SCHEMA) else word for word in words]
    print("$ " + " ".join(shown), flush=True)
    subprocess.run([sys.executable, "-m", "omnigraph.cli.main", *words[1:]], check=True)


def python(code: str, killed_at: str | None = None) -> None:
    """Show and run a Python program, in a process of its own."""
    text = textwrap.dedent(code).strip()
    print("$ python", *(">>> " + line for line in text.splitlines()), sep="\n", flush=True)
    environment = dict(os.environ)
    if killed_at is not None:
        environment["OMNIGRAPH_FAILPOINTS"] = f"{killed_at}=kill"
    finished = subprocess.run([sys.executable, "-c", text], env=environment, check=False)
    if killed_at is not None and finished.returncode == -signal.SIGKILL:
        print("Killed", flush=True)
    elif finished.returncode != 0:
        raise SystemExit(f"the demo failed with exit code {finished.returncode}")


def _tell(text: str) -> None:
    print("\n" + textwrap.fill(text, 96) + "\n", flush=True)


if __name__ == "__main__":
    main()
