"""Shortest distances from the nearest source node, in edges or as a sum of weights."""

from __future__ import annotations

import numpy as np

from omnigraph.bulk.tasks import Tasks
from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import (
    SWEEPS_MAX,
    AlgorithmOptions,
    AlgorithmResult,
    SweepTask,
    sweep,
)


def distances(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    """Distances in the chosen direction of edges. Unreachable nodes have null."""
    sweep(tasks, "measuring distances", _begin, network, options)
    number, changes = 0, 1
    while changes and number < SWEEPS_MAX:
        number += 1
        name = f"measuring distances ({number})"
        changes = sum(sweep(tasks, name, _relax, network, options, number))
        network.scratch.remove((f"distance/{number - 1}",))
    found = sweep(tasks, "measuring distances", _finish, network, options, number)
    reached = sum(pair[0] for pair in found)
    farthest = max((pair[1] for pair in found if pair[0]), default=0)
    mark = np.inf if network.selection.weight else -1
    statistics = {"reached": reached, "farthest": farthest}
    marks = {"distance": mark}
    return AlgorithmResult({"distance": "distance/final"}, number, not changes, statistics, marks)


def _begin(task: SweepTask) -> None:
    values = np.full(task.network.size(task.block), np.inf)
    values[list(task.options.sources.get(task.block, ()))] = 0.0
    task.network.scratch.put(f"distance/0/{task.block}", values=values)


def _relax(task: SweepTask) -> int:
    """Relax the edges of a block; returns how many distances became shorter."""
    network, block, direction = task.network, task.block, task.options.direction
    every = network.scratch.vector(f"distance/{task.sweep - 1}", network.blocks)
    edges = network.links(block, undirected=direction == "both", reverse=direction == "in")
    length = 1.0 if edges.weight is None else edges.weight
    before = every[network.starts[block] : network.starts[block + 1]]
    now = before.copy()
    np.minimum.at(now, edges.own, every[edges.other] + length)
    network.scratch.put(f"distance/{task.sweep}/{block}", values=now)
    return int(np.count_nonzero(now < before))


def _finish(task: SweepTask) -> tuple[int, float]:
    """Write the final distances; returns the number of reached nodes and the maximum."""
    network, block = task.network, task.block
    values = network.scratch.get(f"distance/{task.sweep}/{block}")["values"]
    reached = np.isfinite(values)
    if network.selection.weight is None:
        values = np.where(reached, values, -1).astype(np.int64)
    network.scratch.put(f"distance/final/{block}", values=values)
    farthest = values[reached].max().item() if reached.any() else 0
    return int(np.count_nonzero(reached)), farthest
