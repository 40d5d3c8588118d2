"""Ten thousand small commits with upkeep and a cleanup now and then: does anything grow?

The speed of a machine may change by half within the minutes of a soak. So a hundred more commits
alternate with the first hundred of a new graph, which separates the age of the graph from the
speed of the machine.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import omnigraph
from benchmarks.record import flatness, progress, spread
from omnigraph import Graph
from omnigraph.catalog.rows import MANIFEST_PATH

SCHEMA: Final = """
node Account { name: String @key  balance: I64? }
edge Paid: Account -> Account { amount: I64? }
"""
COMMITS: Final = int(os.environ.get("OMNIGRAPH_SOAK_COMMITS", "10000"))
ACCOUNTS: Final = 200
WINDOW: Final = 100
BATCH: Final = 10
BLOCK: Final = 1_000
KEEP: Final = 100
DATA: Final = (
    f"{COMMITS} commits (a payment: one new edge, two changed nodes of {ACCOUNTS}), local disk, "
    f"automatic upkeep, optimize and cleanup to {KEEP} commits every {BLOCK}"
)
WARM_UP: Final = "30 commits to another graph"
REPETITIONS: Final = COMMITS
BARS: Final = {
    "last_to_first_ratio": 1.5,
    "old_to_young_ratio": 1.5,
    "read_last_to_first_ratio": 1.5,
    "table_files_last_to_first_ratio": 1.5,
}
QUERY: Final = (
    'query q() { match { $a: Account { name: "a7" }  $a paid $b } return { $b.name } limit 5 }'
)


def run() -> dict[str, Any]:
    os.environ["OMNIGRAPH_READER_GRACE_SECONDS"] = "0"  # there are no readers of older states
    with tempfile.TemporaryDirectory() as directory:
        _pay(_graph(Path(directory) / "warm"), range(30))
        graph = _graph(Path(directory) / "measured")
        times_ms: list[float] = []
        reads_ms: list[float] = []
        files: list[tuple[int, int]] = []
        for start in range(0, COMMITS, BLOCK):
            times_ms += _pay(graph, range(start, min(start + BLOCK, COMMITS)))
            reads_ms.append(_read(graph))
            graph.maintenance.optimize()
            graph.maintenance.cleanup(keep=KEEP, confirm=True)
            files.append(_files(Path(graph.uri)))
            progress(f"  {start + BLOCK} commits, {files[-1]} files")
        aging = _aging(graph, _graph(Path(directory) / "young"))
        healthy = omnigraph.open(graph.uri, read_only=True).maintenance.check().healthy
    return {
        **aging,
        **flatness(times_ms, WINDOW),
        "read_ms_per_1000": [round(ms, 2) for ms in reads_ms],
        "read_last_to_first_ratio": round(reads_ms[-1] / reads_ms[0], 3),
        "table_files_per_1000": [tables for tables, _ in files],
        "table_files_last_to_first_ratio": round(files[-1][0] / files[0][0], 3),
        "manifest_files_per_1000": [manifest for _, manifest in files],
        "healthy": healthy,
    }


def _aging(old: Graph, young: Graph) -> dict[str, Any]:
    """The cost of a commit to a graph with many commits, and to a new one."""
    times_ms: dict[str, list[float]] = {"old": [], "young": []}
    for start in range(0, WINDOW, BATCH):
        times_ms["young"] += _pay(young, range(start, start + BATCH))
        times_ms["old"] += _pay(old, range(COMMITS + start, COMMITS + start + BATCH))
    return {
        "young_100_ms": spread(times_ms["young"]),
        "old_100_ms": spread(times_ms["old"]),
        "old_to_young_ratio": round(median(times_ms["old"]) / median(times_ms["young"]), 3),
    }


def _graph(place: Path) -> Graph:
    graph = omnigraph.init(place, SCHEMA)
    rows = [{"name": f"a{number}", "balance": 0} for number in range(ACCOUNTS)]
    graph.load({"Account": rows}, mode="append")
    return graph


def _pay(graph: Graph, numbers: range) -> list[float]:
    times_ms = []
    for number in numbers:
        payer, payee = f"a{number * 7 % ACCOUNTS}", f"a{(number * 7 + 1) % ACCOUNTS}"
        started = perf_counter()
        with graph.write() as w:
            w.update("Account", payer, {"balance": -number})
            w.update("Account", payee, {"balance": number})
            w.insert_edge("Paid", payer, payee, {"amount": number})
        times_ms.append((perf_counter() - started) * 1000)
    return times_ms


def _read(graph: Graph) -> float:
    """The median of warm reads, in milliseconds."""
    times_ms = []
    for _ in range(21):
        started = perf_counter()
        graph.query(QUERY).rows()
        times_ms.append((perf_counter() - started) * 1000)
    return median(times_ms[1:])


def _files(place: Path) -> tuple[int, int]:
    """How many files the tables have, and how many the manifest.

    Versions of the manifest stay for an hour, so those are bounded by an hour's commits.
    """
    everything = sum(1 for path in place.rglob("*") if path.is_file())
    manifest = sum(1 for path in (place / MANIFEST_PATH).rglob("*") if path.is_file())
    return everything - manifest, manifest
