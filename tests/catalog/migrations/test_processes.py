"""Real processes that open the same old graph at once, and one that left a write behind (I-3)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.catalog.migrations.old import (
    SIDE,
    cities,
    format_of,
    lineage,
    old_graph,
    people_with_a_side,
)
from tests.catalog.migrations.test_lineage import stored_commits
from tests.support.children import child_environment
from tests.support.internals import repository_of
from tests.support.old_graphs import aged

import omnigraph
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.storage.failpoints import ENVIRONMENT

SECONDS_MAX = 60.0
OPEN_AND_WRITE = """
import sys, omnigraph
graph = omnigraph.open(sys.argv[1])
for branch in ("main", "side"):
    with graph.write(branch, actor=sys.argv[2]) as w:
        w.insert("City", {"name": f"{sys.argv[2]} on {branch}"})
"""


def child(where: Path, name: str, armed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WRITE, str(where), name],
        env=child_environment(**{ENVIRONMENT: armed}),
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("version", "main_first"),
    [
        (1, False),  # both are about to declare the key
        (3, False),  # both are about to move the commits
        (3, True),  # both come to write to a branch that was left behind
    ],
)
def test_I_3_two_processes_that_take_the_same_step_at_once_both_succeed(
    tmp_path: Path, version: int, main_first: bool
) -> None:
    told = old_graph(tmp_path / "g", version)
    if main_first:
        omnigraph.open(tmp_path / "g")
    flags = [tmp_path / "one", tmp_path / "two"]
    children = [
        child(tmp_path / "g", flag.name, f"migrate.before_step=pause:{flag}") for flag in flags
    ]
    wait_for(lambda: all(flag.exists() for flag in flags))
    for flag in flags:
        flag.unlink()
    for one in children:
        _, problems = one.communicate(timeout=SECONDS_MAX)
        assert one.returncode == 0, problems
    graph = omnigraph.open(tmp_path / "g")
    ref = repository_of(graph).branch(SIDE).ref
    for branch, stored in (("main", None), (SIDE, ref)):
        assert format_of(graph, branch) == INTERNAL_VERSION
        assert lineage(graph.history.commits(branch=branch))[: len(told[branch])] == lineage(
            told[branch]
        )
        assert set(stored_commits(tmp_path / "g", stored).values()) == {1}
        assert {f"one on {branch}", f"two on {branch}"} <= cities(graph, branch)
    assert graph.maintenance.check().healthy


def test_I_3_an_unfinished_write_to_an_old_branch_is_finished_when_the_graph_is_opened(
    tmp_path: Path,
) -> None:
    people_with_a_side(tmp_path / "g", 2)
    killed = child(tmp_path / "g", "one", "table.after_commit@2=kill")  # main first, then the side
    assert killed.wait(SECONDS_MAX) == -9
    told = aged(str(tmp_path / "g"), 2)
    graph = omnigraph.open(tmp_path / "g")
    assert [found["action"] for found in graph.maintenance.recoveries()] == ["rolled_forward"]
    assert format_of(graph, SIDE) == INTERNAL_VERSION
    assert lineage(graph.history.commits(branch=SIDE))[:-1] == lineage(told[SIDE])
    assert "one on side" in cities(graph, SIDE)
    assert graph.maintenance.check().healthy
