"""The current rows of one manifest branch at one version, in memory.

Loading costs in proportion to the number of types: only fragments that hold current rows are read.
Moving a state to a newer version reads only the fragments that changed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from omnigraph.catalog.format import internal_version
from omnigraph.catalog.history.purged import PurgedTable, PurgedVersions
from omnigraph.catalog.history.timeline import Timeline, read_timeline
from omnigraph.catalog.migrations.legacy import Lineage, recorded_timeline
from omnigraph.catalog.rows import CURRENT, HORIZON, Head, Row, RowKind, TablePin, row_from_arrow
from omnigraph.errors import CorruptData
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable, TableRef

Signature = tuple[int, int]  # physical rows and deleted rows: changes whenever a row goes away


@dataclass(frozen=True, slots=True)
class Stored:
    """A current row and where it is stored, so that the next commit can replace it."""

    row: Row
    address: int

    @property
    def fragment_id(self) -> int:
        return self.address >> FRAGMENT_SHIFT


@dataclass(frozen=True)
class ManifestState:
    """The current rows of one branch at one manifest version."""

    table: PinnedTable
    current: Mapping[str, Stored]
    signatures: Mapping[int, Signature]
    earlier: Timeline | None = None  # the timeline of an older state, if it was read
    lineage: Lineage | None = None  # the commits, where an older format stores them elsewhere

    @property
    def ref(self) -> TableRef:
        return self.table.ref

    @property
    def version(self) -> int:
        return self.table.ref.version

    @cached_property
    def format(self) -> int:
        """The internal version this state is stored in."""
        return internal_version(self.table)

    @property
    def is_original(self) -> bool:
        """Whether the graph is the original's, which is read and never written (ADR 35)."""
        return False

    @cached_property
    def heads(self) -> list[Head]:
        """The head rows; an undamaged manifest has exactly one."""
        if self.lineage is not None:
            return [Head(self.lineage.head_id, self.only_schema, self.lineage.branch)]
        return [Head.from_row(row) for row in self.rows(RowKind.GRAPH_HEAD)]

    @cached_property
    def head(self) -> Head:
        if len(self.heads) != 1:
            raise CorruptData(
                f"manifest version {self.version} has {len(self.heads)} heads instead of one"
            )
        return self.heads[0]

    @property
    def only_schema(self) -> str:
        """The only schema of a manifest whose commits do not name one."""
        found = [row.object_id.partition(":")[2] for row in self.rows(RowKind.SCHEMA)]
        if len(found) != 1:
            raise CorruptData(
                f"manifest version {self.version} has {len(found)} schemas, and no commit names one"
            )
        return found[0]

    @cached_property
    def pins(self) -> dict[str, TablePin]:
        """The pin of every type, by type key, in order."""
        found = [TablePin.from_row(row) for row in self.rows(RowKind.TABLE)]
        return {pin.key: pin for pin in sorted(found, key=lambda pin: pin.key)}

    @property
    def horizon(self) -> int:
        """Cleanup may have removed states below this manifest version; 0 before any cleanup."""
        row = self.row(HORIZON)
        return 0 if row is None else int(row.metadata["version"])

    @cached_property
    def timeline(self) -> Timeline:
        """The index of history rows; read on first use."""
        found = read_timeline(self.table, self.earlier)
        if self.lineage is not None:
            return recorded_timeline(found, self.lineage)
        return replace(found, purged=self.purged) if self.purged.tables else found

    @cached_property
    def purged(self) -> PurgedVersions:
        """The effects of purges on older versions."""
        found = (PurgedTable.from_row(row) for row in self.rows(RowKind.PURGED))
        return PurgedVersions({table.path: table for table in found})

    @property
    def known_timeline(self) -> Timeline | None:
        """The newest timeline that has been read already, of this state or an older one."""
        found: Timeline | None = self.__dict__.get("timeline", self.earlier)
        return found

    def rows(self, kind: RowKind) -> Iterator[Row]:
        return (s.row for s in self.current.values() if s.row.object_type == kind)

    @cached_property
    def registry(self) -> tuple[str, ...]:
        """The registry in comparable form: branches with their states, tags with their branches."""
        branches = (
            f"{row.object_id}!{row.metadata.get('state', '')}" for row in self.rows(RowKind.BRANCH)
        )
        tags = (f"{row.object_id}@{row.metadata['branch']}" for row in self.rows(RowKind.TAG))
        return tuple(sorted((*branches, *tags)))

    def row(self, object_id: str) -> Row | None:
        stored = self.current.get(object_id)
        return None if stored is None else stored.row


def load_state(table: PinnedTable, previous: ManifestState | None = None) -> ManifestState:
    """The state at ``table``'s version; rows of unchanged fragments come from ``previous``."""
    signatures = {
        fragment_id: (metadata.physical_rows, metadata.num_deletions)
        for fragment_id, metadata in current_fragments(table).items()
    }
    known = previous.signatures if previous is not None else {}
    changed = [f for f, signature in signatures.items() if known.get(f) != signature]
    current: dict[str, Stored] = {}
    if previous is not None:
        unchanged = signatures.keys() - set(changed)
        current = {k: s for k, s in previous.current.items() if s.fragment_id in unchanged}
    if changed:
        found = table.scan(
            filter=f"{CURRENT} = true", with_row_address=True, fragment_ids=changed
        ).to_pylist()
        current.update({r["object_id"]: Stored(row_from_arrow(r), r["_rowaddr"]) for r in found})
    earlier = None if previous is None else previous.known_timeline
    return ManifestState(table, current, signatures, earlier)


def state_after(
    table: PinnedTable, previous: ManifestState, written: list[Row], removed: set[str]
) -> ManifestState:
    """The state after this process's own commit, computed without a read.

    ``written`` are the rows of the one new fragment with current rows, in order.
    """
    fragments = current_fragments(table)
    signatures = {f: (m.physical_rows, m.num_deletions) for f, m in fragments.items()}
    (new_fragment,) = fragments.keys() - previous.signatures.keys()
    current = {k: s for k, s in previous.current.items() if k not in removed}
    for offset, row in enumerate(written):
        if row.is_current:
            current[row.object_id] = Stored(row, new_fragment << FRAGMENT_SHIFT | offset)
    return ManifestState(table, current, signatures, previous.known_timeline)


def current_fragments(table: PinnedTable) -> dict[int, Any]:
    """The fragments that may hold current rows: those whose files have the marker column."""
    marker = next(f.id() for f in table.dataset.lance_schema.fields() if f.name() == CURRENT)
    return {
        fragment_id: metadata
        for fragment_id, metadata in table.fragments.items()
        if any(marker in file.fields for file in metadata.files)
    }


def history_fragments(table: PinnedTable) -> dict[int, Any]:
    """The fragments that hold only history."""
    current = current_fragments(table)
    return {f: m for f, m in table.fragments.items() if f not in current}
