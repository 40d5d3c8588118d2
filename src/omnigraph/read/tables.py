"""Types as the engine sees them: all of their entities, by ordinal.

An ordinal is the place of a row in the storage order of one version. Columns, ids and adjacency are
loaded when first asked for and kept in the cache of the process under the version they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import numpy as np

from omnigraph.read.adjacency import Adjacency, Hits, build_adjacency
from omnigraph.read.cache import Cache
from omnigraph.read.store import ArrayStore
from omnigraph.read.values import Ints, Values, empty_values, values_of
from omnigraph.schema import EdgeType, NodeType
from omnigraph.types import STRING, PropertyType

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.storage.tables import PinnedTable

Direction = Literal["out", "in"]
Kept: TypeAlias = tuple[ArrayStore, str]
"""Where derived arrays are kept, and what names the tables they are made from."""

ID_TYPE: Final = PropertyType(STRING)
LOOKUPS_MAX: Final = 1_000
"""More ids than this are found in one pass over all ids."""
KEPT_ROWS_MIN: Final = 100_000
"""The adjacency of fewer edges is made again in less time than a file takes."""
_LOOKUP_BYTES: Final = 160
"""What one entry of a dictionary from id to ordinal takes, roughly."""


@dataclass(frozen=True, slots=True)
class IdLookup:
    """From id to ordinal."""

    places: dict[str, int]

    @property
    def nbytes(self) -> int:
        return _LOOKUP_BYTES * len(self.places)


@dataclass(frozen=True, slots=True)
class Ends:
    """The ordinals of both ends of every edge, by edge; -1 for a node that does not exist."""

    source: Ints
    target: Ints

    @property
    def nbytes(self) -> int:
        return int(self.source.nbytes + self.target.nbytes)


class CachedTable:
    """The entities of one type at one version."""

    def __init__(
        self,
        kind: NodeType | EdgeType,
        rows: int,
        key: str,
        cache: Cache,
        open_table: Callable[[], PinnedTable],
    ) -> None:
        self.kind = kind
        self.rows = rows
        self.key = key
        self.cache = cache
        self._open = open_table
        self._types = {column.name: column.type for column in kind.columns()}
        self._keys = {name: f"{key}/column/{name}" for name in self._types}

    @property
    def all(self) -> Ints:
        """Every ordinal."""
        return self.cache.get(("all", self.rows), lambda: np.arange(self.rows, dtype=np.int32))

    def has_columns(self, names: Iterable[str]) -> bool:
        """Whether these columns are in memory."""
        return all(self.cache.peek(self._keys[name]) is not None for name in names)

    def prepare(self, names: Iterable[str]) -> None:
        """Load several columns in one pass over the table."""
        missing = sorted(n for n in set(names) if not self.has_columns([n]))
        if len(missing) > 1 and self.rows:
            found = self._open().scan(missing)
            for name in missing:
                self._column(name, lambda name=name: found[name])  # type: ignore[misc]

    def column(self, name: str) -> Values:
        """A property of all entities."""
        found = self.cache.peek(self._keys[name])
        if found is not None:
            return cast(Values, found)
        return self._column(name, lambda: self._open().scan([name])[name])

    def _column(self, name: str, read: Callable[[], Any]) -> Values:
        def load() -> Values:
            kind = self._types[name]
            return values_of(read(), kind) if self.rows else empty_values(kind)

        return self.cache.get(self._keys[name], load)

    def gather(self, name: str, ordinals: Ints) -> Values:
        """A property of some entities."""
        column = self.column(name)
        if len(ordinals) == self.rows and ordinals is self.all:
            return column
        return column.take(ordinals)

    def ids(self, ordinals: Ints) -> pa.Array:
        return self.gather("id", ordinals).to_arrow()

    def positions(self, ordinals: Ints) -> Ints:
        """Where entities stand in storage order: numbers that sort like it."""
        return ordinals


class CachedNodes(CachedTable):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lookup_key = f"{self.key}/lookup"

    def find(self, id: str) -> Ints:
        """The ordinal of the node with this id, if there is one."""
        place = self.lookup.places.get(id)
        return np.array([] if place is None else [place], dtype=np.int32)

    def resolve(self, ids: pa.Array | pa.ChunkedArray) -> Ints:
        """The ordinals of many ids; -1 where there is no such node."""
        import pyarrow.compute as pc

        if len(ids) <= LOOKUPS_MAX:
            places = self.lookup.places
            return np.array([places.get(id, -1) for id in ids.to_pylist()], dtype=np.int32)
        known = self.column("id").to_arrow()
        found = pc.index_in(ids, value_set=known.cast(ids.type))
        return np.asarray(found.fill_null(-1).to_numpy()).astype(np.int32)

    @property
    def lookup(self) -> IdLookup:
        return self.cache.get(self._lookup_key, self._make_lookup)

    def _make_lookup(self) -> IdLookup:
        ids = self.column("id").to_arrow().to_pylist()
        return IdLookup(dict(zip(ids, range(len(ids)), strict=True)))


class CachedEdges(CachedTable):
    """The edges of one type at one version, between nodes at theirs."""

    def __init__(
        self,
        kind: EdgeType,
        rows: int,
        key: str,
        cache: Cache,
        open_table: Callable[[], PinnedTable],
        source: CachedNodes,
        target: CachedNodes,
        kept: Callable[[], Kept] | None = None,
    ) -> None:
        super().__init__(kind, rows, key, cache, open_table)
        self._source = source
        self._target = target
        links = f"{key}/{source.key}/{target.key}"
        self._ends_key = f"{links}/ends"
        self._adjacency_keys = {
            (direction, distinct): f"{links}/{direction}/{distinct}"
            for direction in ("out", "in")
            for distinct in (False, True)
        }
        self._kept = kept

    def expand(self, direction: Direction, nodes: Ints, *, distinct: bool) -> Hits:
        """The neighbours of nodes along or against the edges; parallel edges once if distinct."""
        return self.adjacency(direction, distinct=distinct).expand(nodes)

    def count(self, direction: Direction, nodes: Ints, *, distinct: bool) -> Ints:
        """How many neighbours each of these nodes has."""
        return self.adjacency(direction, distinct=distinct).degrees(nodes)

    def has_adjacency(self, direction: Direction) -> bool:
        return self.cache.peek(self._adjacency_keys[direction, False]) is not None

    def adjacency(self, direction: Direction, *, distinct: bool = False) -> Adjacency:
        key = self._adjacency_keys[direction, distinct]
        found = self.cache.peek(key)
        if found is not None:
            return cast(Adjacency, found)
        if distinct:
            return self.cache.get(key, self.adjacency(direction).distinct)
        return self.cache.get(key, lambda: self._build(direction))

    def _build(self, direction: Direction) -> Adjacency:
        if self._kept is None or self.rows < KEPT_ROWS_MIN:
            return self._make(direction)
        store, name = self._kept()
        name = f"{name}/{direction}"
        found = store.read(name)
        if found is not None:
            return Adjacency(found["starts"], found["nodes"], found["edges"])
        made = self._make(direction)
        store.write(name, {"starts": made.starts, "nodes": made.nodes, "edges": made.edges})
        return made

    def _make(self, direction: Direction) -> Adjacency:
        ends = self.cache.get(self._ends_key, self._find_ends)
        if direction == "out":
            return build_adjacency(ends.source, ends.target, self._source.rows)
        return build_adjacency(ends.target, ends.source, self._target.rows)

    def _find_ends(self) -> Ends:
        if not self.rows:
            none = np.array([], dtype=np.int32)
            return Ends(none, none)
        found = self._open().scan(["src", "dst"])
        return Ends(self._source.resolve(found["src"]), self._target.resolve(found["dst"]))
