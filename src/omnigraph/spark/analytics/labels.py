"""Nodes that belong together: connected components, and communities by label propagation.

Both take edges in both directions. A component or a community is named by the number of one of its
nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.spark.analytics.network import Links, Network
from omnigraph.spark.analytics.sweeps import SWEEPS_MAX, Computed, Settings, SweepTask, sweep
from omnigraph.spark.tasks import Tasks

Vector = np.ndarray[Any, Any]


# -- connected components --------------------------------------------------------------------------


def components(tasks: Tasks, network: Network, settings: Settings) -> Computed:
    """The smallest number of a component, for each of its nodes.

    Every node points to some node of its component with a smaller number, in the end to the
    smallest. In each sweep it looks at what the nodes its neighbours point to point to, and tells
    the node it points to itself: the number of sweeps grows with the logarithm of the graph.
    """
    sweep(tasks, "finding components", _point_to_self, network, settings)
    number, changes = 0, network.nodes
    while changes and number < SWEEPS_MAX:
        number += 1
        name = f"finding components ({number})"
        changes = sum(sweep(tasks, name, _point_lower, network, settings, number))
        network.scratch.remove((f"component/{number - 1}", f"told/{number - 1}"))
    place = f"component/{number}"
    count, largest = _sizes(network, place)
    statistics = {"components": count, "largest": largest}
    return Computed({"component": place}, number, not changes, statistics)


def _point_to_self(task: SweepTask) -> None:
    first, last = task.network.starts[task.block], task.network.starts[task.block + 1]
    _leave(task, np.arange(first, last))


def _point_lower(task: SweepTask) -> int:
    """One sweep of a block; answers how many nodes point lower now."""
    network, block = task.network, task.block
    points = _pointers(network, task.sweep - 1)
    beyond = points[points]
    first, last = network.starts[block], network.starts[block + 1]
    lowest = beyond[first:last].copy()
    edges = network.links(block, undirected=True)
    np.minimum.at(lowest, edges.own, beyond[edges.other])
    own = points[first:last]
    told = np.flatnonzero(lowest < points[own])
    now = np.minimum(own, lowest)
    _leave(task, now, own[told], lowest[told])
    return int(np.count_nonzero(now < own)) + len(told)


def _pointers(network: Network, number: int) -> Vector:
    """What every node points to, after it heard what it was told."""
    found = network.scratch.vector(f"component/{number}", network.blocks)
    for block in range(network.blocks):
        told = network.scratch.get(f"told/{number}/{block}")
        np.minimum.at(found, told["node"], told["value"])
    return found


def _leave(
    task: SweepTask, values: Vector, node: Vector | None = None, value: Vector | None = None
) -> None:
    scratch, none = task.network.scratch, np.zeros(0, dtype=np.int64)
    scratch.put(f"component/{task.sweep}/{task.block}", values=values)
    scratch.put(
        f"told/{task.sweep}/{task.block}",
        node=none if node is None else node,
        value=none if value is None else value,
    )


# -- label propagation -----------------------------------------------------------------------------


def communities(tasks: Tasks, network: Network, settings: Settings) -> Computed:
    """Labels that spread: in each sweep every node takes the one most of its neighbours have.

    It has a vote of its own, and of several labels with as many votes the smallest wins, so that
    the outcome is the same every time. Ends when nothing changes, or after the allowed sweeps.
    """
    sweep(tasks, "spreading labels", _own_label, network, settings)
    number, changes = 0, network.nodes
    while changes and number < settings.sweeps_max:
        number += 1
        name = f"spreading labels ({number})"
        changes = sum(sweep(tasks, name, _spread, network, settings, number))
        network.scratch.remove((f"label/{number - 1}",))
    place = f"label/{number}"
    count, largest = _sizes(network, place)
    statistics = {"communities": count, "largest": largest}
    return Computed({"label": place}, number, not changes, statistics)


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


def most_voted(edges: Links, votes: Vector, own: Vector) -> Vector:
    """For each node the label with the most votes; of several the smallest."""
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


# -- how large they are ----------------------------------------------------------------------------


def _sizes(network: Network, place: str) -> tuple[int, int]:
    """How many groups there are, and the nodes of the largest."""
    _, counts = np.unique(network.scratch.vector(place, network.blocks), return_counts=True)
    return len(counts), int(counts.max(initial=0))
