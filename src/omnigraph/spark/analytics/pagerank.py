"""PageRank: the share of time that a walker along random edges spends at each node.

Edges count as often as they are stored, or by their weight. What a walker holds at nodes without
edges to follow is spread over all nodes, so the ranks of a graph always add up to one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import Computed, Settings, SweepTask, sweep
from omnigraph.spark.tasks import Tasks

Vector = np.ndarray[Any, Any]


def pagerank(tasks: Tasks, network: Network, settings: Settings) -> Computed:
    """Ranks that change by less than the tolerance per node in one more sweep."""
    lost = sum(sweep(tasks, "ranking nodes", _begin, network, settings))
    number, change = 0, float("inf") if network.nodes else 0.0
    while number < settings.sweeps_max and change > settings.tolerance * network.nodes:
        number += 1
        found = sweep(tasks, f"ranking nodes ({number})", _rank, network, settings, number, lost)
        lost, change = sum(pair[0] for pair in found), sum(pair[1] for pair in found)
        network.scratch.remove((f"share/{number - 1}", f"rank/{number - 1}"))
    settled = change <= settings.tolerance * network.nodes
    return Computed({"rank": f"rank/{number}"}, number, settled)


def _begin(task: SweepTask) -> float:
    network, block = task.network, task.block
    edges = network.links(block, reverse=True)
    size = network.size(block)
    leaving = np.bincount(edges.own, weights=edges.weight, minlength=size).astype(np.float64)
    network.scratch.put(f"leaving/{block}", values=leaving)
    rank = np.full(size, 1.0 / max(network.nodes, 1))
    return _put(task, rank, leaving)


def _rank(task: SweepTask) -> tuple[float, float]:
    """What this block has after one more step; answers what is lost and how much has changed."""
    network, block, damping = task.network, task.block, task.settings.damping
    edges = network.links(block)
    share = network.scratch.vector(f"share/{task.sweep - 1}", network.blocks)[edges.other]
    arriving = np.bincount(
        edges.own,
        weights=share if edges.weight is None else share * edges.weight,
        minlength=network.size(block),
    )
    rank = (1.0 - damping + damping * task.given) / network.nodes + damping * arriving
    before = network.scratch.get(f"rank/{task.sweep - 1}/{block}")["values"]
    leaving = network.scratch.get(f"leaving/{block}")["values"]
    return _put(task, rank, leaving), float(np.abs(rank - before).sum())


def _put(task: SweepTask, rank: Vector, leaving: Vector) -> float:
    """Leave the ranks of a block and what each edge carries on; answers what no edge carries."""
    stuck = leaving == 0
    share = np.divide(rank, leaving, out=np.zeros_like(rank), where=~stuck)
    scratch = task.network.scratch
    scratch.put(f"share/{task.sweep}/{task.block}", values=share)
    scratch.put(f"rank/{task.sweep}/{task.block}", values=rank)
    return float(rank[stuck].sum())
