"""Real processes that open the same old graph at once (I-3), and one that is killed on its way."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.migrations.old import SIDE, cities, format_of, lineage, old_graph
from tests.migrations.test_lineage import stored_commits

import omnigraph
from omnigraph.manifest.format import INTERNAL_VERSION
from omnigraph.storage.failpoints import ENVIRONMENT
from omnigraph.testing.children import child_environment

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
    ("version", "main_first", "point"),
    [
        (1, False, "migrate.before_step"),  # both are about to declare the key
        (3, False, "migrate.before_step"),  # both are about to move the commits
        (3, False, "migrate.after_work"),  # both are about to write the stamp
        (3, True, "migrate.before_step"),  # both come to write to a branch that was left behind
    ],
)
def test_I_3_two_processes_that_take_the_same_step_at_once_both_succeed(
    tmp_path: Path, version: int, main_first: bool, point: str
) -> None:
    told = old_graph(tmp_path / "g", version)
    if main_first:
        omnigraph.open(tmp_path / "g")
    flags = [tmp_path / "one", tmp_path / "two"]
    children = [child(tmp_path / "g", flag.name, f"{point}=pause:{flag}") for flag in flags]
    wait_for(lambda: all(flag.exists() for flag in flags))
    for flag in flags:
        flag.unlink()
    for one in children:
        _, problems = one.communicate(timeout=SECONDS_MAX)
        assert one.returncode == 0, problems
    graph = omnigraph.open(tmp_path / "g")
    ref = graph._repository.branch(SIDE).ref
    for branch, stored in (("main", None), (SIDE, ref)):
        assert format_of(graph, branch) == INTERNAL_VERSION
        assert lineage(graph.commits(branch=branch))[: len(told[branch])] == lineage(told[branch])
        assert set(stored_commits(tmp_path / "g", stored).values()) == {1}
        assert {f"one on {branch}", f"two on {branch}"} <= cities(graph, branch)
    assert graph.check().healthy


def test_I_3_an_upgrade_that_was_killed_is_finished_by_the_next_open(tmp_path: Path) -> None:
    told = old_graph(tmp_path / "g", 1)
    killed = child(tmp_path / "g", "one", "migrate.after_work@3=kill")
    assert killed.wait(SECONDS_MAX) == -9
    reader = omnigraph.open(tmp_path / "g", read_only=True)
    assert (format_of(reader), lineage(reader.commits())) == (3, lineage(told["main"]))
    graph = omnigraph.open(tmp_path / "g")
    assert lineage(graph.commits()) == lineage(told["main"])
    assert set(stored_commits(tmp_path / "g").values()) == {1}
