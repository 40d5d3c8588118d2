"""Eight threads, every pair of operations, one handle: nothing fails that should not, nothing is
lost.

``OMNIGRAPH_TEST_STRESS_SECONDS`` says how long all of it takes together, roughly. First come mixed
rounds, in which eight threads do different things, until every pair has met; then rounds of a
single pair, four threads on each side. At the end the graph is checked against a model of what was
acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from tests.threads.workload import OPERATIONS, Model, Worker, check, race, start

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("OMNIGRAPH_TEST_STRESS_SECONDS", "60"))
SEED = int(os.environ.get("OMNIGRAPH_TEST_STRESS_SEED", str(time.time_ns() % 1_000_000)))
THREADS = 8
SLICE_S = 0.25
PAIRS = list(combinations_with_replacement(OPERATIONS, 2))
COMMITS_MAX = 250
"""A graph with more commits is left for a new one: with its history, every listing gets slower."""


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Python hands over between threads ten times as often as usual: more interleavings."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 10)
    yield
    sys.setswitchinterval(before)


def stress(where: Path, handles: int, seconds: float) -> None:
    """Pairs of operations in random order, on as many graphs as it takes."""
    order, number = random.Random(SEED), 0
    until = time.monotonic() + seconds
    rounds = all_rounds(order)
    while number == 0 or time.monotonic() < until:
        number += 1
        place = str(where / f"g{number}")
        graphs = [start(place), *(omnigraph.open(place) for _ in range(handles - 1))]
        model, lock = Model(), threading.Lock()
        workers = [Worker(graphs[n % handles], f"w{n}", model, lock) for n in range(THREADS)]
        while time.monotonic() < until and _commits(graphs[0]) < COMMITS_MAX:
            chosen = next(rounds)
            race(workers, chosen, SLICE_S)
            assert not model.failures, f"seed {SEED}, {chosen}: {model.failures[0]}"
        check(place, model)
        print(f"seed {SEED}: done {dict(model.done)}, refused {dict(model.expected)}")


def all_rounds(order: random.Random) -> Iterator[list[str]]:
    """What the threads do in each round: mixed ones until every pair has met, then single pairs."""
    missing = set(PAIRS)
    while missing:
        chosen: list[str] = []
        for _ in range(THREADS):
            names = order.sample(list(OPERATIONS), len(OPERATIONS))
            chosen.append(max(names, key=lambda name: len(_met([*chosen, name]) & missing)))
        missing -= _met(chosen)
        yield chosen
    while True:
        for first, second in order.sample(PAIRS, len(PAIRS)):
            yield [first, second] * (THREADS // 2)


def _met(chosen: list[str]) -> set[tuple[str, str]]:
    """The pairs among operations that run at the same time."""
    ranks = {name: rank for rank, name in enumerate(OPERATIONS)}
    pairs = combinations(sorted(chosen, key=ranks.__getitem__), 2)
    return set(pairs)


def test_the_first_rounds_make_every_pair_meet() -> None:
    met: set[tuple[str, str]] = set()
    rounds = all_rounds(random.Random(SEED))
    count = 0
    while met != set(PAIRS):
        met |= _met(next(rounds))
        count += 1
    assert count < 40


def _commits(graph: Graph) -> int:
    return len(graph.history.commits(limit=COMMITS_MAX))


def test_threads_share_one_handle(tmp_path: Path) -> None:
    stress(tmp_path, 1, SECONDS / 2)


def test_threads_share_two_handles_of_one_process(tmp_path: Path) -> None:
    stress(tmp_path, 2, SECONDS / 4)


def test_two_processes_of_four_threads_each(tmp_path: Path) -> None:
    where = str(tmp_path / "g")
    start(where)
    command = [sys.executable, "-m", "tests.threads.stress_process", where]
    racing = [
        subprocess.Popen([*command, name, str(SECONDS / 4)], stdout=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    model = Model()
    for process in racing:
        model.add(json.loads(process.communicate(timeout=SECONDS * 10 + 300)[0]))
    check(where, model)
