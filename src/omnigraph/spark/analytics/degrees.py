"""Degrees: the number of edges that begin and end at each node. Parallel edges count separately."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.bulk.tasks import Tasks
from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import AlgorithmOptions, AlgorithmResult, SweepTask, sweep

COLUMNS = ("degree", "in_degree", "out_degree")


def degrees(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    found = sweep(tasks, "counting edges", _count, network, options)
    statistics: dict[str, Any] = {
        column: {
            "min": min(part[at][0] for part in found if part[at] is not None),
            "max": max(part[at][1] for part in found if part[at] is not None),
            "mean": network.edges * (2 if column == "degree" else 1) / network.nodes,
        }
        for at, column in enumerate(COLUMNS)
        if network.nodes
    }
    isolated = sum(part[-1] for part in found)
    return AlgorithmResult(
        {name: name for name in COLUMNS}, 1, True, {**statistics, "isolated": isolated}
    )


def _count(task: SweepTask) -> tuple[Any, ...]:
    """Count the edges of a block; returns min and max of each column, and isolated nodes."""
    network, block = task.network, task.block
    size = network.size(block)
    arriving = np.bincount(network.links(block).own, minlength=size)
    leaving = np.bincount(network.links(block, reverse=True).own, minlength=size)
    every = (arriving + leaving, arriving, leaving)
    for column, values in zip(COLUMNS, every, strict=True):
        network.scratch.put(f"{column}/{block}", values=values)
    extremes = [(int(c.min()), int(c.max())) if size else None for c in every]
    return (*extremes, int(np.count_nonzero(every[0] == 0)))
