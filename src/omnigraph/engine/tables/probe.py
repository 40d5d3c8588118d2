"""Probed tables: only the entities that a query needs, looked up in the stored table.

Nothing is cached. Entities get ordinals in the order of look-ups, local to one query; results are
sorted by storage position, so that rows come in the same order as from cached tables. A query that
needs many entities raises ``ProbeTooWide`` and runs on cached tables instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.engine.tables.adjacency import Adjacency, Hits, Reached
from omnigraph.engine.tables.loaded import CachedNodes, CachedTable, Direction, stored_columns
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.predicates.values import Ints, Values, empty_values, values_of
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable

PROBE_IDS_MAX: Final = 500
"""Looking up more ids than this in one step costs more than loading the columns."""
PROBE_ROWS_MAX: Final = 4_096
"""Entities that one probed table may fetch."""
_OFFSET: Final = (1 << FRAGMENT_SHIFT) - 1


class ProbeTooWide(Exception):
    """A probe needs too many entities. The engine catches it and uses cached tables."""


class _BackgroundRead(threading.Thread):
    """A scan that runs in a thread of its own."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        super().__init__(name="omnigraph-prefetch", daemon=True)
        self._read = read
        self._found: pa.Table | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._found = self._read()
        except Exception as error:
            self._error = error

    def result(self) -> pa.Table:
        self.join()
        if self._error is not None:
            raise self._error
        assert self._found is not None
        return self._found


class ProbedTable:
    """The entities of one type that were looked up so far."""

    access_path: ClassVar[str] = "look-up"

    def __init__(
        self,
        kind: NodeType | EdgeType,
        rows: int,
        open_table: Callable[[], PinnedTable],
        columns: Iterable[str],
    ) -> None:
        self.kind = kind
        self.rows = rows
        self._open = open_table
        self._types = {column.name: column.type for column in kind.columns()}
        self._stored = stored_columns(kind)
        self._columns = sorted({self._stored[name] for name in columns})
        self._parts: list[pa.Table] = []
        self._met: dict[int, int] = {}  # position in storage -> ordinal
        self._gathered: dict[str, tuple[int, Values]] = {}
        self._begun: dict[str | None, _BackgroundRead] = {}

    def is_all(self, ordinals: Ints) -> bool:
        return False

    def favours_whole_columns(self, rows: int) -> bool:
        return False

    def whole(self) -> CachedTable:
        """Refused: a probe reads a few entities."""
        raise ProbeTooWide

    def strings(self, name: str) -> Values | None:
        return None

    def gather(self, name: str, ordinals: Ints) -> Values:
        known, values = self._gathered.get(name, (-1, None))
        if known != len(self._met) or values is None:
            values = self._joined(name)
            self._gathered[name] = (len(self._met), values)
        return values.take(ordinals)

    def ids(self, ordinals: Ints) -> pa.Array:
        return self.gather("id", ordinals).to_arrow()

    def positions(self, ordinals: Ints) -> Ints:
        return np.array(list(self._met), dtype=np.int64)[ordinals]

    def _joined(self, name: str) -> Values:
        if not self._parts:
            return empty_values(self._types[name])
        parts = [part[self._stored[name]] for part in self._parts]
        chunks = [chunk for part in parts for chunk in part.chunks]
        return values_of(pa.chunked_array(chunks), self._types[name])

    def _begin(self, condition: str | None, known: Mapping[str, str]) -> None:
        """Start reading rows that ``fetch`` may need; ``finish_prefetch`` must follow."""
        reading = _BackgroundRead(lambda: self._read(condition, known))
        with suppress(RuntimeError):  # no more threads: the rows are read when they are needed
            reading.start()
            self._begun[condition] = reading

    def finish_prefetch(self) -> None:
        """Wait for all prefetches to end."""
        for reading in self._begun.values():
            reading.join()

    def _read(self, condition: str | None, known: Mapping[str, str]) -> pa.Table:
        columns = [name for name in self._columns if name not in known]
        found = self._open().scan(columns, condition, with_row_address=True)
        for name, value in known.items():
            values = pa.array([value] * found.num_rows, self._types[name].arrow_type())
            found = found.append_column(name, values)
        return found

    def fetch(
        self, condition: str | None, known: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Ints, pa.Table]:
        """The rows that satisfy a condition, in storage order, and their ordinals.

        ``known``: columns whose value the condition determines; they are not read.
        """
        begun = self._begun.get(condition)
        found = self._read(condition, known) if begun is None else begun.result()
        table = self._open()
        if found.num_rows > PROBE_ROWS_MAX:
            raise ProbeTooWide
        positions = self._storage_positions(table, found["_rowaddr"].to_numpy())
        if (positions[1:] < positions[:-1]).any():
            order = np.argsort(positions, kind="stable")
            # As a list: converting a numpy array makes pyarrow import numpy.ma.
            found = found.take(pa.array(order.tolist(), pa.int64()))
            positions = positions[order]
        fresh = [at for at, place in enumerate(positions.tolist()) if place not in self._met]
        for at in fresh:
            self._met[int(positions[at])] = len(self._met)
        if fresh:
            self._parts.append(found.take(fresh) if len(fresh) < found.num_rows else found)
        if len(self._met) > PROBE_ROWS_MAX:
            raise ProbeTooWide
        ordinals = [self._met[place] for place in positions.tolist()]
        return np.array(ordinals, dtype=np.int32), found

    def _storage_positions(self, table: PinnedTable, addresses: Ints) -> Ints:
        """Positions in scan order: by the index of the fragment, then by the offset within it."""
        place = {fragment: at for at, fragment in enumerate(table.fragment_ids)}
        fragments = (addresses >> FRAGMENT_SHIFT).astype(np.int64)
        ranks = np.array([place[int(f)] for f in fragments.tolist()], dtype=np.int64)
        return np.asarray((ranks << FRAGMENT_SHIFT) | (addresses & _OFFSET).astype(np.int64))


class ProbedNodes(ProbedTable):
    """Nodes looked up by id or by a pushed-down filter."""

    def __init__(
        self,
        kind: NodeType,
        rows: int,
        open_table: Callable[[], PinnedTable],
        columns: Iterable[str],
    ) -> None:
        super().__init__(kind, rows, open_table, {"id", *columns})
        self._by_id: dict[str, int] = {}  # -1: does not exist

    def candidates(self, pushed_down: Callable[[], str | None]) -> Ints:
        """The nodes that a scan tests: those that satisfy the filter pushed down to the table."""
        condition = pushed_down()
        if condition is None:
            raise ProbeTooWide
        return self.fetch(condition)[0]

    def find(self, id: str) -> Ints:
        """The ordinal of the node with this id, if there is one."""
        found = self.resolve(pa.array([id], type=pa.string()))
        return found[found >= 0]

    def resolve(self, ids: pa.Array | pa.ChunkedArray) -> Ints:
        """The ordinals of ids; -1 where there is no such node."""
        wanted = ids.to_pylist()
        unknown = [id for id in dict.fromkeys(wanted) if id not in self._by_id]
        if len(unknown) > PROBE_IDS_MAX:
            raise ProbeTooWide
        if unknown:
            condition = membership("id", pa.array(unknown, type=pa.string()))
            ordinals, found = self.fetch(condition, _only("id", unknown))
            self._by_id.update(dict.fromkeys(unknown, -1))
            self._by_id.update(zip(found["id"].to_pylist(), ordinals.tolist(), strict=True))
        return np.array([self._by_id[id] for id in wanted], dtype=np.int32)


class ProbedEdges(ProbedTable):
    """Edges looked up by the ids of their nodes."""

    def __init__(
        self,
        kind: EdgeType,
        rows: int,
        open_table: Callable[[], PinnedTable],
        columns: Iterable[str],
        source: ProbedNodes | CachedNodes,
        target: ProbedNodes | CachedNodes,
    ) -> None:
        super().__init__(kind, rows, open_table, {SRC, DST, *columns})
        self._ends = {"out": (source, target), "in": (target, source)}

    def adjacency(self, direction: Direction, *, distinct: bool = False) -> Adjacency | None:
        """None: edges are looked up."""
        return None

    def expansion_bound(self, nodes: int) -> int:
        """Nothing to check beforehand: a probe gives up at ``PROBE_ROWS_MAX``."""
        return 0

    def far_count(self, direction: Direction) -> int | None:
        """None: ordinals are given in the order of look-ups."""
        return None

    def prefetch(self, direction: Direction, id: str) -> None:
        """Start reading the edges of a node that may exist."""
        asked = SRC if direction == "out" else DST
        self._begin(_touching(asked, [id]), {asked: id})

    def neighbours(self, direction: Direction, nodes: Ints) -> Reached:
        origin, node, _ = self.edges_of(direction, nodes)
        first = np.ones(len(node), dtype=bool)  # parallel edges are adjacent
        first[1:] = (origin[1:] != origin[:-1]) | (node[1:] != node[:-1])
        return Reached(origin[first], node[first])

    def edges_of(self, direction: Direction, nodes: Ints) -> Hits:
        near, far = self._ends[direction]
        asked, other = (SRC, DST) if direction == "out" else (DST, SRC)
        if not len(nodes):
            return Hits(*(np.array([], dtype=np.int32) for _ in range(3)))
        ids = near.ids(nodes).to_pylist()
        unique = list(dict.fromkeys(ids))
        if len(unique) > PROBE_IDS_MAX:
            raise ProbeTooWide
        edges, found = self.fetch(_touching(asked, unique), _only(asked, unique))
        ends = far.resolve(found[other])
        by_id: dict[str, list[int]] = {id: [] for id in unique}
        for at, id in enumerate(found[asked].to_pylist()):
            if ends[at] >= 0:  # dangling edges are skipped
                by_id[id].append(at)
        origin, places = _spread(ids, by_id)
        if len(origin) > PROBE_ROWS_MAX:
            raise ProbeTooWide
        node, edge = ends[places], edges[places]
        order = np.lexsort((self.positions(edge), far.positions(node), origin))
        return Hits(origin[order], node[order], edge[order])

    def count(self, direction: Direction, nodes: Ints, *, distinct: bool) -> Ints:
        hits = (self.neighbours if distinct else self.edges_of)(direction, nodes)
        return np.bincount(hits[0], minlength=len(nodes))


def _only(column: str, ids: list[str]) -> dict[str, str]:
    """The column value that a look-up of a single id determines."""
    return {column: ids[0]} if len(ids) == 1 else {}


def _touching(column: str, ids: list[str]) -> str | None:
    """The filter for edges with one of these ids at one end."""
    return membership(column, pa.array(ids, type=pa.string()))


def _spread(ids: Sequence[str], by_id: dict[str, list[int]]) -> tuple[Ints, Ints]:
    origin = [at for at, id in enumerate(ids) for _ in by_id[id]]
    places = [place for id in ids for place in by_id[id]]
    return np.array(origin, dtype=np.int32), np.array(places, dtype=np.int64)


NodeTable: TypeAlias = CachedNodes | ProbedNodes
"""The nodes of a type, in memory or looked up. Both have the methods that execution uses."""
EdgeTable: TypeAlias = CachedEdges | ProbedEdges
EntityTable: TypeAlias = NodeTable | EdgeTable
