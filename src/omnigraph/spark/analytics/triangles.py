"""Triangle counting: edges are undirected, and parallel edges count once.

Every edge is oriented from its end of lower degree to that of higher degree (ties by number). Each
triangle is then found exactly once, at its corner of lowest degree, and hubs have short lists: work
stays bounded on skewed degree distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from omnigraph.bulk.tasks import Tasks
from omnigraph.spark.analytics.network import Network
from omnigraph.spark.analytics.sweeps import AlgorithmOptions, AlgorithmResult, SweepTask, sweep

PATHS_AT_ONCE: Final = 4 << 20
"""Two-edge paths per batch: a few hundred megabytes."""

Vector = np.ndarray[Any, Any]


def triangles(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    sweep(tasks, "finding neighbours", _neighbours, network, options)
    sweep(tasks, "ordering neighbours", _order, network, options)
    sweep(tasks, "finding triangles", _find, network, options)
    found = sum(sweep(tasks, "counting triangles", _sum, network, options))
    return AlgorithmResult({"triangles": "triangles"}, 1, True, {"triangles": found // 3})


def _neighbours(task: SweepTask) -> None:
    """Distinct neighbours and degrees of the nodes of a block."""
    network, block = task.network, task.block
    edges = network.links(block, undirected=True)
    own, other = _distinct(edges.own, edges.other, network.nodes)
    apart = other != own + network.starts[block]
    own, other = own[apart], other[apart]
    network.scratch.put(f"neighbours/{block}", own=own, other=other)
    count = np.bincount(own, minlength=network.size(block))
    network.scratch.put(f"count/{block}", values=count)


def _order(task: SweepTask) -> None:
    """Orient the edges of a block towards neighbours of higher degree."""
    network, block = task.network, task.block
    count = network.scratch.vector("count", network.blocks)
    found = network.scratch.get(f"neighbours/{block}")
    own, other = found["own"], found["other"]
    node = own + network.starts[block]
    later = (count[other] > count[node]) | ((count[other] == count[node]) & (other > node))
    network.scratch.put(f"later/{block}", own=own[later], other=other[later])


def _find(task: SweepTask) -> None:
    """Count the triangles whose corner of lowest degree is in this block."""
    network, block = task.network, task.block
    mine = network.scratch.get(f"later/{block}")
    own, other = mine["own"], mine["other"]
    known = own * network.nodes + other  # ascending, because the pairs are
    counts = np.zeros(network.nodes, dtype=np.int64)
    for middle in range(network.blocks):
        first, last = network.starts[middle], network.starts[middle + 1]
        here = (other >= first) & (other < last)
        theirs = mine if middle == block else network.scratch.get(f"later/{middle}")
        for node, second, third in _paths(own[here], other[here] - first, theirs, last - first):
            closing = node * network.nodes + third
            at = np.searchsorted(known, closing)
            hit = np.flatnonzero(known[np.minimum(at, len(known) - 1)] == closing)
            for corner in (node[hit] + network.starts[block], second[hit] + first, third[hit]):
                counts += np.bincount(corner, minlength=network.nodes)
    for target in range(network.blocks):
        share = counts[network.starts[target] : network.starts[target + 1]]
        network.scratch.put(f"found/{target}/{block}", values=share)


def _paths(
    own: Vector, middle: Vector, theirs: dict[str, Vector], size: int
) -> Iterator[tuple[Vector, Vector, Vector]]:
    """Two-edge paths from ``own`` through ``middle``, in batches."""
    begins = np.searchsorted(theirs["own"], np.arange(size + 1))
    length = (begins[1:] - begins[:-1])[middle]
    total = np.cumsum(length)
    start = 0
    while start < len(own):
        done = total[start - 1] if start else 0
        end = max(int(np.searchsorted(total, done + PATHS_AT_ONCE)), start + 1)
        sizes = length[start:end]
        which = np.repeat(np.arange(start, min(end, len(own))), sizes)
        inside = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield own[which], middle[which], theirs["other"][begins[middle[which]] + inside]
        start = end


def _sum(task: SweepTask) -> int:
    network, block = task.network, task.block
    total = np.zeros(network.size(block), dtype=np.int64)
    for source in range(network.blocks):
        total += network.scratch.get(f"found/{block}/{source}")["values"]
    network.scratch.put(f"triangles/{block}", values=total)
    return int(total.sum())


def _distinct(own: Vector, other: Vector, nodes: int) -> tuple[Vector, Vector]:
    pairs = np.unique(own * nodes + other)
    return pairs // max(nodes, 1), pairs % max(nodes, 1)
