"""Connected components, and communities by label propagation.

Both ignore the direction of edges. A component or community is identified by the number of one of
its nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.bulk.tasks import Tasks
from omnigraph.spark.analytics.network import Network, NetworkLinks
from omnigraph.spark.analytics.sweeps import (
    SWEEPS_MAX,
    AlgorithmOptions,
    AlgorithmResult,
    SweepTask,
    sweep,
)

Vector = np.ndarray[Any, Any]


# -- connected components --------------------------------------------------------------------------


def components(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    """Connected components: for each node the smallest node number of its component.

    Minimum label propagation with pointer jumping: every node has a parent with a smaller number.
    In each sweep it takes the smallest grandparent among its neighbours, and also offers it to its
    own parent (hooking). The number of sweeps is logarithmic in the size of the graph.
    """
    sweep(tasks, "finding components", _init_parents, network, options)
    number, changes = 0, network.nodes
    while changes and number < SWEEPS_MAX:
        number += 1
        name = f"finding components ({number})"
        changes = sum(sweep(tasks, name, _lower_parents, network, options, number))
        network.scratch.remove((f"component/{number - 1}", f"offers/{number - 1}"))
    place = f"component/{number}"
    count, largest = _sizes(network, place)
    statistics = {"components": count, "largest": largest}
    return AlgorithmResult({"component": place}, number, not changes, statistics)


def _init_parents(task: SweepTask) -> None:
    first, last = task.network.starts[task.block], task.network.starts[task.block + 1]
    _put_parents(task, np.arange(first, last))


def _lower_parents(task: SweepTask) -> int:
    """One sweep of a block; returns the number of lowered and offered parents."""
    network, block = task.network, task.block
    parents = _parents(network, task.sweep - 1)
    grandparents = parents[parents]
    first, last = network.starts[block], network.starts[block + 1]
    lowest = grandparents[first:last].copy()
    edges = network.links(block, undirected=True)
    np.minimum.at(lowest, edges.own, grandparents[edges.other])
    own = parents[first:last]
    offers = np.flatnonzero(lowest < parents[own])
    now = np.minimum(own, lowest)
    _put_parents(task, now, own[offers], lowest[offers])
    return int(np.count_nonzero(now < own)) + len(offers)


def _parents(network: Network, number: int) -> Vector:
    """The parent of every node, with the offers of the last sweep applied."""
    found = network.scratch.vector(f"component/{number}", network.blocks)
    for block in range(network.blocks):
        offers = network.scratch.get(f"offers/{number}/{block}")
        np.minimum.at(found, offers["node"], offers["value"])
    return found


def _put_parents(
    task: SweepTask, values: Vector, node: Vector | None = None, value: Vector | None = None
) -> None:
    scratch, none = task.network.scratch, np.zeros(0, dtype=np.int64)
    scratch.put(f"component/{task.sweep}/{task.block}", values=values)
    scratch.put(
        f"offers/{task.sweep}/{task.block}",
        node=none if node is None else node,
        value=none if value is None else value,
    )


# -- label propagation -----------------------------------------------------------------------------


def communities(tasks: Tasks, network: Network, options: AlgorithmOptions) -> AlgorithmResult:
    """Label propagation: in each sweep every node takes the most frequent label around it.

    Its own label counts once, and ties go to the smallest label, so the result is deterministic.
    Ends when no label changes, or after ``sweeps_max``.
    """
    sweep(tasks, "spreading labels", _own_label, network, options)
    number, changes = 0, network.nodes
    while changes and number < options.sweeps_max:
        number += 1
        name = f"spreading labels ({number})"
        changes = sum(sweep(tasks, name, _spread, network, options, number))
        network.scratch.remove((f"label/{number - 1}",))
    place = f"label/{number}"
    count, largest = _sizes(network, place)
    statistics = {"communities": count, "largest": largest}
    return AlgorithmResult({"label": place}, number, not changes, statistics)


def _own_label(task: SweepTask) -> None:
    first, last = task.network.starts[task.block], task.network.starts[task.block + 1]
    _put_labels(task, np.arange(first, last))


def _spread(task: SweepTask) -> int:
    network, block = task.network, task.block
    labels = network.scratch.vector(f"label/{task.sweep - 1}", network.blocks)
    first, last = network.starts[block], network.starts[block + 1]
    before = labels[first:last]
    edges = network.links(block, undirected=True)
    now = most_voted(edges, labels[edges.other], before)
    _put_labels(task, now)
    return int(np.count_nonzero(now != before))


def most_voted(edges: NetworkLinks, votes: Vector, own: Vector) -> Vector:
    """The most frequent label per node; ties go to the smallest."""
    voters = np.concatenate([edges.own, np.arange(len(own))])
    labels = np.concatenate([votes, own])
    order = np.lexsort((labels, voters))
    voters, labels = voters[order], labels[order]
    new = np.ones(len(voters), dtype=bool)
    new[1:] = (voters[1:] != voters[:-1]) | (labels[1:] != labels[:-1])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(voters)))
    best = np.lexsort((labels[starts], -counts, voters[starts]))
    winners = best[np.unique(voters[starts][best], return_index=True)[1]]
    found: Vector = labels[starts][winners]
    return found


def _put_labels(task: SweepTask, values: Vector) -> None:
    task.network.scratch.put(f"label/{task.sweep}/{task.block}", values=values)


# -- sizes -----------------------------------------------------------------------------------------


def _sizes(network: Network, place: str) -> tuple[int, int]:
    """The number of groups, and the size of the largest."""
    _, counts = np.unique(network.scratch.vector(place, network.blocks), return_counts=True)
    return len(counts), int(counts.max(initial=0))
