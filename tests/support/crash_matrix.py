"""All pairs, on as many processes as there are processors.

``run_matrix`` stops every given pair once, and kills its recovery at each failpoint that it
reaches. ``sample`` chooses a fixed handful of pairs that touches every failpoint; ``interrupted``
gives the same pairs, stopped by Ctrl-C.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from omnigraph.errors import OmnigraphError
from omnigraph.storage.failpoints import NAMES
from tests.support.crash import (
    Pair,
    Stuck,
    Trial,
    converge,
    discover,
    kill_recovery,
    stop_writer,
    write_on,
)
from tests.support.crash_kinds import writer_kinds

_Work = TypeVar("_Work")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a run covered and what it found."""

    pairs: tuple[Pair, ...]
    trials: tuple[Trial, ...]
    seconds: float

    @property
    def violations(self) -> list[str]:
        return [trial.describe() for trial in self.trials if trial.violations]

    @property
    def failpoints(self) -> set[str]:
        """Every failpoint at which something was stopped."""
        return {p.failpoint for p in self.pairs} | {t.second[0] for t in self.trials if t.second}

    def describe(self) -> str:
        distinct = {(pair.kind, pair.failpoint) for pair in self.pairs}
        kills = len(self.pairs) + sum(trial.second is not None for trial in self.trials)
        return (
            f"crash matrix: {len(distinct)} pairs of writer kind and failpoint "
            f"({len(self.pairs)} counting repeated passes), {len(self.trials)} trials, "
            f"{kills} kill points, {len(self.violations)} violations, {self.seconds:.0f} s"
        )


def all_pairs(place: Path) -> list[Pair]:
    """Every pair there is, found by running every writer kind once."""
    kinds = sorted(writer_kinds())
    found = _in_processes(_discover, [(kind, str(place / f"d{n}")) for n, kind in enumerate(kinds)])
    return sorted(pair for pairs in found for pair in pairs)


def sample(pairs: Sequence[Pair], count: int, seed: int = 3) -> list[Pair]:
    """Always the same pairs: one for every failpoint first, then as they come.

    For a failpoint that is passed several times the last pass counts: it leaves most to recover.
    """
    shuffled = sorted(pairs)
    random.Random(seed).shuffle(shuffled)
    first = {pair.failpoint: pair for pair in sorted(shuffled, key=lambda pair: pair.nth)}
    rest = [pair for pair in shuffled if pair not in first.values()]
    return sorted([*first.values(), *rest][:count])


def interrupted(pairs: Iterable[Pair]) -> list[Pair]:
    """These pairs, stopped by SIGINT instead of SIGKILL."""
    return [replace(pair, action="interrupt") for pair in pairs]


def run_matrix(
    pairs: Sequence[Pair],
    place: Path,
    *,
    second_kills_max: int | None = None,
    progress: Callable[[int], None] = lambda pairs_done: None,
) -> Matrix:
    """Try every pair; ``second_kills_max`` limits the kills inside the recovery of each.

    Whatever the limit, a recovery is killed at least once at every failpoint that any reached.
    """
    started = time.monotonic()
    work = [(pair, n, str(place), second_kills_max) for n, pair in enumerate(pairs)]
    trials: list[Trial] = []
    for done, of_pair in enumerate(_in_processes(_try_pair, work), start=1):
        trials += of_pair
        progress(done)
    trials += _in_processes(_try_second, list(_left_out(trials, str(place))))
    return Matrix(tuple(pairs), tuple(trials), time.monotonic() - started)


# -- in the worker processes -----------------------------------------------------------------------


def _discover(work: tuple[str, str]) -> list[Pair]:
    return discover(*work)


def _try_pair(work: tuple[Pair, int, str, int | None]) -> list[Trial]:
    pair, number, place, second_kills_max = work
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as room:
        try:
            scene = stop_writer(pair, f"{room}/scene")
            first = converge(scene.copied_to(f"{room}/once"))
            trials = [first]
            for n, second in enumerate(_chosen(first, number, second_kills_max)):
                trials.append(kill_recovery(scene.copied_to(f"{room}/twice{n}"), *second))
            trials.append(write_on(scene))
        except (Stuck, OmnigraphError) as failure:
            return [Trial(pair, None, (f"{type(failure).__name__}: {failure}",))]
    return trials


def _left_out(trials: Sequence[Trial], place: str) -> Iterator[tuple[Pair, str, str]]:
    """A pair for every failpoint that recoveries reached and none was killed at."""
    killed = {trial.second[0] for trial in trials if trial.second is not None}
    for trial in trials:
        for name in trial.reached_in_recovery:
            if name not in killed:
                killed.add(name)
                yield trial.pair, name, place


def _try_second(work: tuple[Pair, str, str]) -> Trial:
    pair, name, place = work
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as room:
        try:
            return kill_recovery(stop_writer(pair, f"{room}/scene"), name)
        except (Stuck, OmnigraphError) as failure:
            return Trial(pair, (name, 1), (f"{type(failure).__name__}: {failure}",))


def _chosen(first: Trial, number: int, limit: int | None) -> list[tuple[str, int]]:
    """The failpoints at which a pair's recovery is killed; a limit goes around with its number."""
    reached = [
        (name, nth + 1) for name, times in first.reached_in_recovery.items() for nth in range(times)
    ]
    if limit is not None and reached:
        start = number % len(reached)
        reached = (reached[start:] + reached[:start])[:limit]
    return reached


def _in_processes(function: Callable[[_Work], _Found], work: Iterable[_Work]) -> Iterator[_Found]:
    """Results in the order of the work, each as soon as it and those before it are there."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=context) as pool:
        yield from pool.map(function, work)


def graph_failpoints() -> set[str]:
    """Every failpoint of a graph; those of clusters have a matrix of their own (tests/cluster)."""
    return {name for name in NAMES if not name.startswith("cluster.")}
