"""Types as the engine sees them: all of their entities, by ordinal.

An ordinal is the place of a row in the storage order of one version. Columns, ids and adjacency are
loaded when first asked for and kept in the cache of the process under the version they belong to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.rows import TablePin
from omnigraph.engine.cache.cache import WAIT_SECONDS, Cache
from omnigraph.engine.cache.carry_over import Changes, Links, carried_over
from omnigraph.engine.cache.disk_store import ArrayStore
from omnigraph.engine.cache.version_mapping import (
    UNCHANGED,
    Succession,
    read_fresh,
    share_files,
    succession_between,
)
from omnigraph.engine.exec.sort import as_words
from omnigraph.engine.tables.adjacency import Adjacency, Hits, Reached, build_adjacency
from omnigraph.engine.tables.id_lookup import IdLookup
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.model.checkpoint import checkpoint
from omnigraph.model.types import STRING, PropertyType
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Values, empty_values, values_of
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.tables import PinnedTable, TableRef

Direction = Literal["out", "in"]
Kept: TypeAlias = "tuple[ArrayStore, str]"
"""Where derived arrays are kept, and what names the tables they are made from."""

ID_TYPE: Final = PropertyType(STRING)
LOOKUP_ROWS: Final = 1 << 16
"""So many ids enter a dictionary between two checkpoints."""
LOOKUPS_MAX: Final = 1_000
"""More ids than this are found in one pass over all ids."""
EDGES_KEPT_MIN: Final = 100_000
"""The adjacency of fewer edges is made again in less time than a file takes."""
RECENT_MAX: Final = 1_024
"""Structures whose newest version is remembered."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The ordinals of both ends of every edge, by edge; -1 for a node that does not exist."""

    source: Ints
    target: Ints

    @property
    def nbytes(self) -> int:
        return int(self.source.nbytes + self.target.nbytes)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the rows of a table are stored, sorted, and their ordinals."""

    stored: Ints
    order: Ints

    @classmethod
    def of(cls, addresses: Ints) -> Addresses:
        order = chunked.order((addresses,)).astype(np.int32)
        return cls(chunked.take(addresses, order), order)

    @property
    def nbytes(self) -> int:
        return int(self.stored.nbytes + self.order.nbytes)

    def ordinals(self, addresses: Ints) -> Ints:
        return np.asarray(self.order[np.searchsorted(self.stored, addresses)])


class Recent:
    """For which version of each table a structure was made last. Thread-safe and bounded."""

    def __init__(self) -> None:
        self._tables: OrderedDict[object, CachedTable] = OrderedDict()
        self._lock = threading.Lock()

    def before(self, ref: TableRef, what: str) -> CachedTable | None:
        """The same or an earlier version of the table for which it was made."""
        found = self._tables.get((ref.path, ref.branch, what))
        return found if found is not None and found.ref.version <= ref.version else None

    def note(self, table: CachedTable, what: str) -> None:
        key = (table.ref.path, table.ref.branch, what)
        with self._lock:
            self._tables.pop(key, None)
            self._tables[key] = table
            if len(self._tables) > RECENT_MAX:
                self._tables.popitem(last=False)


def stored_columns(kind: NodeType | EdgeType) -> dict[str, str]:
    """Where the values of each column are read: those of a key that is the id are read once."""
    found = {column.name: column.name for column in kind.columns()}
    if isinstance(kind, NodeType) and kind.id_property is not None:
        found[kind.id_property] = "id"
    return found


class CachedTable:
    """The entities of one type at one version."""

    def __init__(
        self,
        kind: NodeType | EdgeType,
        pin: TablePin,
        key: str,
        cache: Cache,
        open_table: Callable[[], PinnedTable],
        recent: Recent,
        kept: Callable[[], Kept] | None = None,
    ) -> None:
        rows = pin.rows
        self.ref = pin.ref
        self.recent = recent
        self.kept = kept
        self.kind = kind
        self.rows = rows
        self.key = key
        self.cache = cache
        self.open = open_table
        self._all_key = ("all", rows)
        self._types = {column.name: column.type for column in kind.columns()}
        self.stored = stored_columns(kind)
        """Where the values of each column are read."""
        # With the type: that of an enum may change while the table stays the same.
        self._keys = {
            name: f"{key}/column/{self.stored[name]}/{type}" for name, type in self._types.items()
        }

    @property
    def all(self) -> Ints:
        """Every ordinal."""
        return self.cache.get(self._all_key, lambda: np.arange(self.rows, dtype=np.int32))

    def has_columns(self, names: Iterable[str]) -> bool:
        """Whether these columns are in memory."""
        return all(self.cache.peek(self._keys[name]) is not None for name in names)

    def prepare(self, names: Iterable[str]) -> None:
        """Load several columns in one pass over the table."""
        missing = sorted(n for n in set(names) if not self.has_columns([n]))
        if len(missing) > 1 and self.rows:
            found = self.open().scan(sorted({self.stored[name] for name in missing}))
            for name in missing:
                self._column(name, lambda name=name: found[self.stored[name]])  # type: ignore[misc]

    def column(self, name: str) -> Values:
        """A property of all entities."""
        found = self.cache.peek(self._keys[name])
        if found is not None:
            return cast(Values, found)
        stored = self.stored[name]
        return self._column(name, lambda: self.open().scan([stored])[stored])

    def _column(self, name: str, read: Callable[[], Any]) -> Values:
        def load() -> Values:
            kind = self._types[name]
            return values_of(read(), kind) if self.rows else empty_values(kind)

        return self.cache.get(self._keys[name], load)

    def words(self, name: str) -> Values:
        """A property of all entities that is a string, as numbers into a sorted list of words."""
        column = self.column(name)
        if column.is_numpy:
            return column
        return self.cache.get(f"{self._keys[name]}/words", lambda: as_words(column))

    def gather(self, name: str, ordinals: Ints) -> Values:
        """A property of some entities."""
        column = self.column(name)
        if len(ordinals) == self.rows or ordinals.base is not None:
            every = self.cache.peek(self._all_key)
            if every is not None and ordinals is every:
                return column
            if every is not None and ordinals.base is every and len(ordinals):
                start, stop = int(ordinals[0]), int(ordinals[-1]) + 1
                if stop - start == len(ordinals):
                    return column.part(start, stop)
        return column.take(ordinals)

    def ids(self, ordinals: Ints) -> pa.Array:
        return self.gather("id", ordinals).to_arrow()

    def ordinals_at(self, found: pa.Table) -> Ints:
        """The ordinals of rows that were read with their addresses."""
        places: Addresses = self.cache.get(f"{self.key}/addresses", self._read_addresses)
        return places.ordinals(np.asarray(found[ADDRESS].to_numpy()))

    def _read_addresses(self) -> Addresses:
        stored = self.open().scan([], with_row_address=True)
        return Addresses.of(np.asarray(stored[ADDRESS].to_numpy()))

    def positions(self, ordinals: Ints) -> Ints:
        """Where entities stand in storage order: numbers that sort like it."""
        return ordinals

    def delta(
        self, earlier: CachedTable, *, follow: bool, values: bool = False
    ) -> Succession | None:
        """How the entities of an earlier version became these; None when that cannot be told.

        ``values``: those that stayed have to have the values they had.
        """
        old, new = earlier.ref, self.ref
        if old == new:  # unless a purge took some from it
            return UNCHANGED if earlier.rows == self.rows else None
        if (old.path, old.branch) != (new.path, new.branch) or old.version > new.version:
            return None
        try:
            before, after = earlier.open(), self.open()
            if before.rows != earlier.rows or (values and not share_files(before, after)):
                return None
            return succession_between(before, after, follow=follow)
        except OmnigraphError:  # the earlier one need not be there any more
            return None


class CachedNodes(CachedTable):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lookup_key = f"{self.key}/lookup"

    def find(self, id: str) -> Ints:
        """The ordinal of the node with this id, if there is one."""
        place = self.lookup.get(id)
        return np.array([] if place < 0 else [place], dtype=np.int32)

    def resolve(self, ids: pa.Array | pa.ChunkedArray) -> Ints:
        """The ordinals of many ids; -1 where there is no such node."""
        if len(ids) <= LOOKUPS_MAX:
            get = self.lookup.get
            return np.array([get(id) for id in ids.to_pylist()], dtype=np.int32)
        known = self.column("id").to_arrow()
        found = pc.index_in(ids, value_set=known.cast(ids.type))
        return np.asarray(found.fill_null(-1).to_numpy()).astype(np.int32)

    @property
    def lookup(self) -> IdLookup:
        return self.cache.get(self._lookup_key, self._make_lookup)

    def _make_lookup(self) -> IdLookup:
        made = self._carried_over()
        if made is None:
            made = IdLookup({})
            ids = self.column("id").to_arrow()
            for part in chunked.chunks(len(ids), LOOKUP_ROWS):
                some = ids.slice(part.start, LOOKUP_ROWS).to_pylist()
                made.root.update(zip(some, range(part.start, part.stop), strict=True))
        self.recent.note(self, "lookup")
        return made

    def _carried_over(self) -> IdLookup | None:
        """The look-up of an earlier version, brought up to date."""
        earlier = self.recent.before(self.ref, "lookup")
        if not isinstance(earlier, CachedNodes):
            return None
        known: IdLookup | None = self.cache.peek(earlier._lookup_key)
        delta = None if known is None else self.delta(earlier, follow=True)
        if known is None or delta is None:
            return None
        fresh = read_fresh(self.open(), delta, ["id"])["id"].to_pylist()
        return known.after(delta, fresh)


class CachedEdges(CachedTable):
    """The edges of one type at one version, between nodes at theirs."""

    def __init__(
        self,
        kind: EdgeType,
        pin: TablePin,
        key: str,
        cache: Cache,
        open_table: Callable[[], PinnedTable],
        recent: Recent,
        source: CachedNodes,
        target: CachedNodes,
        kept: Callable[[], Kept] | None = None,
    ) -> None:
        super().__init__(kind, pin, key, cache, open_table, recent, kept)
        self._source = source
        self._target = target
        links = f"{key}/{source.key}/{target.key}"
        self._ends_key = f"{links}/ends"
        self._adjacency_keys = {
            (direction, distinct): f"{links}/{direction}/{distinct}"
            for direction in ("out", "in")
            for distinct in (False, True)
        }

    def edges_of(self, direction: Direction, nodes: Ints) -> Hits:
        """The edges that leave or enter nodes."""
        return self.adjacency(direction).edges_of(nodes)

    def neighbours(self, direction: Direction, nodes: Ints) -> Reached:
        """The neighbours of nodes along or against the edges, each once."""
        return self.adjacency(direction, distinct=True).neighbours(nodes)

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
        made = self._carried_over(direction)
        if made is None:
            made = self._found_or_made(direction)
        self.recent.note(self, direction)
        return made

    def _found_or_made(self, direction: Direction) -> Adjacency:
        if self.kept is None or self.rows < EDGES_KEPT_MIN:
            return self._make(direction)
        store, name = self.kept()
        name = f"{name}/{direction}"
        found = store.read(name)
        if found is not None:
            return Adjacency(found["starts"], found["nodes"], found["edges"])
        made = self._make(direction)
        store.write(name, {"starts": made.starts, "nodes": made.nodes, "edges": made.edges})
        return made

    def _carried_over(self, direction: Direction) -> Adjacency | None:
        """The adjacency of an earlier version, brought up to date."""
        earlier = self.recent.before(self.ref, direction)
        if not isinstance(earlier, CachedEdges):
            return None
        known: Adjacency | None = self.cache.peek(earlier._adjacency_keys[direction, False])
        if known is None or len(known.nodes) < earlier.rows:
            return None  # an edge without one of its nodes may get it later
        edges = self.delta(earlier, follow=False)
        near = self._source.delta(earlier._source, follow=True)
        far = self._target.delta(earlier._target, follow=True)
        if edges is None or near is None or far is None:
            return None
        fresh = read_fresh(self.open(), edges, [SRC, DST])
        ends = self._source.resolve(fresh[SRC]), self._target.resolve(fresh[DST])
        added = Links(*ends, edges.fresh)
        count = self._source.rows
        if direction == "in":
            added = Links(added.far, added.near, added.edge)
            near, far, count = far, near, self._target.rows
        return carried_over(known, Changes(near, far, edges, added), count)

    def _make(self, direction: Direction) -> Adjacency:
        ends = self.cache.get(self._ends_key, self._find_ends)
        if direction == "out":
            return build_adjacency(ends.source, ends.target, self._source.rows)
        return build_adjacency(ends.target, ends.source, self._target.rows)

    def _find_ends(self) -> Ends:
        if not self.rows:
            none = np.array([], dtype=np.int32)
            return Ends(none, none)
        found = self.open().scan([SRC, DST])
        workers = ThreadPoolExecutor(2)  # Arrow looks ids up without Python's lock
        try:
            source = workers.submit(self._source.resolve, found[SRC])
            target = workers.submit(self._target.resolve, found[DST])
            # One call of Arrow cannot be stopped; a query that is given up does not wait for it.
            while wait((source, target), timeout=WAIT_SECONDS).not_done:
                checkpoint()
            return Ends(source.result(), target.result())
        finally:
            workers.shutdown(wait=False)
