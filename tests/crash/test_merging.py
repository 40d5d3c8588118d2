"""Processes on branches of their own, merging into main, killed at random: nothing is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.children import child_environment
from tests.support.crash_writers import ids, make_graph
from tests.support.promises import Expected, broken_promises

import omnigraph
from omnigraph import Graph

LEASE_S = 5.0
PROGRESS_S_MAX = 120.0
POLL_S = 0.005
KILL_S_MAX = 0.15


@dataclass
class Worker:
    """A branch, and the process that works on it now."""

    branch: str
    ledger: Path
    process: subprocess.Popen[bytes] | None = None
    lives: int = 0
    lines_before: int = 0

    def start(self, uri: str) -> None:
        self.lives += 1
        self.lines_before = self.lines()
        arguments = [uri, self.branch, str(self.ledger), str(self.lives)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.merging_worker", *arguments],
            env=child_environment(OMNIGRAPH_LEASE_SECONDS=str(LEASE_S)),
            stderr=subprocess.PIPE,
        )

    def kill(self) -> None:
        assert self.process is not None
        code = self.process.poll()
        if code is not None:
            raise AssertionError(f"{self.branch} ended by itself: {self.process.stderr.read()!r}")  # type: ignore[union-attr]
        self.process.kill()
        self.process.communicate()

    def wait_for(self, lines: int) -> None:
        """Until this life has told so many lines: its next step is then under way."""
        deadline = time.monotonic() + PROGRESS_S_MAX
        while self.lines() < self.lines_before + lines:
            assert self.process is not None
            assert self.process.poll() is None, self.process.stderr
            assert time.monotonic() < deadline, f"{self.branch} is stuck"
            time.sleep(POLL_S)

    def lines(self) -> int:
        return len(self.ledger.read_text().splitlines()) if self.ledger.exists() else 0

    def told(self, word: str) -> list[str]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [name for verb, _, name in (line.partition(" ") for line in lines) if verb == word]


def run(room: Path, *, branches: int, kills: int, seed: int) -> list[Worker]:
    rng = random.Random(seed)
    uri = str(room / "g")
    graph = make_graph(uri)
    workers = [Worker(f"work{n}", room / f"ledger{n}") for n in range(branches)]
    for worker in workers:
        graph.branches.create(worker.branch)
        worker.start(uri)
    try:
        for _ in range(kills):
            worker = rng.choice(workers)
            worker.wait_for(rng.randint(1, 5))
            time.sleep(rng.uniform(0, KILL_S_MAX))  # anywhere in the step that follows
            worker.kill()
            worker.start(uri)
        for worker in workers:
            worker.wait_for(3)
    finally:
        for worker in workers:
            worker.kill()
    return workers


def check(room: Path, workers: list[Worker]) -> int:
    """What was told is there, and every branch can still be written to, merged and deleted."""
    uri = str(room / "g")
    graph = omnigraph.open(uri)
    assert wrong_with(graph) == []
    merges = 0
    for worker in workers:
        written = set(worker.told("wrote"))
        assert written <= ids(graph, "node:Person", worker.branch)
        merged = worker.told("merged")
        merges += len(merged)
        if merged:  # everything that was written before a merge is on main
            order = worker.told("wrote")
            assert set(order[: order.index(merged[-1]) + 1]) <= ids(graph, "node:Person")
    for worker in workers:
        with graph.write(worker.branch) as w:
            w.insert("City", {"name": f"last of {worker.branch}"})
        assert graph.merge(worker.branch, delete_branch=True).branch_deleted
        assert set(worker.told("wrote")) <= ids(graph, "node:Person")
    assert graph.branches.list() == ["main"]
    # Audit rows may speak of commits that went away with their branch.
    assert [w for w in wrong_with(graph) if not w.startswith("operation ")] == []
    return merges


def wrong_with(graph: Graph) -> list[str]:
    """The promises; how many writes were recovered is not known from outside."""
    recovered = frozenset(row["operation_id"] for row in graph.maintenance.recoveries())
    return broken_promises(graph.uri, Expected(recovered=recovered))


@pytest.mark.slow
def test_three_processes_merging_under_kills_lose_nothing(tmp_path: Path) -> None:
    workers = run(tmp_path, branches=3, kills=4, seed=8)
    assert check(tmp_path, workers) > 0


@pytest.mark.crash
def test_six_processes_merging_under_kills_lose_nothing(tmp_path: Path) -> None:
    workers = run(tmp_path, branches=6, kills=60, seed=9)
    assert check(tmp_path, workers) > 10
