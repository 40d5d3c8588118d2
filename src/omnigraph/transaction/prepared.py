"""A prepared write: staged tables and what they rely on, ready to be committed.

Every writer (mutation, load, merge, schema change, upkeep, ...) reads a snapshot, stages tables and
returns a ``PreparedWrite``. The write transaction makes it visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.rows import Row, TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.storage.lance.files.checksums import Digests
from omnigraph.storage.lance.tables import StagedWrite, TableRef
from omnigraph.transaction.recovery.record import PlannedTable


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """One type that the write moves."""

    pin: TablePin
    staged: StagedWrite
    becomes: str | None = None
    """The type key it will have, where the write renames the type."""

    def planned(self, digests: Digests = None) -> PlannedTable:
        staged = self.staged
        overwritten = staged.kind == "overwrite"
        # An updated edge may have another endpoint: for the insert epoch it counts as inserted.
        is_moved = self.pin.key.startswith("edge:") and bool(staged.rows_updated)
        return PlannedTable(
            self.pin.key,
            self.pin.ref,
            staged.ref,
            staged.uuid,
            staged.rows_after,
            deletes=bool(staged.rows_deleted) or overwritten,
            inserts=bool(staged.rows_inserted) or overwritten or is_moved,
            removed=staged.removed,
            becomes=self.becomes,
            digests=digests,
        )


@dataclass(frozen=True, slots=True)
class WriteInfo:
    """The kind of a write, and the actor, message and metadata that its commit records."""

    kind: str
    actor: str | None = None
    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    merged_parent: str | None = None
    makes_commit: bool = True  # upkeep moves tables without adding a graph commit

    def __post_init__(self) -> None:
        check_text("actor", self.actor)
        check_text("message", self.message)


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """Everything the write transaction needs."""

    operation_id: str
    snapshot: SnapshotPins
    info: WriteInfo
    tables: tuple[PreparedTable, ...] = ()
    delete_epochs: Mapping[str, int] = field(default_factory=dict)
    insert_epochs: Mapping[str, int] = field(default_factory=dict)
    reads: Mapping[str, TableRef] = field(default_factory=dict)  # types that must not have changed
    expected_head: str | None = None
    kept: int | None = None  # an older manifest version whose state must not be cleaned up
    put: tuple[Row, ...] = ()
    drop: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    schema_hash: str | None = None
