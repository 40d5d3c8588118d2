"""Edge expansion: the neighbours of given nodes, in one hop or in a range of hops.

Variable-length expansion is a breadth-first search per start node that visits every node once and
never returns to the start. The exception is a self-loop: it reaches its own node one hop after the
node itself was reached, and leads no further. Both access paths (adjacency in memory, look-ups in
the table) share this code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.limits import Guard
from omnigraph.engine.tables.adjacency import Adjacency, Hits, Reached
from omnigraph.engine.tables.loaded import Direction
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.engine.tables.probe import EdgeTable
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints

JOINED_NODES_MIN: Final = 1_000
"""Both directions of an edge type are joined into one adjacency for this many nodes."""
_SHIFT: Final = 32
_NODE: Final = (1 << _SHIFT) - 1


@dataclass(frozen=True, slots=True)
class Walk:
    """Expands edges of one type in one direction, or in both."""

    edges: EdgeTable
    direction: Direction
    undirected: bool
    positions: Callable[[Ints], Ints]
    """Storage positions of reached nodes."""
    edge_positions: Callable[[Ints], Ints]
    nodes_count: int | None = None
    """The number of nodes at the far end, where ordinals are below it."""

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return ("out", "in") if self.undirected else (self.direction,)

    def edges_of(self, nodes: Ints) -> Hits:
        """One hit per stored edge and matching direction; a self-loop matches once."""
        first = self.edges.edges_of(self._directions[0], nodes)
        if not self.undirected:
            return first
        second = self.edges.edges_of("in", nodes)
        other = chunked.mapped(
            lambda node, origin: node != nodes[origin], second.node, second.origin
        )
        parts = [first, Hits(*chunked.compress(other, *second))]
        origin, node, edge = (chunked.concatenate(columns) for columns in zip(*parts, strict=True))
        order = chunked.order((origin, self.positions(node), self.edge_positions(edge)))
        return Hits(*(chunked.take(column, order) for column in (origin, node, edge)))

    def adjacency(self, nodes_count: int) -> Adjacency | None:
        """The distinct neighbours of all nodes, where that is in memory or worth to be made for
        this many nodes.
        """
        if not isinstance(self.edges, CachedEdges):
            return None
        if not self.undirected:
            return self.edges.adjacency(self.direction, distinct=True)
        if nodes_count < JOINED_NODES_MIN and not self.edges.has_joined_adjacency:
            return None
        return self.edges.joined_adjacency()

    def neighbours(self, nodes: Ints) -> Reached:
        """Every neighbour of each node once."""
        if not self.undirected:
            return self.edges.neighbours(self.direction, nodes)
        joined = self.adjacency(len(nodes))
        if joined is not None:
            return joined.neighbours(nodes)
        hits = [self.edges.neighbours(way, nodes) for way in self._directions]
        origin = chunked.concatenate([hit.origin for hit in hits])
        node = chunked.concatenate([hit.node for hit in hits])
        return self._sorted(sets.unique(chunked.mapped(_key, origin, node)))

    def reach(self, nodes: Ints, low: int, high: int, guard: Guard, *, reverse: bool) -> Reached:
        """The nodes reached in ``low`` to ``high`` hops. ``reverse``: the given nodes are the ends
        of the paths, and their starts are found."""
        if (low, high) == (1, 1):
            return self.neighbours(nodes)
        starts = np.arange(len(nodes), dtype=np.int64) << _SHIFT | nodes
        visited = self._visited(starts)
        frontier = starts
        found: list[Ints] = []
        loops = np.array([], dtype=np.int64)
        for hop in range(1, high + 1):
            guard.check()
            nodes = chunked.mapped(_node, frontier)
            self._allow(guard, visited.count, nodes)
            step = self.neighbours(nodes)
            guard.allow_frame(visited.count + len(step.node))
            itself = chunked.mapped(
                lambda node, origin, nodes=nodes: node == nodes[origin], step.node, step.origin
            )
            keys = chunked.mapped(
                lambda node, origin, all=frontier: (all[origin] >> _SHIFT) << _SHIFT | node,
                *(step.node, step.origin),
            )
            if itself.any():
                if hop == 1:
                    loops = chunked.compress(itself, keys)[0]
                if hop >= low and not reverse:
                    found.append(chunked.compress(itself, keys)[0])
                keys = chunked.compress(~itself, keys)[0]
            frontier = visited.fresh(keys)
            if not len(frontier):
                break
            if hop >= low:
                found.append(frontier)
            elif reverse and hop == low - 1:
                found.append(_of_origins(frontier, loops))
        if reverse and low == 1:
            found.append(loops)
        return self._sorted(sets.unique(chunked.concatenate(found)) if found else starts[:0])

    def _allow(self, guard: Guard, visited: int, nodes: Ints) -> None:
        """Refuse a hop that would exceed the memory limit, before it runs."""
        most = self.nodes_count
        if most is not None and not guard.has_room(visited + len(nodes) * most):
            ways = [self.edges.count(way, nodes, distinct=True) for way in self._directions]
            guard.allow_frame(visited + sum(int(counts.sum()) for counts in ways))

    def _visited(self, starts: Ints) -> _VisitedPairs | _VisitedNodes:
        if len(starts) == 1 and self.nodes_count is not None:
            return _VisitedNodes(starts, self.nodes_count)
        return _VisitedPairs(starts)

    def _sorted(self, keys: Ints) -> Reached:
        """Sorted keys as arrays, reached nodes in storage order."""
        origin = chunked.mapped(lambda part: (part >> _SHIFT).astype(np.int32), keys)
        node = chunked.mapped(_node, keys)
        positions = self.positions(node)
        if positions is not node:
            order = chunked.order((origin, positions))
            origin, node = chunked.take(origin, order), chunked.take(node, order)
        return Reached(origin, node)


def _key(origin: Ints, node: Ints) -> Ints:
    """An origin and a node as one number."""
    return np.asarray(origin.astype(np.int64) << _SHIFT | node)


def _node(keys: Ints) -> Ints:
    return np.asarray((keys & _NODE).astype(np.int32))


class _VisitedPairs:
    """The visited nodes of every start, as a sorted set of pairs."""

    def __init__(self, starts: Ints) -> None:
        self._known = chunked.sort(starts)

    @property
    def count(self) -> int:
        return len(self._known)

    def fresh(self, keys: Ints) -> Ints:
        """The distinct keys that were not visited before; marks them visited."""
        found = sets.without(sets.unique(keys), self._known)
        if len(found):
            self._known = sets.union(self._known, found)
        return found


class _VisitedNodes:
    """The visited nodes of a single start, as a mask over all nodes."""

    def __init__(self, starts: Ints, nodes_count: int) -> None:
        self._marks = np.zeros(nodes_count, dtype=bool)
        self._marks[starts] = True
        self._places = np.empty(nodes_count, dtype=np.int32)
        self.count = len(starts)

    def fresh(self, keys: Ints) -> Ints:
        found = [self._fresh(keys[part]) for part in chunked.chunks(len(keys))]
        return chunked.concatenate(found) if found else keys

    def _fresh(self, keys: Ints) -> Ints:
        found = keys[~self._marks[keys]]
        places = np.arange(len(found), dtype=np.int32)
        self._places[found] = places  # of equal keys one remains: the one written last
        found = found[self._places[found] == places]
        self._marks[found] = True
        self.count += len(found)
        return np.asarray(found)


def _of_origins(keys: Ints, loops: Ints) -> Ints:
    """The keys whose origin has a self-loop: in reverse, the loop is the last hop."""
    origins = chunked.mapped(lambda part: part >> _SHIFT, keys)
    mask = sets.among(origins, chunked.sort(loops >> _SHIFT))
    return chunked.compress(mask, keys)[0]
