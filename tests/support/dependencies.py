"""The dependency graph of a history, and the cycles that show it was not serial.

Nodes are operations. An edge ``a -> b`` says that in any serial order ``a`` comes first: ``ww``
when b wrote the next version of what a wrote, ``wr`` when b read what a wrote, ``rw`` when b wrote
the next version of what a read. All passes are linear in the number of edges.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.support.history import Lists, Operation


class Edge(StrEnum):
    WW = "ww"
    WR = "wr"
    RW = "rw"


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a cycle, with the key it is about."""

    source: int
    target: int
    kind: Edge
    key: str


class Dependencies:
    """The edges between operations, by kind; one edge per (source, target, kind) is kept."""

    def __init__(self) -> None:
        self._keys: dict[Edge, dict[int, dict[int, str]]] = {kind: {} for kind in Edge}

    def add(self, source: int, target: int, kind: Edge, key: str) -> None:
        if source != target:
            self._keys[kind].setdefault(source, {}).setdefault(target, key)

    def successors(self, kinds: Iterable[Edge]) -> Callable[[int], Iterator[int]]:
        chosen = [self._keys[kind] for kind in kinds]

        def following(node: int) -> Iterator[int]:
            for edges in chosen:
                yield from edges.get(node, ())

        return following

    def nodes(self) -> list[int]:
        """Every operation with an outgoing edge, in order."""
        return sorted({node for edges in self._keys.values() for node in edges})

    def inside(self, kind: Edge, members: set[int]) -> Iterator[Step]:
        """The edges of one kind within a set of operations."""
        for source in sorted(members):
            for target, key in self._keys[kind].get(source, {}).items():
                if target in members:
                    yield Step(source, target, kind, key)

    def steps(self, path: list[int], kinds: Iterable[Edge]) -> list[Step]:
        """A path of operations as edges, each the first of ``kinds`` that connects its ends."""
        chosen = list(kinds)
        found = []
        for source, target in itertools.pairwise(path):
            kind = next(k for k in chosen if target in self._keys[k].get(source, {}))
            found.append(Step(source, target, kind, self._keys[kind][source][target]))
        return found


def build(
    operations: Iterable[Operation], order: Lists, writers: Mapping[int, int]
) -> Dependencies:
    """The edges that the version order of every key and the reads imply.

    ``writers`` maps each visible value to the number of the operation that appended it; reads that
    are no prefix of the order must have been reported before and are skipped.
    """
    edges = Dependencies()
    for key, values in order.items():
        known = [writers[v] for v in values if v in writers]
        for earlier, later in itertools.pairwise(known):
            edges.add(earlier, later, Edge.WW, key)
    for operation in operations:
        for key, seen in operation.read.items():
            values = order.get(key, ())
            if len(seen) > len(values) or values[: len(seen)] != seen:
                continue
            if seen and seen[-1] in writers:
                edges.add(writers[seen[-1]], operation.number, Edge.WR, key)
            following = next((v for v in values[len(seen) :] if v in writers), None)
            if following is not None:
                edges.add(operation.number, writers[following], Edge.RW, key)
    return edges


def components(nodes: Iterable[int], following: Callable[[int], Iterator[int]]) -> list[set[int]]:
    """The strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[set[int]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, following(root))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    members = _pop_component(node, stack, on_stack)
                    if len(members) > 1:
                        found.append(members)
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                on_stack.add(child)
                work.append((child, following(child)))
            elif child in on_stack:
                low[node] = min(low[node], index[child])
    return found


def _pop_component(node: int, stack: list[int], on_stack: set[int]) -> set[int]:
    members: set[int] = set()
    while node not in members:
        members.add(stack.pop())
    on_stack -= members
    return members


def shortest_path(
    source: int, target: int, members: set[int], following: Callable[[int], Iterator[int]]
) -> list[int] | None:
    """The shortest way from one operation to another within a set of operations."""
    came_from: dict[int, int] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == target:
            path = [node]
            while path[-1] != source:
                path.append(came_from[path[-1]])
            return path[::-1]
        for child in following(node):
            if child in members and child not in came_from:
                came_from[child] = node
                queue.append(child)
    return None
