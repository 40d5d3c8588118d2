"""The manifest of an original as the state that every reader knows.

An ``OriginalState`` has the rows that a manifest of ours would have: pins, schema, head, branches.
Its timeline is made in memory from the original's rows. Readers see no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from omnigraph.catalog.history.timeline import Timeline, Track
from omnigraph.catalog.original.rows import OriginalRows, PublishedVersion
from omnigraph.catalog.original.schema import OriginalSchema
from omnigraph.catalog.rows import MAIN, Commit, Row, TablePin, version_key
from omnigraph.catalog.schemas import schema_id, schema_row
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.storage.lance.files.table_files import stored_versions
from omnigraph.storage.lance.tables import TableRef, TableStore


@dataclass(frozen=True)
class TableHistory:
    """The published versions of the tables of one manifest, and the schemas they had."""

    store: TableStore
    rows: OriginalRows
    schema: OriginalSchema
    schemas: dict[str, Row]
    """Rows of schemas by object id; states of one graph share them."""
    by_tables: dict[frozenset[tuple[str, TableRef]], str] = field(default_factory=dict)

    @cached_property
    def pins(self) -> tuple[TablePin, ...]:
        """A pin for every published version, in the order of publication."""
        return tuple(self._pin(found) for found in self.rows.versions)

    @cached_property
    def types(self) -> dict[str, Track]:
        """The pins of each type, by their position in ``pins``."""
        places: dict[str, list[tuple[int, int, str]]] = {}
        newest: dict[str, int] = {}
        for at, found in enumerate(self.rows.versions):
            if found.ref.version > newest.get(found.key, -1):
                newest[found.key] = found.ref.version
                place = (found.published, at, version_key(found.ref))
                places.setdefault(found.key, []).append(place)
        return {key: Track().extended(found) for key, found in places.items()}

    def pins_at(self, version: int) -> dict[str, TablePin]:
        """The pins of a manifest version, without those of dropped tables."""
        places = {key: track.newest(version) for key, track in sorted(self.types.items())}
        pins = {key: self.pins[at] for key, at in places.items() if at is not None}
        for ended in self.rows.tombstones:
            pin = pins.get(ended.key)
            if pin is not None and ended.published <= version and ended.version >= pin.ref.version:
                del pins[ended.key]
        return pins

    def schema_hash(self, version: int) -> str:
        """The name of the schema of a manifest version; its row is in ``schemas`` from then on."""
        pins = self.pins_at(version)
        tables = frozenset((key, pin.ref) for key, pin in pins.items())
        found = self.by_tables.get(tables)
        if found is None:
            columns = {key: self._columns(key, pin.ref) for key, pin in pins.items()}
            found = self.add_schema(self.schema.at(columns))
            self.by_tables[tables] = found
        return found

    def add_schema(self, schema: AcceptedSchema) -> str:
        row = schema_row(schema)
        self.schemas[row.object_id] = row
        return schema_id(schema)

    def oldest_kept(self, newest: int) -> int:
        """The manifest version since which no version of a table is missing; 0 when none is."""
        kept: dict[tuple[str, str | None], set[int]] = {}
        gone = 0
        for track in self.types.values():
            following = [*track.versions[1:], newest + 1]
            for place, until in zip(track.rows, following, strict=True):
                ref = self.pins[place].ref
                where = (ref.path, ref.branch)
                if where not in kept:
                    kept[where] = stored_versions(self.store, ref)
                if ref.version not in kept[where]:
                    gone = max(gone, until)
        return min(gone, newest)

    def _columns(self, key: str, ref: TableRef) -> pa.Schema:
        """The columns of a version or, where it cannot be read, of the next one that can."""
        later = [self.pins[at].ref for at in self.types[key].rows]
        problem: OmnigraphError | None = None
        for candidate in later[later.index(ref) :]:
            try:
                return self.store.open(candidate).dataset.schema
            except OmnigraphError as error:
                problem = problem or error
        assert problem is not None, "a published version is in the history of its table"
        raise problem

    def _pin(self, found: PublishedVersion) -> TablePin:
        type_id, incarnation = self.schema.identities_of(found.key)
        return TablePin(
            found.key,
            found.ref,
            found.rows,
            type_id,
            incarnation,
            f"original {found.tag}",
            owner=found.ref.branch or MAIN,
        )


@dataclass(frozen=True, slots=True)
class OriginalTimeline(Timeline):
    """A timeline whose rows are commits and pins in memory; a row id is a position."""

    recorded: Sequence[Commit] = ()
    tables: TableHistory = field(kw_only=True)

    def read_commits(self, positions: Sequence[int], merged: Sequence[int] = ()) -> list[Commit]:
        found = (self.recorded[at] for at in positions)
        return [
            replace(c, schema_hash=self.tables.schema_hash(c.manifest_version or 0)) for c in found
        ]

    def read_pins(self, rows: Sequence[int]) -> dict[int, TablePin]:
        return {at: self.tables.pins[at] for at in rows}


@dataclass(frozen=True)
class OriginalState(ManifestState):
    """The state of one branch of an original."""

    tables: TableHistory = field(kw_only=True)
    commits: tuple[Commit, ...] = field(kw_only=True)
    """Without the names of their schemas, oldest first."""

    @property
    def is_original(self) -> bool:
        return True

    @cached_property
    def timeline(self) -> Timeline:
        places = [(c.manifest_version or 0, at, c.commit_id) for at, c in enumerate(self.commits)]
        return OriginalTimeline(
            self.table,
            Track().extended(places),
            self.tables.types,
            recorded=self.commits,
            tables=self.tables,
        )

    @cached_property
    def horizon(self) -> int:
        """Found by looking: the original removes old versions without a trace."""
        return self.tables.oldest_kept(self.version)

    def row(self, object_id: str) -> Row | None:
        found = ManifestState.row(self, object_id)
        return self.tables.schemas.get(object_id) if found is None else found
