"""PageRank by power iteration.

Parallel edges count separately, or edges count by weight. The rank of dangling nodes (without
outgoing edges) is spread over all nodes, so the ranks of a graph add up to one.

The *residual* is the L1 norm of the change in the last sweep. A sweep is a contraction by the
damping factor d, so the L1 distance to the exact ranks is at most residual * d / (1 - d). The
tolerance bounds the residual, whatever the number of nodes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from omnigraph.bulk.tasks import Tasks
from omnigraph.errors import InvalidInput
from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import AlgorithmOptions, AlgorithmResult, SweepTask, sweep

WEIGHTS_MIN: Final = 1e-290
"""Smallest sum of weights at a node: below it, rank / sum is not finite."""

Vector = np.ndarray[Any, Any]


def pagerank(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    """Iterate until the residual is at most the tolerance, or ``sweeps_max`` is reached."""
    dangling = sum(sweep(tasks, "ranking nodes", _begin, network, options))
    number, residual = 0, float("inf") if network.nodes else 0.0
    while number < options.sweeps_max and residual > options.tolerance:
        number += 1
        found = sweep(tasks, f"ranking nodes ({number})", _rank, network, options, number, dangling)
        dangling, residual = sum(pair[0] for pair in found), sum(pair[1] for pair in found)
        network.scratch.remove((f"share/{number - 1}", f"rank/{number - 1}"))
    converged = residual <= options.tolerance
    statistics = {"residual": residual} if number else {}
    return AlgorithmResult({"rank": f"rank/{number}"}, number, converged, statistics)


def _begin(task: SweepTask) -> float:
    network, block = task.network, task.block
    edges = network.links(block, reverse=True)
    size = network.size(block)
    leaving = np.bincount(edges.own, weights=edges.weight, minlength=size).astype(np.float64)
    if not np.isfinite(leaving).all() or ((leaving > 0) & (leaving < WEIGHTS_MIN)).any():
        raise InvalidInput(
            f"the weights of a node add up to less than {WEIGHTS_MIN}, or to infinity",
            remedy="Scale the weights.",
        )
    network.scratch.put(f"leaving/{block}", values=leaving)
    rank = np.full(size, 1.0 / max(network.nodes, 1))
    return _put(task, rank, leaving)


def _rank(task: SweepTask) -> tuple[float, float]:
    """One sweep of a block; returns the rank of dangling nodes and the residual."""
    network, block, damping = task.network, task.block, task.options.damping
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
    """Write the ranks of a block and rank / weight; returns the rank of dangling nodes."""
    is_dangling = leaving == 0
    share = np.divide(rank, leaving, out=np.zeros_like(rank), where=~is_dangling)
    scratch = task.network.scratch
    scratch.put(f"share/{task.sweep}/{task.block}", values=share)
    scratch.put(f"rank/{task.sweep}/{task.block}", values=rank)
    return float(rank[is_dangling].sum())
