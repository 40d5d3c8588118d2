"""A conversion that is killed anywhere leaves a graph that opens as old or as new, never neither.

A conversion is stopped at a failpoint, the next attempt once more, and the third one finishes. In
process the failpoint raises; with ``make crash`` it is SIGKILL to a process, at every failpoint.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import child_environment
from tests.support.crash_kinds import of_conversions
from tests.support.original_graphs import (
    TOLD,
    aged,
    change_record,
    exported,
    lineage,
    move_tables,
    parsed,
    unpacked,
)

import omnigraph
from omnigraph import Graph
from omnigraph.storage import failpoints

UPGRADE = "import sys, omnigraph; omnigraph.upgrade(sys.argv[1], apply=True)"
Contents = dict[str, list[Any]]


def moved_museum(where: Path) -> Path:
    """Two branches, version 1, stale runs, at a place it was not made at."""
    root = unpacked("museum", where)
    aged(root, 1)
    return Path(shutil.move(root, where / "moved.omni"))


def half_moved(where: Path) -> Path:
    root = unpacked("pending", where)
    move_tables(root, 2)
    return root


def all_moved(where: Path) -> Path:
    root = unpacked("pending", where)
    move_tables(root, 6)
    return root


def schema_change(where: Path) -> Path:
    """A change of the schema that was killed after it had moved every table."""
    root = unpacked("pending", where)
    change_record(root, writer_kind="SchemaApply")
    move_tables(root, 6)
    for name in ("_schema.pg", "_schema.ir.json", "__schema_state.json"):
        shutil.copy(root / name, root / f"{name}.staging")
    return root


SCENES: list[Callable[[Path], Path]] = [moved_museum, half_moved, all_moved, schema_change]


def convert(root: Path) -> None:
    omnigraph.upgrade(root, apply=True)


def contents(graph: Graph) -> Contents:
    return {branch: exported(graph, branch) for branch in graph.branches.list()}


def reached(root: Path) -> Iterator[tuple[str, int]]:
    """Every failpoint of a conversion, each time it is reached."""
    for name in failpoints.NAMES:
        failpoints.arm(name, "count")
    convert(root)
    counted = {name: failpoints.reached(name) for name in failpoints.NAMES}
    failpoints.disarm_all()
    return ((name, nth + 1) for name, times in counted.items() for nth in range(times))


def fail_at(root: Path, name: str, nth: int) -> None:
    failpoints.arm(name, "error", nth=nth)
    try:
        convert(root)
    except failpoints.FailpointError:
        pass
    finally:
        failpoints.disarm_all()


def test_failed_at_a_failpoint_of_each_name_it_converges(tmp_path: Path) -> None:
    """Each name once, in the first scene that reaches it. ``make crash`` does all of each."""
    tried: set[str] = set()
    for scene in SCENES:
        place = tmp_path / scene.__name__
        whole, template = scene(place / "whole"), scene(place / "template")
        old = contents(omnigraph.open(whole, read_only=True))
        points = dict(reached(whole))  # of each name the last
        new = contents(omnigraph.open(whole, read_only=True))
        for name in points.keys() - tried:
            root = Path(shutil.copytree(template, place / name))
            for _ in range(2):
                fail_at(root, name, points[name])
                assert contents(omnigraph.open(root, read_only=True)) in (old, new), name
            convert(root)
            assert_whole(root, new)
        tried |= points.keys()
    assert of_conversions() <= tried


def assert_whole(root: Path, new: Contents) -> None:
    graph = omnigraph.open(root)
    assert contents(graph) == new
    assert graph.maintenance.check().findings == []
    commits = [c.commit_id for c in graph.history.commits()]
    assert len(commits) == len(set(commits))
    if (root / "_graph_commit_recoveries.lance").exists():
        assert len(graph.maintenance.recoveries()) == 1
        assert sum(c.actor == "omnigraph:recovery" for c in graph.history.commits()) == 1


def kill(code: str, point: str, *arguments: Path) -> bool:
    """Run a child that dies at a failpoint; whether it did."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=child_environment(**{failpoints.ENVIRONMENT: f"{point}=kill"}),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


@pytest.mark.parametrize("point", ["convert.after_branch", "convert.after_publish"])
def test_killed_it_opens_and_the_next_attempt_finishes(point: str, tmp_path: Path) -> None:
    root = moved_museum(tmp_path)
    assert kill(UPGRADE, point, root)
    graph = omnigraph.open(root, read_only=True)
    for told in TOLD[:2]:
        assert exported(graph, told.branch) == parsed(told.entities, graph, told.branch)
    convert(root)
    for told in TOLD[:2]:
        assert lineage(omnigraph.open(root), told.branch) == told.commits


@pytest.mark.crash
@pytest.mark.parametrize("scene", SCENES)
def test_killed_at_every_failpoint_twice_it_converges(
    scene: Callable[[Path], Path], tmp_path: Path
) -> None:
    whole = scene(tmp_path / "whole")
    old = contents(omnigraph.open(whole, read_only=True))
    points = list(reached(whole))
    new = contents(omnigraph.open(whole, read_only=True))
    template = scene(tmp_path / "template")
    for number, (name, nth) in enumerate(points):
        root = Path(shutil.copytree(template, tmp_path / f"{number}"))
        assert kill(UPGRADE, f"{name}@{nth}", root)
        assert contents(omnigraph.open(root, read_only=True)) in (old, new), name
        kill(UPGRADE, f"{name}@{nth}", root)
        assert contents(omnigraph.open(root, read_only=True)) in (old, new), name
        convert(root)
        assert_whole(root, new)
        shutil.rmtree(root)
