"""The crash harness: stop a writer at a failpoint, kill its recovery too, check the promises.

A *pair* is a writer kind and a failpoint it reaches (the n-th time), and how it is stopped there:
by SIGKILL, or by SIGINT as Ctrl-C does. The *scene* of a pair is a fresh graph in which a child
process wrote until the signal took it at the failpoint. A writer that was interrupted said what
became of its write, and what it said must be true. A *trial* starts
from a scene, optionally lets a second child recover until SIGKILL takes that one too, and then
opens the graph and writes. What must be true at each step is in ``tests.support.promises``; a
trial returns what was not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import omnigraph
from omnigraph import Graph
from omnigraph.errors import GraphNotFound, OmnigraphError
from omnigraph.model.outcome import NOTHING
from omnigraph.storage import failpoints
from omnigraph.storage.lance.files.relocation import relocate
from omnigraph.storage.locations import parse_location
from tests.support.children import child_environment
from tests.support.crash_child import INTERRUPTED
from tests.support.crash_kinds import Target, WriterKind, writer_kinds
from tests.support.promises import (
    Expected,
    audited_operations,
    broken_promises,
    commit_ids,
    pending_operations,
)
from tests.support.stores import open_objects

CHILD_S_MAX = 120.0  # a child that takes longer is stuck, and that is a violation


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A failpoint that a writer kind reaches, the ``nth`` time."""

    kind: str
    failpoint: str
    nth: int = 1
    action: Literal["kill", "interrupt"] = "kill"

    def __str__(self) -> str:
        how = "" if self.action == "kill" else " (interrupted)"
        return f"{self.kind} at {self.failpoint}@{self.nth}{how}"


@dataclass(frozen=True, slots=True)
class Trial:
    """What one kill (or one kill and a second one inside recovery) showed."""

    pair: Pair
    second: tuple[str, int] | None = None
    violations: tuple[str, ...] = ()
    reached_in_recovery: dict[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        again = "" if self.second is None else ", again at {}@{}".format(*self.second)
        return f"{self.pair}{again}: {'; '.join(self.violations) or 'ok'}"


@dataclass(frozen=True, slots=True)
class Scene:
    """A graph as a stopped writer left it: the commits before, the operations it left behind or
    undid itself, and what it reported of its write if it was interrupted."""

    pair: Pair
    uri: str
    before: frozenset[str]
    left: frozenset[str]
    told: str | None = None
    copied: bool = False
    bystander: Graph | None = field(default=None, compare=False)  # open since before the kill

    @property
    def kind(self) -> WriterKind:
        return writer_kinds()[self.pair.kind]

    def copied_to(self, place: str) -> Scene:
        """The same scene elsewhere: a copy where that is possible, otherwise a second killing."""
        if self.kind.copyable and "://" not in self.uri:
            if os.path.exists(self.uri):
                shutil.copytree(self.uri, place)
                relocate(open_objects(parse_location(place)))
            return replace(self, uri=place, copied=True, bystander=None)
        return stop_writer(self.pair, place)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child that lived to tell said: the code of its error, the failpoints it reached."""

    error: str | None
    reached: dict[str, int]
    told: str | None = None


class Stuck(Exception):
    """A child did something other than finish or die as planned."""


def discover(kind: str, uri: str) -> list[Pair]:
    """Every failpoint that one write of this kind reaches, each time it does."""
    writer_kinds()[kind].prepare(uri)
    counting = ";".join(f"{name}=count" for name in failpoints.NAMES)
    finished = run_child(["write", uri, kind, "0"], counting)
    if finished is None or finished.error is not None:
        raise Stuck(f"{kind} did not succeed although nothing was in its way")
    return [
        Pair(kind, name, nth + 1)
        for name, times in finished.reached.items()
        for nth in range(times)
    ]


def stop_writer(pair: Pair, uri: str) -> Scene:
    """Prepare a graph and let a signal take a writer at its failpoint."""
    kind = writer_kinds()[pair.kind]
    kind.prepare(uri)
    bystander = None if kind.opening_writes else _opened(uri)
    there = bystander is not None or kind.opening_writes
    before = commit_ids(uri, main_only=kind.deletes_branches) if there else frozenset()
    arguments = ["write", uri, pair.kind, "0"]
    if pair.action == "kill":
        _kill(arguments, pair.failpoint, pair.nth)
        return Scene(pair, uri, before, frozenset(pending_operations(uri)), bystander=bystander)
    told = _interrupt(arguments, pair.failpoint, pair.nth)
    left = frozenset(pending_operations(uri) | audited_operations(uri))
    return Scene(pair, uri, before, left, told, bystander=bystander)


def converge(scene: Scene) -> Trial:
    """Open and write on after one kill. Says which failpoints recovery reached."""
    return _trial(scene, None)


def write_on(scene: Scene) -> Trial:
    """Go on writing through a handle that was open all the time, without opening anything."""
    violations: list[str] = []
    try:
        if scene.bystander is not None:
            violations += _writing_on(scene, scene.bystander, recovered=False)
    except OmnigraphError as failure:
        violations.append(f"{type(failure).__name__}: {failure}")
    return Trial(scene.pair, None, tuple(violations))


def kill_recovery(scene: Scene, failpoint: str, nth: int = 1) -> Trial:
    """Kill the recovery of what the writer left, too; then open and write on."""
    return _trial(scene, (failpoint, nth))


def start_child(arguments: list[str], armed: str) -> subprocess.Popen[str]:
    """Start a child with these failpoints armed."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.crash_child", *arguments],
        env=child_environment(**{failpoints.ENVIRONMENT: armed}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish_child(child: subprocess.Popen[str]) -> Answer | None:
    """Wait for a child to end; None when SIGKILL took it."""
    try:
        out, err = child.communicate(timeout=CHILD_S_MAX)
    except subprocess.TimeoutExpired as stuck:
        child.kill()
        child.communicate()
        raise Stuck(f"the child did not end within {CHILD_S_MAX:.0f} s") from stuck
    if child.returncode == -signal.SIGKILL:
        return None
    if child.returncode != 0:
        raise Stuck(f"the child failed: {err.strip()}")
    told = json.loads(out)
    return Answer(told["error"], told["reached"], told.get("told"))


def run_child(arguments: list[str], armed: str) -> Answer | None:
    """Run one child to its end; None when it was killed at its failpoint."""
    return finish_child(start_child(arguments, armed))


# -- one trial ------------------------------------------------------------------------------------


def _trial(scene: Scene, second: tuple[str, int] | None) -> Trial:
    violations: list[str] = []
    reached: dict[str, int] = {}
    try:
        violations += _reading(scene, "after the kill")
        if second is not None:
            _kill(["recover", scene.uri], *second)
            violations += _reading(scene, "after the kill in recovery")
        with counting() as reached:
            graph = _opened(scene.uri)
        violations += _writing_on(scene, graph)
    except (Stuck, OmnigraphError) as failure:
        violations.append(f"{type(failure).__name__}: {failure}")
    return Trial(scene.pair, second, tuple(violations), reached)


def _kill(arguments: list[str], failpoint: str, nth: int) -> None:
    answer = run_child(arguments, f"{failpoint}@{nth}=kill")
    if answer is not None:
        raise Stuck(f"{failpoint}@{nth} was not reached, the child ended with {answer.error}")


def _interrupt(arguments: list[str], failpoint: str, nth: int) -> str:
    """What the child told of its write when Ctrl-C took it at the failpoint."""
    answer = run_child(arguments, f"{failpoint}@{nth}=interrupt")
    if answer is None or answer.error != INTERRUPTED or answer.told is None:
        error = None if answer is None else answer.error
        raise Stuck(f"{failpoint}@{nth} interrupted nothing, the child ended with {error}")
    return answer.told


def _opened(uri: str) -> Graph | None:
    """The graph, or None while there is none."""
    try:
        return omnigraph.open(uri)
    except GraphNotFound:
        return None


def _reading(scene: Scene, when: str) -> list[str]:
    """A reader is never in the way of anything, and sees the write whole or not at all."""
    try:
        graph = omnigraph.open(scene.uri, read_only=True)
    except GraphNotFound:
        return []
    return [f"{when}: {problem}" for problem in _torn(scene.kind.parts(graph, 0))]


def _writing_on(scene: Scene, graph: Graph | None, *, recovered: bool = True) -> list[str]:
    """After recovery: the promises hold, the write can be repeated, and another one follows."""
    kind, target = scene.kind, Target(scene.uri)
    expected = Expected(scene.before, scene.left, scene.copied)
    found: list[str] = []
    done = False
    if graph is not None:
        target.graph = graph
        parts = kind.parts(graph, 0)
        done = all(parts.values())
        found += _torn(parts) + _untrue(scene.told, done=done)
        if recovered and not kind.starts_damaged:
            found += broken_promises(scene.uri, expected)
    if not done:
        kind.write(target, 0)
    kind.write(target, 1)
    parts = kind.parts(target.graph, 1)
    if not all(parts.values()):
        found.append(f"the write after recovery was acknowledged and is not there: {parts}")
    return found + [f"in the end: {wrong}" for wrong in broken_promises(scene.uri, expected)]


def _untrue(told: str | None, *, done: bool) -> list[str]:
    """Whether the write is there is what an interrupted writer told, if it told anything."""
    said_nothing = told is not None and NOTHING in told
    said_done = told is not None and "was committed as" in told
    if (said_nothing and done) or (said_done and not done):
        return [f"the write is {'there' if done else 'not there'}; its writer told: {told}"]
    return []


def _torn(parts: dict[str, bool]) -> list[str]:
    return [] if len(set(parts.values())) <= 1 else [f"the write is there in part: {parts}"]


@contextmanager
def counting() -> Iterator[dict[str, int]]:
    """Count the failpoints reached in this process; the mapping is filled when the block ends."""
    reached: dict[str, int] = {}
    for name in failpoints.NAMES:
        failpoints.arm(name, "count")
    try:
        yield reached
    finally:
        reached.update(
            {n: failpoints.reached(n) for n in failpoints.NAMES if failpoints.reached(n)}
        )
        failpoints.disarm_all()
