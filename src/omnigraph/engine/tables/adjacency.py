"""Adjacency in CSR form: the edges of one type, by the node they leave or enter.

The neighbours of a node are contiguous and sorted by ordinal, parallel edges by edge ordinal. So
both access paths return neighbours in the same order, repeated neighbours are adjacent, and
connectivity of two nodes is a binary search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints


class Hits(NamedTuple):
    """Edges found from given nodes, as parallel arrays in the order of ``origin``."""

    origin: Ints
    """The index of the given node."""
    node: Ints
    edge: Ints


class Reached(NamedTuple):
    """Neighbours found from given nodes, without their edges, in the order of ``origin`` and then
    of the neighbour's storage position.
    """

    origin: Ints
    node: Ints


@dataclass(frozen=True, slots=True)
class Adjacency:
    """CSR arrays: ``nodes[starts[n]:starts[n + 1]]`` are the neighbours of node ``n``."""

    starts: Ints
    nodes: Ints
    edges: Ints

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.nodes.nbytes + self.edges.nbytes)

    def degrees(self, nodes: Ints) -> Ints:
        if len(nodes) * 4 >= len(self.starts):
            return chunked.take(self._all_degrees(), nodes)
        return chunked.mapped(lambda part: self.starts[part + 1] - self.starts[part], nodes)

    def _all_degrees(self) -> Ints:
        """The degree of every node: one pass, where two scattered reads per node cost more."""
        found = np.empty(len(self.starts) - 1, dtype=np.int32)
        for part in chunked.chunks(len(found)):
            after = slice(part.start + 1, part.stop + 1)
            np.subtract(self.starts[after], self.starts[part], out=found[part], casting="unsafe")
        return found

    def edges_of(self, nodes: Ints) -> Hits:
        """All edges of these nodes."""
        return Hits(*self._found(nodes, (self.nodes, self.edges)))

    def neighbours(self, nodes: Ints) -> Reached:
        """The neighbours of these nodes, one per edge."""
        return Reached(*self._found(nodes, (self.nodes,)))

    def _found(self, nodes: Ints, columns: tuple[Ints, ...]) -> tuple[Ints, ...]:
        """For every edge of these nodes: the index of its node, and its values in the columns."""
        if len(nodes) == 1:
            node = int(nodes[0])
            first, last = self.starts[node], self.starts[node + 1]
            origin = np.zeros(last - first, dtype=np.int32)
            return origin, *(column[first:last] for column in columns)
        low = chunked.take(self.starts, nodes)
        counts = self.degrees(nodes)
        if len(nodes) <= chunked.LONG_ROWS and len(counts) and counts.max() <= 1:
            origin = np.flatnonzero(counts).astype(np.int32)
            places = low[origin]
            return origin, *(column[places] for column in columns)
        ends = chunked.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if total <= chunked.LONG_ROWS and len(nodes) <= chunked.LONG_ROWS:
            origin, places = _edge_offsets(low, counts, ends)
            return origin, *(column[places] for column in columns)
        found = [np.empty(total, dtype=np.int32) for _ in (None, *columns)]
        end = 0
        for part in chunked.output_chunks(ends):
            origin, places = _edge_offsets(low[part], counts[part], ends[part] - end)
            start, end = end, end + len(origin)
            np.add(origin, part.start, out=found[0][start:end], casting="unsafe")
            for made, column in zip(found[1:], columns, strict=True):
                made[start:end] = column[places]
        return tuple(found)

    def counts_of(self, nodes: Ints, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
        """The number of each node's edges that a mask over all edges selects."""
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
        """The insertion point of node ``second[i]`` among the neighbours of ``first[i]``."""
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
        """The adjacency without parallel edges: the first of each is kept."""
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


def _edge_offsets(low: Ints, counts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """For every edge: the index of its node, and its offset. Node ``i`` has ``counts[i]`` edges
    from offset ``low[i]`` on.
    """
    total = int(ends[-1]) if len(ends) else 0
    origin = np.arange(len(low), dtype=np.int32).repeat(counts)
    places = (low - (ends - counts)).repeat(counts)
    places += np.arange(total)
    return origin, places


def build_adjacency(near: Ints, far: Ints, near_count: int) -> Adjacency:
    """Build CSR arrays from the ends of every edge; edges with an unknown end (-1) are left out."""
    edges = np.arange(len(near), dtype=np.int32)
    known = chunked.mapped(lambda one, other: (one >= 0) & (other >= 0), near, far)
    if not known.all():
        near, far, edges = chunked.compress(known, near, far, edges)
    by_far = _stable_argsort(far)
    order = chunked.take(by_far, _stable_argsort(chunked.take(near, by_far)))
    starts = np.zeros(near_count + 1, dtype=np.int64)
    starts[1:] = chunked.cumsum(chunked.bincount(near, near_count))
    checkpoint()
    return Adjacency(starts, chunked.take(far, order).astype(np.int32), chunked.take(edges, order))


def _stable_argsort(nodes: Ints) -> Ints:
    """A stable argsort. Key and position are packed into one integer and sorted, which is several
    times as fast as ``np.argsort``.
    """
    keys = np.empty(len(nodes), dtype=np.int64)
    for part in chunked.chunks(len(nodes)):
        keys[part] = nodes[part].astype(np.int64) << 32
        keys[part] |= np.arange(part.start, part.stop)
    keys = chunked.sort(keys)
    for part in chunked.chunks(len(keys)):
        keys[part] &= 0xFFFFFFFF
    return keys
