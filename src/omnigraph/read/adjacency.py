"""Adjacency: the edges of one type as numpy arrays, by the node they leave or enter.

Neighbours of a node lie together, ordered by position, parallel edges by the edge's position. So
the neighbours are in the same order whichever way they were found, repeated ones stand next to
each other, and whether two nodes are connected is a binary search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omnigraph.frozen import frozen
from omnigraph.predicates.values import Ints


class Hits(NamedTuple):
    """What was found from given nodes: parallel arrays, in the order of ``origin``."""

    origin: Ints
    """Which of the given nodes: a place in what was asked."""
    node: Ints
    edge: Ints


class Reached(NamedTuple):
    """The same where it does not matter by which edge, in the order of ``origin`` and then of the
    node's position.
    """

    origin: Ints
    node: Ints


@frozen
class Adjacency:
    """``nodes[starts[n]:starts[n + 1]]`` are the neighbours of node ``n``."""

    starts: Ints
    nodes: Ints
    edges: Ints

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.nodes.nbytes + self.edges.nbytes)

    def degrees(self, nodes: Ints) -> Ints:
        return np.asarray(self.starts[nodes + 1] - self.starts[nodes])

    def edges_of(self, nodes: Ints) -> Hits:
        """All edges of these nodes."""
        origin, places = self._places_of(nodes)
        return Hits(origin, self.nodes[places], self.edges[places])

    def neighbours(self, nodes: Ints) -> Reached:
        """What the edges of these nodes lead to."""
        origin, places = self._places_of(nodes)
        return Reached(origin, self.nodes[places])

    def _places_of(self, nodes: Ints) -> tuple[Ints, Ints | slice]:
        """Where the edges of nodes are, and which of the nodes has each."""
        if len(nodes) == 1:
            node = int(nodes[0])
            first, last = self.starts[node], self.starts[node + 1]
            return np.zeros(last - first, dtype=np.int32), slice(first, last)
        low = self.starts[nodes]
        counts = self.starts[nodes + 1] - low
        ends = counts.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        origin = np.arange(len(nodes), dtype=np.int32).repeat(counts)
        return origin, np.arange(total, dtype=np.int64) + (low - (ends - counts)).repeat(counts)

    def counts_of(self, nodes: Ints, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
        """How many neighbours of each node are in a mask over all of them."""
        before = np.zeros(len(mask) + 1, dtype=np.int64)
        np.cumsum(mask, out=before[1:])
        return np.asarray(before[self.starts[nodes + 1]] - before[self.starts[nodes]])

    def connected(self, first: Ints, second: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether ``second[i]`` is a neighbour of ``first[i]``: a binary search for every pair."""
        low = self.places(first, second)
        found = low < self.starts[first + 1]
        found[found] = self.nodes[low[found]] == second[found]
        return np.asarray(found)

    def places(self, first: Ints, second: Ints) -> Ints:
        """Where among the neighbours of ``first[i]`` node ``second[i]`` begins, or would."""
        low, high = self.starts[first], self.starts[first + 1]
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) >> 1
            below = np.zeros(len(low), dtype=bool)
            below[open_] = self.nodes[middle[open_]] < second[open_]
            low = np.where(open_ & below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        return np.asarray(low)

    def distinct(self) -> Adjacency:
        """The same without parallel edges: of several the first stays."""
        if len(self.nodes) < 2:
            return self
        owner = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        first = np.empty(len(self.nodes), dtype=bool)
        first[0] = True
        np.not_equal(self.nodes[1:], self.nodes[:-1], out=first[1:])
        first[1:] |= owner[1:] != owner[:-1]
        if first.all():
            return self
        before = np.concatenate(([0], np.cumsum(first, dtype=np.int64)))
        return Adjacency(before[self.starts], self.nodes[first], self.edges[first])


def build_adjacency(near: Ints, far: Ints, near_count: int) -> Adjacency:
    """From the ends of every edge, by edge; edges with an unknown end (-1) are left out."""
    edges = np.arange(len(near), dtype=np.int32)
    known = (near >= 0) & (far >= 0)
    if not known.all():
        near, far, edges = near[known], far[known], edges[known]
    by_far = _sorted_places(far)
    order = by_far[_sorted_places(near[by_far])]
    counts = np.bincount(near, minlength=near_count)
    starts = np.zeros(near_count + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return Adjacency(starts, far[order].astype(np.int32), edges[order])


def _sorted_places(nodes: Ints) -> Ints:
    """The places of nodes in the order of their numbers, equal ones in their own order.

    Numbers and places are sorted as one number each: several times as quick as ``argsort``.
    """
    keys = nodes.astype(np.int64) << 32
    keys |= np.arange(len(nodes))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys
