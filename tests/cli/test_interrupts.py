"""Ctrl-C on the command line: every writing command says what became of the write, and ends in 130.

A real process gets a real SIGINT at a failpoint before or after its publish.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.graphs import PEOPLE, people_graph

import omnigraph
from omnigraph import Graph
from omnigraph.storage import failpoints

Run = Callable[..., subprocess.CompletedProcess[str]]
Command = Callable[[Graph, Path], list[str]]

INSERT = 'query q() { insert Person { name: "new" } }'
BACKGROUND = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it\n"
    "from omnigraph.cli.main import run\n"
    "sys.exit(run())"
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """One graph for all: what is interrupted before its commit changes nothing."""
    return people_graph(tmp_path_factory.mktemp("interrupts") / "g")


@pytest.fixture
def run(compiled: dict[str, str]) -> Run:
    def started(*arguments: str, at: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", BACKGROUND, *arguments],
            env={**compiled, failpoints.ENVIRONMENT: f"{at}=interrupt"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return started


def mutate(graph: Graph, room: Path) -> list[str]:
    return ["mutate", "-e", INSERT, "--uri", graph.uri]


def load(graph: Graph, room: Path) -> list[str]:
    file = room / "d.jsonl"
    file.write_text('{"type": "City", "data": {"name": "Rome"}}\n')
    return ["load", graph.uri, "--data", str(file), "--mode", "merge"]


def merge(graph: Graph, room: Path) -> list[str]:
    if "side" not in graph.branches.list():
        graph.branches.create("side")
        with graph.write("side") as w:
            w.insert("City", {"name": "Ulm"})
    return ["branch", "merge", "side", "--uri", graph.uri]


def schema_apply(graph: Graph, room: Path) -> list[str]:
    file = room / "s.pg"
    file.write_text(PEOPLE.replace("age: I32?", "age: I32?\n  more: String?"))
    return ["schema", "apply", "--schema", str(file), graph.uri]


def schema_apply_of_a_type(graph: Graph, room: Path) -> list[str]:
    """No table moves: there is nothing but the publish."""
    file = room / "t.pg"
    file.write_text(graph.schema().source + "\nnode Town { name: String @key }\n")
    return ["schema", "apply", "--schema", str(file), graph.uri]


def revert(graph: Graph, room: Path) -> list[str]:
    with graph.write() as w:
        w.insert("City", {"name": f"c{len(graph.history.commits())}"})
    return ["revert", graph.history.commits(limit=1)[0].commit_id, "--uri", graph.uri]


def cherry_pick(graph: Graph, room: Path) -> list[str]:
    if "picked" not in graph.branches.list():
        graph.branches.create("picked")
        with graph.write("picked") as w:
            w.insert("City", {"name": "Kiel"})
    commit = graph.history.commits("picked", limit=1)[0].commit_id
    return ["cherry-pick", commit, "--uri", graph.uri]


def restore(graph: Graph, room: Path) -> list[str]:
    with graph.write() as w:
        w.update("Person", "ana", {"age": len(graph.history.commits())})
    before = graph.history.commits()[1].commit_id
    return ["restore", before, "node:Person:ana", "--uri", graph.uri]


def reset(graph: Graph, room: Path) -> list[str]:
    with graph.write() as w:
        w.insert("City", {"name": f"r{len(graph.history.commits())}"})
    return ["reset", graph.history.commits()[1].commit_id, "--uri", graph.uri]


COMMITS = [
    mutate,
    load,
    merge,
    schema_apply,
    schema_apply_of_a_type,
    revert,
    cherry_pick,
    restore,
    reset,
]


def branch_create(graph: Graph, room: Path) -> list[str]:
    return ["branch", "create", "made", "--uri", graph.uri]


def tag_create(graph: Graph, room: Path) -> list[str]:
    return ["tag", "create", "t1", "--uri", graph.uri]


def branch_delete(graph: Graph, room: Path) -> list[str]:
    if "gone" not in graph.branches.list():
        graph.branches.create("gone")
    return ["branch", "delete", "gone", "--uri", graph.uri]


def index_build(graph: Graph, room: Path) -> list[str]:
    return ["index", "build", graph.uri]


WITHOUT_A_COMMIT = [branch_create, tag_create, branch_delete, index_build]


@pytest.mark.parametrize("command", [*COMMITS, *WITHOUT_A_COMMIT])
def test_before_the_publish_nothing_was_written(
    graph: Graph, run: Run, tmp_path: Path, command: Command
) -> None:
    arguments = command(graph, tmp_path)
    before = graph.snapshot()
    names = graph.branches.list(), graph.tags.list()
    done = run(*arguments, at="publish.before_commit")
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted: nothing was written"
    assert {k: p.rows for k, p in graph.snapshot().pins.items()} == {
        k: p.rows for k, p in before.pins.items()
    }
    assert (graph.branches.list(), graph.tags.list()) == names
    assert graph.maintenance.pending_writes() == []


@pytest.mark.parametrize("command", COMMITS)
def test_after_the_publish_the_commit_is_named(
    graph: Graph, run: Run, tmp_path: Path, command: Command
) -> None:
    arguments = command(graph, tmp_path)
    before = graph.history.commits(limit=1)[0].commit_id
    done = run(*arguments, "--json", at="publish.after_commit")
    assert done.returncode == 130, done.stderr
    head = graph.history.commits(limit=1)[0].commit_id
    assert head != before
    said = json.loads(done.stdout)
    assert said["reason"] == "interrupted"
    assert said["commits"] == [head]
    assert said["error"] == f"interrupted: the write was committed as {head}"


@pytest.mark.parametrize("command", WITHOUT_A_COMMIT)
def test_after_a_publish_without_a_commit_what_was_done_stays(
    graph: Graph, run: Run, tmp_path: Path, command: Command
) -> None:
    done = run(*command(graph, tmp_path), at="publish.after_commit")
    assert done.returncode == 130, done.stderr
    said = "interrupted: no commit was made; finished steps remain"
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.parametrize(
    "at", ["record.before_delete", "record.after_delete", "publish.before_commit@2"]
)
def test_what_comes_after_the_commit_does_not_hide_it(run: Run, tmp_path: Path, at: str) -> None:
    """The record's end, and the deletion of a merged branch: the commit is named all the same."""
    graph = people_graph(tmp_path / "g")
    arguments = [*merge(graph, tmp_path), "--delete-branch"]
    done = run(*arguments, at=at)
    head = graph.history.commits(limit=1)[0]
    assert head.kind == "merge"
    assert done.returncode == 130, done.stderr
    expected = f"interrupted: the write was committed as {head.commit_id}"
    assert done.stderr.splitlines()[-1] == expected
    assert graph.maintenance.recover() is not None
    assert graph.maintenance.check().findings == []


@pytest.mark.parametrize("at", ["init.before_manifest", "init.after_manifest"])
def test_an_interrupted_init_says_whether_there_is_a_graph(
    run: Run, tmp_path: Path, at: str
) -> None:
    file = tmp_path / "s.pg"
    file.write_text(PEOPLE)
    arguments = ["init", str(tmp_path / "g"), "--schema", str(file)]
    done = run(*arguments, at=at)
    assert done.returncode == 130, done.stderr
    if at == "init.before_manifest":
        assert done.stderr.splitlines()[-1] == "interrupted: nothing was written"
        omnigraph.init(tmp_path / "g", PEOPLE)
    else:
        head = omnigraph.open(tmp_path / "g").history.commits(limit=1)[0].commit_id
        assert done.stderr.splitlines()[-1] == f"interrupted: the write was committed as {head}"


def test_an_interrupted_reader_says_nothing(graph: Graph, compiled: dict[str, str]) -> None:
    """It ends as the shell expects it."""
    text = BACKGROUND.replace(
        "from omnigraph.cli.main",
        "import os, omnigraph.engine.engine as engine\n"
        "engine.Reader.query = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        "from omnigraph.cli.main",
    )
    query = "query q() { match { $p: Person } return { $p.name } }"
    done = subprocess.run(
        [sys.executable, "-c", text, "query", "-e", query, "--uri", graph.uri],
        env={**os.environ, **compiled},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
