"""Adjacency: the edges of one type as numpy arrays, by the node they leave or enter.

Neighbours of a node lie together, ordered by position, parallel edges by the edge's position. So
the neighbours are in the same order whichever way they were found, repeated ones stand next to
each other, and whether two nodes are connected is a binary search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
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


@dataclass(frozen=True, slots=True)
class Adjacency:
    """``nodes[starts[n]:starts[n + 1]]`` are the neighbours of node ``n``."""

    starts: Ints
    nodes: Ints
    edges: Ints

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.nodes.nbytes + self.edges.nbytes)

    def degrees(self, nodes: Ints) -> Ints:
        return chunked.mapped(lambda part: self.starts[part + 1] - self.starts[part], nodes)

    def edges_of(self, nodes: Ints) -> Hits:
        """All edges of these nodes."""
        return Hits(*self._found(nodes, (self.nodes, self.edges)))

    def neighbours(self, nodes: Ints) -> Reached:
        """What the edges of these nodes lead to."""
        return Reached(*self._found(nodes, (self.nodes,)))

    def _found(self, nodes: Ints, columns: tuple[Ints, ...]) -> tuple[Ints, ...]:
        """Which of the nodes has each edge, and what the columns hold for it."""
        if len(nodes) == 1:
            node = int(nodes[0])
            first, last = self.starts[node], self.starts[node + 1]
            origin = np.zeros(last - first, dtype=np.int32)
            return origin, *(column[first:last] for column in columns)
        low = chunked.take(self.starts, nodes)
        counts = chunked.mapped(lambda part, start: self.starts[part + 1] - start, nodes, low)
        ends = chunked.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if total <= chunked.LONG_ROWS and len(nodes) <= chunked.LONG_ROWS:
            origin, places = _places_of(low, counts, ends)
            return origin, *(column[places] for column in columns)
        found = [np.empty(total, dtype=np.int32) for _ in (None, *columns)]
        end = 0
        for part in chunked.output_chunks(ends):
            origin, places = _places_of(low[part], counts[part], ends[part] - end)
            start, end = end, end + len(origin)
            np.add(origin, part.start, out=found[0][start:end], casting="unsafe")
            for made, column in zip(found[1:], columns, strict=True):
                made[start:end] = column[places]
        return tuple(found)

    def counts_of(self, nodes: Ints, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
        """How many neighbours of each node are in a mask over all of them."""
        before = chunked.concatenate((np.zeros(1, dtype=np.int64), chunked.cumsum(mask)))

        def counts(part: Ints) -> Ints:
            return np.asarray(before[self.starts[part + 1]] - before[self.starts[part]])

        return chunked.mapped(counts, nodes)

    def connected(self, first: Ints, second: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether ``second[i]`` is a neighbour of ``first[i]``: a binary search for every pair."""
        return chunked.mapped(self._connected, first, second)

    def _connected(self, first: Ints, second: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        low = self.places(first, second)
        found = low < self.starts[first + 1]
        found[found] = self.nodes[low[found]] == second[found]
        return np.asarray(found)

    def places(self, first: Ints, second: Ints) -> Ints:
        """Where among the neighbours of ``first[i]`` node ``second[i]`` begins, or would."""
        low, high = self.starts[first], self.starts[first + 1]
        while True:
            checkpoint()
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
        first = np.ones(len(self.nodes), dtype=bool)
        for part in chunked.chunks(len(self.nodes) - 1):
            after = slice(part.start + 1, part.stop + 1)
            np.not_equal(self.nodes[after], self.nodes[part], out=first[after])
        begins = self.starts[:-1]
        first[begins[begins < len(first)]] = True
        if first.all():
            return self
        before = chunked.concatenate((np.zeros(1, dtype=np.int64), chunked.cumsum(first)))
        nodes, edges = chunked.compress(first, self.nodes, self.edges)
        return Adjacency(chunked.take(before, self.starts), nodes, edges)


def _places_of(low: Ints, counts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Which node has each edge, and where it is: nodes have ``counts`` edges from ``low`` on."""
    total = int(ends[-1]) if len(ends) else 0
    origin = np.arange(len(low), dtype=np.int32).repeat(counts)
    return origin, np.arange(total, dtype=np.int64) + (low - (ends - counts)).repeat(counts)


def build_adjacency(near: Ints, far: Ints, near_count: int) -> Adjacency:
    """From the ends of every edge, by edge; edges with an unknown end (-1) are left out."""
    edges = np.arange(len(near), dtype=np.int32)
    known = chunked.mapped(lambda one, other: (one >= 0) & (other >= 0), near, far)
    if not known.all():
        near, far, edges = chunked.compress(known, near, far, edges)
    by_far = _sorted_places(far)
    order = chunked.take(by_far, _sorted_places(chunked.take(near, by_far)))
    starts = np.zeros(near_count + 1, dtype=np.int64)
    starts[1:] = chunked.cumsum(chunked.bincount(near, near_count))
    checkpoint()
    return Adjacency(starts, chunked.take(far, order).astype(np.int32), chunked.take(edges, order))


def _sorted_places(nodes: Ints) -> Ints:
    """The places of nodes in the order of their numbers, equal ones in their own order.

    Numbers and places are sorted as one number each: several times as quick as ``argsort``.
    """
    keys = np.empty(len(nodes), dtype=np.int64)
    for part in chunked.chunks(len(nodes)):
        keys[part] = nodes[part].astype(np.int64) << 32
        keys[part] |= np.arange(part.start, part.stop)
    keys = chunked.sort(keys)
    for part in chunked.chunks(len(keys)):
        keys[part] &= 0xFFFFFFFF
    return keys
