"""PageRank: the share of time that a walker along random edges spends at each node.

Edges count as often as they are stored, or by their weight. What a walker holds at nodes without
edges to follow is spread over all nodes, so the ranks of a graph always add up to one.

The *residual* is how much the last sweep changed all ranks together: the sum of the absolute
changes. A sweep brings any two vectors of ranks nearer to each other by the factor of the damping
d, at least, so the ranks are at most residual * d / (1 - d) away from the exact ones, again summed
over all nodes. The tolerance bounds the residual, whatever the number of nodes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from omnigraph.errors import InvalidInput
from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import Computed, Settings, SweepTask, sweep
from omnigraph.spark.tasks import Tasks

WEIGHTS_MIN: Final = 1e-290
"""The least sum of weights at a node: with less, a share of a rank is not a finite number."""

Vector = np.ndarray[Any, Any]


def pagerank(tasks: Tasks, network: Network, settings: Settings) -> Computed:
    """Ranks whose residual is at most the tolerance, unless the allowed sweeps are used up."""
    lost = sum(sweep(tasks, "ranking nodes", _begin, network, settings))
    number, residual = 0, float("inf") if network.nodes else 0.0
    while number < settings.sweeps_max and residual > settings.tolerance:
        number += 1
        found = sweep(tasks, f"ranking nodes ({number})", _rank, network, settings, number, lost)
        lost, residual = sum(pair[0] for pair in found), sum(pair[1] for pair in found)
        network.scratch.remove((f"share/{number - 1}", f"rank/{number - 1}"))
    converged = residual <= settings.tolerance
    statistics = {"residual": residual} if number else {}
    return Computed({"rank": f"rank/{number}"}, number, converged, statistics)


def _begin(task: SweepTask) -> float:
    network, block = task.network, task.block
    edges = network.links(block, reverse=True)
    size = network.size(block)
    leaving = np.bincount(edges.own, weights=edges.weight, minlength=size).astype(np.float64)
    if not np.isfinite(leaving).all() or ((leaving > 0) & (leaving < WEIGHTS_MIN)).any():
        raise InvalidInput(
            f"the weights at some node add up to less than {WEIGHTS_MIN} or to infinity",
            remedy="Scale the weights.",
        )
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
