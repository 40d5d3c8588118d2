"""Shortest distances from the nearest of some nodes, in edges or in the sum of their weights."""

from __future__ import annotations

import numpy as np

from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import SWEEPS_MAX, Computed, Settings, SweepTask, sweep
from omnigraph.spark.tasks import Tasks


def distances(tasks: Tasks, network: Network, settings: Settings) -> Computed:
    """Distances along the edges, against them or both ways. Nodes out of reach have none."""
    sweep(tasks, "measuring distances", _begin, network, settings)
    number, changes = 0, 1
    while changes and number < SWEEPS_MAX:
        number += 1
        name = f"measuring distances ({number})"
        changes = sum(sweep(tasks, name, _reach, network, settings, number))
        network.scratch.remove((f"distance/{number - 1}",))
    found = sweep(tasks, "measuring distances", _finish, network, settings, number)
    reached = sum(pair[0] for pair in found)
    farthest = max((pair[1] for pair in found if pair[0]), default=0)
    mark = np.inf if network.selection.weight else -1
    statistics = {"reached": reached, "farthest": farthest}
    marks = {"distance": mark}
    return Computed({"distance": "distance/final"}, number, not changes, statistics, marks)


def _begin(task: SweepTask) -> None:
    values = np.full(task.network.size(task.block), np.inf)
    values[list(task.settings.sources.get(task.block, ()))] = 0.0
    task.network.scratch.put(f"distance/0/{task.block}", values=values)


def _reach(task: SweepTask) -> int:
    """One more edge; answers how many nodes are nearer now."""
    network, block, direction = task.network, task.block, task.settings.direction
    every = network.scratch.vector(f"distance/{task.sweep - 1}", network.blocks)
    edges = network.links(block, undirected=direction == "both", reverse=direction == "in")
    length = 1.0 if edges.weight is None else edges.weight
    before = every[network.starts[block] : network.starts[block + 1]]
    now = before.copy()
    np.minimum.at(now, edges.own, every[edges.other] + length)
    network.scratch.put(f"distance/{task.sweep}/{block}", values=now)
    return int(np.count_nonzero(now < before))


def _finish(task: SweepTask) -> tuple[int, float]:
    """Leave the distances as they are shown; answers how many nodes were reached and how far."""
    network, block = task.network, task.block
    values = network.scratch.get(f"distance/{task.sweep}/{block}")["values"]
    reached = np.isfinite(values)
    if network.selection.weight is None:
        values = np.where(reached, values, -1).astype(np.int64)
    network.scratch.put(f"distance/final/{block}", values=values)
    farthest = values[reached].max().item() if reached.any() else 0
    return int(np.count_nonzero(reached)), farthest
