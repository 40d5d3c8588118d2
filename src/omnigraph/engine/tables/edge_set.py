"""Edge sets: whether an edge connects two given nodes, for many pairs of nodes at once.

A bitmap over all pairs of nodes where that is small. Otherwise a bitmap over hashes of the edges,
which answers most pairs that are no edge, and a binary search in the adjacency for the rest.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from omnigraph.engine.tables.adjacency import Adjacency
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask

PAIRS_MAX: Final = 1 << 25
"""Pairs of nodes that get a bit each: 4 MB."""
BITS_PER_EDGE: Final = 12
"""Of the pairs that are no edge, less than one of twelve has the hash of an edge."""
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio of 64 bits: products of different pairs differ in their upper bits."""


class EdgeSet:
    """The pairs of an adjacency, as a set."""

    def __init__(self, adjacency: Adjacency, far_count: int) -> None:
        self._adjacency = adjacency
        near_count = len(adjacency.starts) - 1
        self._width = far_count if near_count * far_count <= PAIRS_MAX else 0
        """The number of nodes at the far end where pairs are not hashed, otherwise 0."""
        bits = max(10, (BITS_PER_EDGE * len(adjacency.nodes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._bitmap = self._make(near_count * far_count if self._width else 1 << bits)

    @property
    def nbytes(self) -> int:
        return int(self._bitmap.nbytes)

    def _make(self, size: int) -> Ints:
        adjacency = self._adjacency
        marks = np.zeros(size, dtype=bool)
        ends = adjacency.starts[1:]
        for part in chunked.output_chunks(ends):
            counts = np.diff(adjacency.starts[part.start : part.stop + 1])
            near = np.arange(part.start, part.stop, dtype=np.int64).repeat(counts)
            found = slice(int(adjacency.starts[part.start]), int(ends[part.stop - 1]))
            marks[self._places(near, adjacency.nodes[found])] = True
        return np.packbits(marks, bitorder="little")

    def _places(self, near: Ints, far: Ints) -> Ints:
        """The bit of each pair."""
        if self._width:
            return np.asarray(near.astype(np.int64) * self._width + far)
        keys = near.astype(np.uint64) << np.uint64(32) | far.astype(np.uint64)
        return np.asarray((keys * _MULTIPLIER >> self._shift).astype(np.int64))

    def contains(self, near: Ints, far: Ints) -> Mask:
        """Whether ``near[i]`` has an edge to ``far[i]``."""
        found = np.empty(len(near), dtype=bool)
        for part in chunked.chunks(len(near)):
            found[part] = self._contains(near[part], far[part])
        return found

    def _contains(self, near: Ints, far: Ints) -> Mask:
        places = self._places(near, far)
        found = (self._bitmap[places >> 3] >> (places & 7).astype(np.uint8) & 1).view(bool)
        if not self._width:
            left = np.flatnonzero(found)
            found[left] = self._adjacency.connected(near[left], far[left])
        return np.asarray(found)
