"""Cached tables: all entities of a type at one version, by ordinal.

The ordinal of an entity is the position of its row in the storage order of one table version.
Columns and id look-ups are loaded on first use into the memory cache of the process, under keys
that contain the version. ``loaded_edges`` adds adjacency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.rows import TablePin
from omnigraph.engine.cache.disk_store import ArrayStore
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.cache.row_mapping import (
    UNCHANGED,
    RowMapping,
    read_fresh,
    row_mapping_between,
    share_files,
)
from omnigraph.engine.exec.sort import dictionary_encoded
from omnigraph.engine.tables.id_lookup import IdLookup
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.lru import LruCache
from omnigraph.model.types import STRING, PropertyType
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Values, empty_values, values_of
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.tables import PinnedTable, TableRef

Direction = Literal["out", "in"]
StoreEntry: TypeAlias = "tuple[ArrayStore, str]"
"""A disk store, and the key prefix that identifies the source tables of derived arrays."""

ID_TYPE: Final = PropertyType(STRING)
LOOKUP_ROWS: Final = 1 << 16
"""Ids that are added to a dictionary between two checkpoints."""
LOOKUPS_MAX: Final = 1_000
"""More ids than this are resolved by one pass over the id column."""
LATEST_VERSIONS_MAX: Final = 1_024
"""Derived structures whose latest version is tracked."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The row addresses of a table, sorted, with their ordinals."""

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


class LatestVersions:
    """The table version for which each derived structure was built last. Thread-safe, bounded."""

    def __init__(self) -> None:
        self._tables: LruCache[tuple[str, str | None, str], CachedTable] = LruCache(
            LATEST_VERSIONS_MAX
        )

    def __len__(self) -> int:
        return len(self._tables)

    def before(self, ref: TableRef, what: str) -> CachedTable | None:
        """The same or an earlier version of the table for which the structure was built."""
        found = self._tables.get((ref.path, ref.branch, what))
        return found if found is not None and found.ref.version <= ref.version else None

    def note(self, table: CachedTable, what: str) -> None:
        self._tables.put((table.ref.path, table.ref.branch, what), table)


def stored_columns(kind: NodeType | EdgeType) -> dict[str, str]:
    """The stored column of each property: a key that equals the id is read from ``id``."""
    found = {column.name: column.name for column in kind.columns()}
    if isinstance(kind, NodeType) and kind.id_property is not None:
        found[kind.id_property] = "id"
    return found


class CachedTable:
    """All entities of one type at one version, loaded on demand."""

    access_path: ClassVar[str] = "columns"
    """How a profile names this way of finding entities."""

    def __init__(
        self,
        kind: NodeType | EdgeType,
        pin: TablePin,
        key: str,
        cache: MemoryCache,
        open_table: Callable[[], PinnedTable],
        latest: LatestVersions,
        store_entry: Callable[[], StoreEntry] | None = None,
    ) -> None:
        rows = pin.rows
        self.ref = pin.ref
        self.latest = latest
        self.store_entry = store_entry
        self.kind = kind
        self.rows = rows
        self.key = key
        self.cache = cache
        self.open = open_table
        self._all_key = ("all", rows)
        self._types = {column.name: column.type for column in kind.columns()}
        self.stored = stored_columns(kind)
        """The stored column of each property."""
        # With the property type: an enum may change while the table stays the same.
        self._keys = {
            name: f"{key}/column/{self.stored[name]}/{type}" for name, type in self._types.items()
        }

    @property
    def all(self) -> Ints:
        """Every ordinal."""
        return self.cache.get_or_make(self._all_key, lambda: np.arange(self.rows, dtype=np.int32))

    def is_all(self, ordinals: Ints) -> bool:
        """Whether these are the ordinals of all entities, as ``all`` returns them."""
        return ordinals is self.all

    def favours_whole_columns(self, rows: int) -> bool:
        """Whether computing on every entity once is cheaper than on ``rows`` ordinals."""
        return rows > self.rows

    def whole(self) -> CachedTable:
        """This table with all its entities in memory."""
        return self

    def has_columns(self, names: Iterable[str]) -> bool:
        """Whether these columns are in memory."""
        return all(self.cache.get(self._keys[name]) is not None for name in names)

    def prepare(self, names: Iterable[str]) -> None:
        """Load several columns in one pass over the table."""
        missing = sorted(n for n in set(names) if not self.has_columns([n]))
        if len(missing) > 1 and self.rows:
            found = self.open().scan(sorted({self.stored[name] for name in missing}))
            for name in missing:
                self._column(name, lambda name=name: found[self.stored[name]])  # type: ignore[misc]

    def column(self, name: str) -> Values:
        """A property of all entities."""
        found = self.cache.get(self._keys[name])
        if found is not None:
            return cast(Values, found)
        stored = self.stored[name]
        return self._column(name, lambda: self.open().scan([stored])[stored])

    def _column(self, name: str, read: Callable[[], Any]) -> Values:
        def load() -> Values:
            kind = self._types[name]
            return values_of(read(), kind) if self.rows else empty_values(kind)

        return self.cache.get_or_make(self._keys[name], load)

    def dictionary_column(self, name: str) -> Values:
        """A string property of all entities, dictionary-encoded."""
        column = self.column(name)
        if column.is_numpy:
            return column
        return self.cache.get_or_make(
            f"{self._keys[name]}/words", lambda: dictionary_encoded(column)
        )

    def strings(self, name: str) -> Values | None:
        """A property of all entities, where its values are strings in memory."""
        column = self.column(name)
        return None if column.is_numpy else column

    def gather(self, name: str, ordinals: Ints) -> Values:
        """A property of some entities."""
        column = self.column(name)
        if len(ordinals) == self.rows or ordinals.base is not None:
            every = self.cache.get(self._all_key)
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
        """The ordinals of rows that were read with their row addresses."""
        places: Addresses = self.cache.get_or_make(f"{self.key}/addresses", self._read_addresses)
        return places.ordinals(np.asarray(found[ADDRESS].to_numpy()))

    def _read_addresses(self) -> Addresses:
        stored = self.open().scan([], with_row_address=True)
        return Addresses.of(np.asarray(stored[ADDRESS].to_numpy()))

    def positions(self, ordinals: Ints) -> Ints:
        """Storage positions of entities: integers that sort in storage order."""
        return ordinals

    def delta(
        self, earlier: CachedTable, *, follow: bool, values: bool = False
    ) -> RowMapping | None:
        """The row mapping from an earlier version; None where a rebuild is needed.

        ``values``: rows that stayed must have unchanged values.
        """
        old, new = earlier.ref, self.ref
        if old == new:  # the number of rows differs after a purge
            return UNCHANGED if earlier.rows == self.rows else None
        if (old.path, old.branch) != (new.path, new.branch) or old.version > new.version:
            return None
        try:
            before, after = earlier.open(), self.open()
            if before.rows != earlier.rows or (values and not share_files(before, after)):
                return None
            return row_mapping_between(before, after, follow=follow)
        except OmnigraphError:  # the earlier version may have been cleaned up
            return None


class CachedNodes(CachedTable):
    """All nodes of one type at one version."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lookup_key = f"{self.key}/lookup"

    def is_resident(self, columns: Iterable[str]) -> bool:
        """Whether a query of these columns finds everything it needs in memory."""
        return self.has_columns(("id", *columns))

    def candidates(self, pushed_down: Callable[[], str | None]) -> Ints:
        """The nodes that a scan tests. No filter is pushed down: the columns are in memory."""
        return self.all

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
        return self.cache.get_or_make(self._lookup_key, self._make_lookup)

    def _make_lookup(self) -> IdLookup:
        made = self._updated()
        if made is None:
            made = IdLookup({})
            ids = self.column("id").to_arrow()
            for part in chunked.chunks(len(ids), LOOKUP_ROWS):
                some = ids.slice(part.start, LOOKUP_ROWS).to_pylist()
                made.root.update(zip(some, range(part.start, part.stop), strict=True))
        self.latest.note(self, "lookup")
        return made

    def _updated(self) -> IdLookup | None:
        """The look-up of an earlier version, updated; None if there is none."""
        earlier = self.latest.before(self.ref, "lookup")
        if not isinstance(earlier, CachedNodes):
            return None
        known: IdLookup | None = self.cache.get(earlier._lookup_key)
        delta = None if known is None else self.delta(earlier, follow=True)
        if known is None or delta is None:
            return None
        fresh = read_fresh(self.open(), delta, ["id"])["id"].to_pylist()
        return known.after(delta, fresh)
