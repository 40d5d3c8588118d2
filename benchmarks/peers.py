"""Every family of queries against Kuzu, Ladybug and DuckDB on the same graph, alternating.

Numbers are shares: our median time divided by the peer's, so 0.5 is twice as fast. The peers run in
processes of their own (Kuzu and Ladybug cannot share one) and every engine gets the same parameters
in the same rounds. The first answers of all engines are compared before anything is measured.

``OMNIGRAPH_BENCH_SIZES`` (``small``, ``large`` or both) chooses the sizes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from statistics import median
from typing import Any, Final

from benchmarks.engines import Engine, Rows
from benchmarks.folders import bench_folder
from benchmarks.people import GQ, OPEN, make_files, parameters
from benchmarks.record import progress, spread

SIZES_ENVIRONMENT: Final = "OMNIGRAPH_BENCH_SIZES"
SIZES: Final = {"small": (200_000, 2_000_000), "large": (1_000_000, 10_000_000)}
DATA: Final = "seeded people: 200k nodes and 2M edges (small), 1M and 10M (large)"
WARM_UP: Final = "up to 30 calls of each query and engine, at most a second"
ROUNDS: Final = 10
CALLS: Final = 10
"""Calls in one round, each with other parameters."""
REPETITIONS: Final = ROUNDS * CALLS
WARM_CALLS: Final = 30
WARM_MS: Final = 1_000.0
ENGINE_MS: Final = 6_000.0
"""An engine that needs longer than this for all its rounds is called less often, at least
``ROUNDS_MIN`` times."""
ROUNDS_MIN: Final = 3
FASTER: Final = {
    # times as fast as kuzu and as ladybug, at least
    "point": (2, 0.7),
    "hop1_out": (5, 0.6),
    "hop1_in": (5, 0.6),
    "hop2": (10, 1.2),
    "hop3_count": (10, 1.2),
    "reach": (3, 2),
    "filter": (10, 10),
    "anti_join": (10, 10),
    "aggregate": (4, 2),
    "top_k": (4, 2),
}


def sizes() -> list[str]:
    chosen = os.environ.get(SIZES_ENVIRONMENT, "").split()
    return [name for name in SIZES if name in chosen] or list(SIZES)


BARS: Final = {
    f"{size}/{query}/{peer}": round(1 / faster, 4)
    for size in sizes()
    for query, both in FASTER.items()
    for peer, faster in zip(("kuzu", "ladybug"), both, strict=True)
}


def run() -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for size in sizes():
        nodes, edges = SIZES[size]
        with bench_folder(f"{nodes}-{edges}") as folder:
            make_files(folder, nodes, edges)
            for name in OPEN:  # one after the other: loading takes much memory
                progress(f"  {size}: {name}")
                Engine("people", name, folder, folder).close()
            with ExitStack() as stack:
                engines = [
                    stack.enter_context(Engine("people", name, folder, folder)) for name in OPEN
                ]
                for query in GQ:
                    numbers |= _measure(size, query, engines, nodes)
    return numbers


def _measure(size: str, query: str, engines: list[Engine], nodes: int) -> dict[str, Any]:
    values = parameters(query, nodes)
    first = next(values)
    answers = {engine.name: _bag(engine.rows(query, first)) for engine in engines}
    if len(set(answers.values())) != 1:
        raise RuntimeError(f"the engines do not agree on {query} with {first}")
    plans = {engine.name: _warm_up(engine, query, values) for engine in engines}
    times: dict[str, list[float]] = {engine.name: [] for engine in engines}
    for number in range(ROUNDS):
        given = list(islice(values, CALLS))
        for engine in engines:
            rounds, calls = plans[engine.name]
            if number < rounds:
                times[engine.name] += engine.measure(query, given[:calls])
    ours, *peers = engines
    best = median(times[ours.name])
    found: dict[str, Any] = {
        f"{size}/{query}/{peer.name}": round(best / median(times[peer.name]), 4) for peer in peers
    }
    found[f"{size}/{query}/ms"] = {name: spread(list_) for name, list_ in times.items()}
    return found


def _warm_up(engine: Engine, query: str, values: Iterator[Any]) -> tuple[int, int]:
    """Call a query until it is warm; returns rounds and calls per round within the time limit."""
    passed: list[float] = []
    while len(passed) < WARM_CALLS and sum(passed) < WARM_MS:
        passed += engine.measure(query, [next(values)])
    last = min(passed)
    calls = max(1, min(CALLS, int(ENGINE_MS / ROUNDS / last)))
    return max(ROUNDS_MIN, min(ROUNDS, int(ENGINE_MS / calls / last))), calls


def _bag(rows: Rows) -> str:
    """Rows without their order, floats as far as engines agree on them."""
    shown = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return json.dumps(sorted(shown, key=str))
