"""Cached edges: all edges of a type at one version, with their adjacency and what is made of it.

Adjacency is derived from that of an earlier version where little has changed, else read from a file
or built. Everything is kept in the memory cache of the process under keys that contain the versions
of the edges and of both node types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import ClassVar, Final, cast

import numpy as np

from omnigraph.catalog.rows import TablePin
from omnigraph.engine.cache.adjacency_update import AdjacencyChanges, EdgeArrays, updated_adjacency
from omnigraph.engine.cache.memory_cache import WAIT_SECONDS, MemoryCache
from omnigraph.engine.cache.row_mapping import read_fresh
from omnigraph.engine.tables.adjacency import Adjacency, Hits, Reached, build_adjacency
from omnigraph.engine.tables.edge_set import EdgeSet
from omnigraph.engine.tables.loaded import (
    CachedNodes,
    CachedTable,
    Direction,
    LatestVersions,
    StoreEntry,
)
from omnigraph.lang.schema import DST, SRC, EdgeType
from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask
from omnigraph.storage.lance.tables import PinnedTable

EDGES_STORED_MIN: Final = 100_000
"""The adjacency of fewer edges is rebuilt faster than a file is read."""
PAIRS_PER_EDGE: Final = 8
"""An edge set is made for this many times fewer pairs than there are edges."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The ordinals of both ends of every edge; -1 for a node that does not exist."""

    source: Ints
    target: Ints

    @property
    def nbytes(self) -> int:
        return int(self.source.nbytes + self.target.nbytes)


class CachedEdges(CachedTable):
    """All edges of one type at one version, with the versions of both node types."""

    access_path: ClassVar[str] = "adjacency"

    def __init__(
        self,
        kind: EdgeType,
        pin: TablePin,
        key: str,
        cache: MemoryCache,
        open_table: Callable[[], PinnedTable],
        latest: LatestVersions,
        source: CachedNodes,
        target: CachedNodes,
        store_entry: Callable[[], StoreEntry] | None = None,
    ) -> None:
        super().__init__(kind, pin, key, cache, open_table, latest, store_entry)
        self._source = source
        self._target = target
        links = f"{key}/{source.key}/{target.key}"
        self._ends_key = f"{links}/ends"
        self._joined_key = f"{links}/joined"
        self._set_keys = {joined: f"{links}/set/{joined}" for joined in (False, True)}
        self._degree_keys = {way: f"{links}/degrees/{way}" for way in ("out", "in")}
        self._adjacency_keys = {
            (direction, distinct): f"{links}/{direction}/{distinct}"
            for direction in ("out", "in")
            for distinct in (False, True)
        }

    def edges_of(self, direction: Direction, nodes: Ints) -> Hits:
        """The outgoing or incoming edges of nodes."""
        return self.adjacency(direction).edges_of(nodes)

    def neighbours(self, direction: Direction, nodes: Ints) -> Reached:
        """The distinct neighbours of nodes in one direction."""
        return self.adjacency(direction, distinct=True).neighbours(nodes)

    def count(self, direction: Direction, nodes: Ints, *, distinct: bool) -> Ints:
        """The degree of each of these nodes."""
        return self.adjacency(direction, distinct=distinct).degrees(nodes)

    def expansion_bound(self, nodes: int) -> int:
        """An upper bound of the number of edges found from ``nodes`` nodes."""
        return nodes * self.rows

    def far_count(self, direction: Direction) -> int | None:
        """The number of nodes at the far end, which bounds their ordinals."""
        return self._target.rows if direction == "out" else self._source.rows

    def prefetch(self, direction: Direction, id: str) -> None:
        """Nothing: the adjacency is in memory."""

    def finish_prefetch(self) -> None:
        """Nothing: see ``prefetch``."""

    def is_resident(self, columns: Iterable[str]) -> bool:
        """Whether a query of these columns finds everything it needs in memory."""
        return self.has_columns(columns) and (self.has_adjacency("out") or self.has_adjacency("in"))

    def has_adjacency(self, direction: Direction) -> bool:
        return self.cache.get(self._adjacency_keys[direction, False]) is not None

    def adjacency(self, direction: Direction, *, distinct: bool = False) -> Adjacency:
        key = self._adjacency_keys[direction, distinct]
        found = self.cache.get(key)
        if found is not None:
            return cast(Adjacency, found)
        if distinct:
            return self.cache.get_or_make(key, self.adjacency(direction).distinct)
        return self.cache.get_or_make(key, lambda: self._build(direction))

    @property
    def has_joined_adjacency(self) -> bool:
        return self.cache.get(self._joined_key) is not None

    def joined_adjacency(self) -> Adjacency:
        """The distinct neighbours of every node in either direction; both ends have one type."""
        return self.cache.get_or_make(self._joined_key, self._join)

    def _join(self) -> Adjacency:
        ways: tuple[Direction, ...] = ("out", "in")
        found = [self.adjacency(way, distinct=True) for way in ways]
        near = [chunked.repeat(np.diff(item.starts), np.int32) for item in found]
        far = [item.nodes for item in found]
        count = self._source.rows
        both = build_adjacency(chunked.concatenate(near), chunked.concatenate(far), count)
        return both.distinct()

    def edge_set(self, *, joined: bool) -> EdgeSet:
        """The pairs of nodes that an edge connects, from source to target or ``joined``."""
        key = self._set_keys[joined]
        found = self.cache.get(key)
        if found is not None:
            return cast(EdgeSet, found)
        of = self.joined_adjacency() if joined else self.adjacency("out", distinct=True)
        return self.cache.get_or_make(key, lambda: EdgeSet(of, self._target.rows))

    def connected(self, source: Ints, target: Ints, *, joined: bool) -> Mask:
        """Whether an edge leads from ``source[i]`` to ``target[i]``, or ``joined`` back."""
        if len(source) * PAIRS_PER_EDGE >= self.rows or self.cache.get(self._set_keys[joined]):
            return self.edge_set(joined=joined).contains(source, target)
        found = self.adjacency("out").connected(source, target)
        return found | self.adjacency("in").connected(source, target) if joined else found

    def degrees(self, direction: Direction) -> Ints:
        """The number of edges that leave or enter every node."""
        return self.cache.get_or_make(
            self._degree_keys[direction], lambda: self._count_edges(direction)
        )

    def _count_edges(self, direction: Direction) -> Ints:
        opposite: Direction = "in" if direction == "out" else "out"
        if self.has_adjacency(opposite) and not self.has_adjacency(direction):
            count = self._source.rows if direction == "out" else self._target.rows
            counts = chunked.bincount(self.adjacency(opposite).nodes, count)
        else:
            counts = np.diff(self.adjacency(direction).starts)
        return chunked.mapped(lambda part: part.astype(np.int32), counts)

    def _build(self, direction: Direction) -> Adjacency:
        made = self._updated(direction)
        if made is None:
            made = self._read_or_build(direction)
        self.latest.note(self, direction)
        return made

    def _read_or_build(self, direction: Direction) -> Adjacency:
        if self.store_entry is None or self.rows < EDGES_STORED_MIN:
            return self._make(direction)
        store, name = self.store_entry()
        name = f"{name}/{direction}"
        found = store.read(name)
        if found is not None:
            return Adjacency(found["starts"], found["nodes"], found["edges"])
        made = self._make(direction)
        store.write(name, {"starts": made.starts, "nodes": made.nodes, "edges": made.edges})
        return made

    def _updated(self, direction: Direction) -> Adjacency | None:
        """The adjacency of an earlier version, updated; None if there is none."""
        earlier = self.latest.before(self.ref, direction)
        if not isinstance(earlier, CachedEdges):
            return None
        known: Adjacency | None = self.cache.get(earlier._adjacency_keys[direction, False])
        if known is None or len(known.nodes) < earlier.rows:
            return None  # a dangling edge may get its node later
        edges = self.delta(earlier, follow=False)
        near = self._source.delta(earlier._source, follow=True)
        far = self._target.delta(earlier._target, follow=True)
        if edges is None or near is None or far is None:
            return None
        fresh = read_fresh(self.open(), edges, [SRC, DST])
        ends = self._source.resolve(fresh[SRC]), self._target.resolve(fresh[DST])
        added = EdgeArrays(*ends, edges.fresh)
        count = self._source.rows
        if direction == "in":
            added = EdgeArrays(added.far, added.near, added.edge)
            near, far, count = far, near, self._target.rows
        return updated_adjacency(known, AdjacencyChanges(near, far, edges, added), count)

    def _make(self, direction: Direction) -> Adjacency:
        ends = self.cache.get_or_make(self._ends_key, self._find_ends)
        if direction == "out":
            return build_adjacency(ends.source, ends.target, self._source.rows)
        return build_adjacency(ends.target, ends.source, self._target.rows)

    def _find_ends(self) -> Ends:
        if not self.rows:
            none = np.array([], dtype=np.int32)
            return Ends(none, none)
        found = self.open().scan([SRC, DST])
        workers = ThreadPoolExecutor(2)  # Arrow releases the interpreter lock
        try:
            source = workers.submit(self._source.resolve, found[SRC])
            target = workers.submit(self._target.resolve, found[DST])
            # An Arrow call cannot be interrupted; a cancelled query does not wait for it.
            while wait((source, target), timeout=WAIT_SECONDS).not_done:
                checkpoint()
            return Ends(source.result(), target.result())
        finally:
            workers.shutdown(wait=False)
