"""The history of an entity, the newest commits, and reads after many commits.

Graphs are made by ordinary commits of one changed row each. Each call is measured on a warm handle,
as a server or a notebook has one, and on a handle that has just been opened.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import omnigraph
from benchmarks.folders import bench_folder
from benchmarks.record import alternating, progress, spread
from omnigraph import Graph
from omnigraph.history.feed import POLL_COMMITS

SCHEMA: Final = "node Person { name: String @key\n age: I64? }\nedge Knows: Person -> Person"
QUERY: Final = 'query q() { match { $p: Person { name: "p7" } } return { $p.age } }'
PEOPLE: Final = 1_000
FEW: Final = 20
COMMITS: Final = 1_000
LONG: Final = 10_000
READ: Final = (3, 3_000)
REPETITIONS: Final = 20
WARM_UP: Final = "3 calls of each"
DATA: Final = (
    f"{PEOPLE} people; one changed {FEW} times in {COMMITS} commits, one changed {COMMITS} times; "
    f"{LONG} commits; branches of {READ[0]} and {READ[1]} commits; local disk, upkeep included"
)
BARS: Final = {
    "history_20_of_1000_ms": 50.0,
    "history_1000_changes_ms": 2_000.0,
    "newest_20_of_10000_ms": 50.0,
    "read_3000_to_3_ratio": 1.2,
}


def run() -> dict[str, Any]:
    with bench_folder("history") as folder:
        few = _cached(folder / "few", COMMITS, FEW, READ)
        many = _cached(folder / "many", COMMITS, COMMITS)
        long = _cached(folder / "long", LONG, 0)
        loaded = long.history.commits()[-2].commit_id
        assert len(long.history.changes(start=f"after:{loaded}").blocks) == POLL_COMMITS
        assert sum(1 for _ in few.history.entity("Person", "ana")) == FEW + 1
        assert sum(1 for _ in many.history.entity("Person", "ana")) == COMMITS + 1
        reads = alternating(
            [
                lambda: few.query(QUERY, branch=_branch(READ[0])),
                lambda: few.query(QUERY, branch=_branch(READ[1])),
            ],
            5 * REPETITIONS,
        )
        return {
            "history_20_of_1000_ms": _times(lambda: list(few.history.entity("Person", "ana"))),
            "history_20_of_1000_opened_ms": _times(
                lambda: list(_opened(few).history.entity("Person", "ana"))
            ),
            "history_1000_changes_ms": _times(
                lambda: list(many.history.entity("Person", "ana")), 5
            ),
            "blame_20_of_1000_ms": _times(lambda: few.history.blame("Person", "ana")),
            "newest_20_of_10000_ms": _times(lambda: long.history.commits(limit=20)),
            "newest_20_of_10000_opened_ms": _times(lambda: _opened(long).history.commits(limit=20)),
            "poll_128_commits_ms": _times(lambda: long.history.changes(start=f"after:{loaded}"), 5),
            "read_3_commits_ms": spread(reads[0]),
            "read_3000_commits_ms": spread(reads[1]),
            "read_3000_to_3_ratio": round(median(reads[1]) / median(reads[0]), 3),
        }


def _cached(place: Path, commits: int, changes: int, branches: tuple[int, ...] = ()) -> Graph:
    """The graph in a folder, which is created unless an earlier run left it."""
    whole = place.with_suffix(".whole")
    if not whole.exists():
        shutil.rmtree(place, ignore_errors=True)
        _make(place, commits, changes, branches)
        whole.touch()
    return omnigraph.open(place)


def _make(place: Path, commits: int, changes: int, branches: tuple[int, ...]) -> None:
    """So many commits, of which so many change one person; then branches of so many commits."""
    graph = omnigraph.init(place, SCHEMA)
    names = ["ana", *(f"p{number}" for number in range(PEOPLE))]
    graph.load({"Person": [{"name": name, "age": 0} for name in names]}, mode="append")
    chance = Random(7)
    chosen = set(chance.sample(range(commits), changes))
    for number in range(commits):
        name = "ana" if number in chosen else f"p{chance.randrange(PEOPLE)}"
        with graph.write(actor="bench", message=f"commit {number}") as w:
            w.update("Person", name, {"age": number + 1})
        if number and number % 1_000 == 0:
            progress(f"  {number} commits")
    for length in branches:
        graph.branches.create(_branch(length))
        for number in range(length):
            with graph.write(_branch(length)) as w:
                w.update("Person", f"p{number % PEOPLE}", {"age": -number - 1})


def _branch(commits: int) -> str:
    return f"of-{commits}"


def _opened(graph: Graph) -> Graph:
    return omnigraph.open(graph.uri, read_only=True)


def _times(call: Callable[[], object], repetitions: int = REPETITIONS) -> dict[str, float]:
    return spread(alternating([call], repetitions)[0])
