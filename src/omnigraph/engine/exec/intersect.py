"""Intersection: nodes that several known nodes lead to, found or counted for all rows of a frame.

For every row the shortest of its lists of neighbours is enumerated and the others are tested for
membership. The work is the sum of the shortest lists, which is what the multiway joins with
worst-case-optimal bounds do for a triangle and every larger cycle. Candidates are made and tested
in blocks, so that memory is needed for those that remain only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from omnigraph.engine.exec.expand import Walk
from omnigraph.engine.tables.adjacency import Adjacency, Reached
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask

CANDIDATES: Final = 1 << 17
"""Candidates that are made at once."""

Membership = Callable[[Ints, Ints], Mask]
"""Whether each known node leads to each candidate."""


@dataclass(frozen=True, slots=True)
class KnownEnd:
    """The known end of an edge to the node that is sought, for all rows of a frame."""

    adjacency: Adjacency
    """The distinct neighbours of known nodes."""
    known: Ints
    """The known node of each row."""
    leads_to: Membership


def known_end(walk: Walk, known: Ints) -> KnownEnd:
    """The known end of a walk: a node for each row."""
    edges, joined = walk.edges, walk.undirected
    assert isinstance(edges, CachedEdges)  # orders by cost are for types in memory
    if joined:
        adjacency = edges.joined_adjacency()
    else:
        adjacency = edges.adjacency(walk.direction, distinct=True)

    def leads_to(near: Ints, far: Ints) -> Mask:
        source, target = (near, far) if walk.direction == "out" else (far, near)
        return edges.connected(source, target, joined=joined)

    return KnownEnd(adjacency, known, leads_to)


@dataclass(frozen=True, slots=True)
class Intersection:
    """For every row the nodes that all ``sides`` lead to, no side of ``absent`` does, and that
    differ from the nodes ``different``.
    """

    sides: Sequence[KnownEnd]
    absent: Sequence[KnownEnd] = ()
    different: Sequence[Ints] = ()
    rows: int = field(kw_only=True)

    def nodes(self, allow: Callable[[int], None]) -> Reached:
        """The nodes of each row, in the order of rows. ``allow`` refuses too many of them."""
        found: list[Reached] = []
        total = 0
        for part in self._found():
            found.append(part)
            total += len(part.node)
            allow(total)
        if not found:
            none = np.array([], dtype=np.int32)
            return Reached(none, none)
        origin = chunked.concatenate([part.origin for part in found])
        return Reached(origin, chunked.concatenate([part.node for part in found]))

    def counts(self) -> Ints:
        """The number of nodes of each row."""
        if len(self.sides) == 1 and len(self.different) <= 1 and len(self.absent) <= 1:
            return self._counts_left()
        counts = np.zeros(self.rows, dtype=np.int64)
        for part in self._found():
            if len(part.origin):
                first, last = int(part.origin[0]), int(part.origin[-1]) + 1
                counts[first:last] += np.bincount(part.origin - first, minlength=last - first)
        return counts

    def _counts_left(self) -> Ints:
        """All neighbours less those that are excluded, which are fewer to look at."""
        side = self.sides[0]
        counts = side.adjacency.degrees(side.known).astype(np.int64)
        for absent in self.absent:
            counts -= Intersection((side, absent), rows=self.rows).counts()
        for node in self.different:
            excluded = side.leads_to(side.known, node)
            for absent in self.absent:
                excluded &= ~absent.leads_to(absent.known, node)
            counts -= excluded
        return counts

    def _found(self) -> Iterator[Reached]:
        """The nodes of consecutive rows, block by block."""
        shortest, sizes = _shortest([item.adjacency.degrees(item.known) for item in self.sides])
        for part in chunked.output_chunks(chunked.cumsum(sizes), CANDIDATES):
            yield self._block(part, shortest[part])

    def _block(self, rows: slice, shortest: Ints) -> Reached:
        found = [
            self._tested(at, (np.flatnonzero(chosen) + rows.start).astype(np.int32))
            for at in range(len(self.sides))
            if (chosen := shortest == at).any()
        ]
        if len(found) == 1:
            return found[0]
        origin = np.concatenate([part.origin for part in found])
        node = np.concatenate([part.node for part in found])
        order = np.argsort(origin, kind="stable")
        return Reached(origin[order], node[order])

    def _tested(self, at: int, rows: Ints) -> Reached:
        """The nodes of rows whose shortest list is that of side ``at``."""
        side = self.sides[at]
        places, node = side.adjacency.neighbours(side.known[rows])
        origin = rows[places]
        for number, other in enumerate(self.sides):
            if number != at:
                origin, node = _where(other.leads_to(other.known[origin], node), origin, node)
        for known in self.different:
            origin, node = _where(known[origin] != node, origin, node)
        for other in self.absent:
            origin, node = _where(~other.leads_to(other.known[origin], node), origin, node)
        return Reached(origin, node)


def _where(mask: Mask, origin: Ints, node: Ints) -> tuple[Ints, Ints]:
    return origin[mask], node[mask]


def _shortest(lengths: Sequence[Ints]) -> tuple[Ints, Ints]:
    """For every row, which of several lists is the shortest, and its length."""
    sizes = lengths[0]
    shortest = np.zeros(len(sizes), dtype=np.int8)
    for at, other in enumerate(lengths[1:], 1):
        shortest[other < sizes] = at
        sizes = np.minimum(sizes, other)
    return shortest, sizes
