"""Traversal: who is reached from given nodes.

Reachability is counted from each start on its own: breadth first, every node once, nobody visits
the start again. A stored edge from a node to itself is the one exception: it reaches its own node
one hop after the node itself was reached, and leads no further. Both ways of finding neighbours
(adjacency in memory, look-ups in the tables) go through here, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from omnigraph.frozen import frozen
from omnigraph.predicates.values import Ints
from omnigraph.read import sets
from omnigraph.read.adjacency import Hits, Reached
from omnigraph.read.limits import Guard
from omnigraph.read.tables import Direction

_SHIFT: Final = 32
_NODE: Final = (1 << _SHIFT) - 1


class Expands(Protocol):
    """The edges of one type, however they are found."""

    def edges_of(self, direction: Direction, nodes: Ints) -> Hits: ...

    def neighbours(self, direction: Direction, nodes: Ints) -> Reached: ...

    def count(self, direction: Direction, nodes: Ints, *, distinct: bool) -> Ints: ...


@frozen
class Walk:
    """How to go from the known end of an edge to the other."""

    edges: Expands
    direction: Direction
    undirected: bool
    positions: Callable[[Ints], Ints]
    """Storage positions of the nodes that are found."""
    edge_positions: Callable[[Ints], Ints]
    nodes_count: int | None = None
    """How many nodes there are to be found, where ordinals stay below that."""

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return ("out", "in") if self.undirected else (self.direction,)

    def edges_of(self, nodes: Ints) -> Hits:
        """One hit per stored edge and orientation that fits; an edge to itself fits once."""
        first = self.edges.edges_of(self._directions[0], nodes)
        if not self.undirected:
            return first
        second = self.edges.edges_of("in", nodes)
        other = second.node != nodes[second.origin]
        parts = [first, Hits(*(column[other] for column in second))]
        origin, node, edge = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((self.edge_positions(edge), self.positions(node), origin))
        return Hits(origin[order], node[order], edge[order])

    def neighbours(self, nodes: Ints) -> Reached:
        """Every neighbour of each node once."""
        if not self.undirected:
            return self.edges.neighbours(self.direction, nodes)
        hits = [self.edges.neighbours(way, nodes) for way in self._directions]
        origin = np.concatenate([hit.origin for hit in hits])
        node = np.concatenate([hit.node for hit in hits])
        keys = sets.unique(origin.astype(np.int64) << _SHIFT | node)
        return self._sorted(keys)

    def reach(self, nodes: Ints, low: int, high: int, guard: Guard, *, reverse: bool) -> Reached:
        """Everything reached in ``low`` to ``high`` hops. ``reverse``: the nodes are the ends of
        the walks and their starts are found."""
        if (low, high) == (1, 1):
            return self.neighbours(nodes)
        starts = np.arange(len(nodes), dtype=np.int64) << _SHIFT | nodes
        visited = self._visited(starts)
        frontier = starts
        found: list[Ints] = []
        loops = np.array([], dtype=np.int64)
        for hop in range(1, high + 1):
            guard.check()
            step = self.neighbours((frontier & _NODE).astype(np.int32))
            guard.allow_frame(visited.count + len(step.node))
            itself = step.node == (frontier & _NODE)[step.origin]
            keys = (frontier[step.origin] >> _SHIFT) << _SHIFT | step.node
            if itself.any():
                if hop == 1:
                    loops = keys[itself]
                if hop >= low and not reverse:
                    found.append(keys[itself])
                keys = keys[~itself]
            frontier = visited.fresh(keys)
            if not len(frontier):
                break
            if hop >= low:
                found.append(frontier)
            elif reverse and hop == low - 1:
                found.append(_of_origins(frontier, loops))
        if reverse and low == 1:
            found.append(loops)
        return self._sorted(sets.unique(np.concatenate(found)) if found else starts[:0])

    def _visited(self, starts: Ints) -> _Sorted | _Marked:
        if len(starts) == 1 and self.nodes_count is not None:
            return _Marked(starts, self.nodes_count)
        return _Sorted(starts)

    def _sorted(self, keys: Ints) -> Reached:
        """Sorted keys as arrays, found nodes in storage order."""
        origin = (keys >> _SHIFT).astype(np.int32)
        node = (keys & _NODE).astype(np.int32)
        positions = self.positions(node)
        if positions is not node:
            order = np.lexsort((positions, origin))
            origin, node = origin[order], node[order]
        return Reached(origin, node)


class _Sorted:
    """Which nodes were visited, from which start: as a sorted set."""

    def __init__(self, starts: Ints) -> None:
        self._known = np.sort(starts)

    @property
    def count(self) -> int:
        return len(self._known)

    def fresh(self, keys: Ints) -> Ints:
        """Those that were not visited before, once each; they are now."""
        found = sets.without(sets.unique(keys), self._known)
        if len(found):
            self._known = sets.union(self._known, found)
        return found


class _Marked:
    """The same for one start, whose keys are the nodes themselves: as marks on all nodes."""

    def __init__(self, starts: Ints, nodes_count: int) -> None:
        self._marks = np.zeros(nodes_count, dtype=bool)
        self._marks[starts] = True
        self._places = np.empty(nodes_count, dtype=np.int32)
        self.count = len(starts)

    def fresh(self, keys: Ints) -> Ints:
        found = keys[~self._marks[keys]]
        places = np.arange(len(found), dtype=np.int32)
        self._places[found] = places  # of equal keys one remains: the one written last
        found = found[self._places[found] == places]
        self._marks[found] = True
        self.count += len(found)
        return np.asarray(found)


def _of_origins(keys: Ints, loops: Ints) -> Ints:
    """Those whose origin has an edge to itself: walking backwards, it is the last hop."""
    return np.asarray(keys[sets.among(keys >> _SHIFT, np.sort(loops >> _SHIFT))])
