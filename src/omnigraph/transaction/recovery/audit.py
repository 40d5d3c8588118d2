"""The audit of recoveries: one row per operation that recovery rolled forward or back.

The audit is a table of its own, keyed by operation id, so that a recovery which is interrupted and
repeated adds its row exactly once.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import Contention, KeyConflict
from omnigraph.storage.lance.errors import CommitRefused, TableExists, TableNotFound
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.staging.compaction_tiers import needs_compaction
from omnigraph.storage.lance.staging.rows import stage_insert, stage_layout
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.paths import RECOVERY_AUDIT_PATH

APPEND_ATTEMPTS_MAX = 20
_PROPERTIES = {"omnigraph.kind": "recovery_audit"}


class Action(StrEnum):
    """How a recovery resolved a write."""

    ROLLED_FORWARD = "rolled_forward"
    ROLLED_BACK = "rolled_back"
    ORPHANED_BRANCH_DISCARDED = "orphaned_branch_discarded"


_ORIGINAL_ACTIONS: Final = {
    "RolledForward": Action.ROLLED_FORWARD,
    "RolledBack": Action.ROLLED_BACK,
    "OrphanedBranchDiscarded": Action.ORPHANED_BRANCH_DISCARDED,
}


class Cause(StrEnum):
    """Why a write was resolved by recovery."""

    OWNER_GONE = "owner_gone"
    OWNER_SILENT = "owner_silent"
    """Its owner is alive or on another host, and did not renew the lease."""
    OWNER_FAILED = "owner_failed"
    """The write failed, and its owner rolled it back or left it for recovery."""
    RESOLVER_GONE = "resolver_gone"
    """A process that had begun to resolve the write died, too."""
    BRANCH_DELETED = "branch_deleted"
    RECORD_UNREADABLE = "record_unreadable"
    """An operator set the unreadable record of the write aside."""


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What a recovery did to one table, and the version it has since (R-7)."""

    what: str
    to_version: int | None  # unknown in rows that are older than this field

    def to_json(self) -> dict[str, Any]:
        return {"outcome": self.what, "to_version": self.to_version}

    @classmethod
    def from_json(cls, stored: str | dict[str, Any]) -> TableOutcome:
        """Parse a stored outcome; older rows hold only what was done."""
        if isinstance(stored, str):
            return cls(stored, None)
        return cls(stored["outcome"], stored["to_version"])


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One finished recovery."""

    operation_id: str
    action: Action
    kind: str
    branch: str
    actor: str | None
    commit_id: str | None
    finished_at_us: int
    tables: dict[str, TableOutcome]
    cause: Cause | None = None  # unknown in audits that are older than this column

    def to_json(self) -> dict[str, Any]:
        return {
            "operation_id": self.operation_id,
            "action": str(self.action),
            "kind": self.kind,
            "branch": self.branch,
            "actor_id": self.actor,
            "commit_id": self.commit_id,
            "finished_at": self.finished_at_us,
            "types": {key: found.what for key, found in self.tables.items()},
            "to_versions": {key: found.to_version for key, found in self.tables.items()},
            "cause": None if self.cause is None else str(self.cause),
        }


def append_audit(store: TableStore, row: AuditRow) -> None:
    """Add the row unless the operation has one already."""
    for _ in range(APPEND_ATTEMPTS_MAX):
        table = _open_or_create(store)
        if _is_original(table):
            _convert(store, table)
            continue
        rows = _to_arrow(row, table.schema)
        try:
            staged = stage_insert(table, rows, _PROPERTIES, type_key="audit:recovery")
            landed = store.commit(staged)
        except KeyConflict:
            return
        except CommitRefused:
            continue
        _keep_small(store, landed)
        return
    raise Contention("the recovery audit is being written by too many processes")


def read_audit(store: TableStore) -> list[AuditRow]:
    """All finished recoveries, newest first."""
    try:
        table = store.open_newest(RECOVERY_AUDIT_PATH)
    except TableNotFound:
        return []
    read = _from_original if _is_original(table) else _from_arrow
    rows = [read(record) for record in table.scan().to_pylist()]
    return sorted(rows, key=lambda row: (row.finished_at_us, row.operation_id), reverse=True)


def _is_original(table: PinnedTable) -> bool:
    """Whether the audit was begun by the original implementation (ADR 36), in its own columns."""
    return "recovery_kind" in table.schema.names


def _convert(store: TableStore, table: PinnedTable) -> None:
    """Bring an audit of the original into our columns; of two processes one does it."""
    schema = _schema()
    found = [_to_arrow(_from_original(r), schema) for r in table.scan().to_pylist()]
    rows = pa.concat_tables([schema.empty_table(), *found])
    with suppress(CommitRefused):
        store.commit(stage_layout(table, (rows,), schema, _PROPERTIES))


def _from_original(record: dict[str, Any]) -> AuditRow:
    """A row of the original, which does not name the branch."""
    action = _ORIGINAL_ACTIONS[record["recovery_kind"]]
    outcomes = json.loads(record["per_table_outcomes_json"])
    what = action.replace("_", " ")
    return AuditRow(
        record["operation_id"],
        action,
        record["sidecar_writer_kind"],
        "unknown",
        record["recovery_for_actor"],
        record["graph_commit_id"],
        int(record["created_at"].replace(tzinfo=UTC).timestamp() * 1_000_000),
        {item["table_key"]: TableOutcome(what, item["to_version"]) for item in outcomes},
    )


def _keep_small(store: TableStore, table: PinnedTable) -> None:
    if needs_compaction({f: m.physical_rows for f, m in table.fragments.items()}):
        staged = stage_compaction(table, _PROPERTIES)
        if staged is not None:
            try:
                store.commit(staged)
            except CommitRefused:
                return  # another process is writing: the next append compacts


def _open_or_create(store: TableStore) -> PinnedTable:
    try:
        return store.open_newest(RECOVERY_AUDIT_PATH)
    except TableNotFound:
        try:
            return store.create(RECOVERY_AUDIT_PATH, _schema(), _PROPERTIES)
        except TableExists:
            return store.open_newest(RECOVERY_AUDIT_PATH)


def _schema() -> pa.Schema:
    key = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=key),
            pa.field("action", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("branch", pa.string(), nullable=False),
            pa.field("actor", pa.string()),
            pa.field("commit_id", pa.string()),
            pa.field("finished_at_us", pa.int64(), nullable=False),
            pa.field("tables", pa.string(), nullable=False),
            pa.field("cause", pa.string()),
        ]
    )


def _to_arrow(row: AuditRow, schema: pa.Schema) -> pa.Table:
    """The row in the schema of the table, which may lack newer columns."""
    values = {
        "id": row.operation_id,
        "action": str(row.action),
        "kind": row.kind,
        "branch": row.branch,
        "actor": row.actor,
        "commit_id": row.commit_id,
        "finished_at_us": row.finished_at_us,
        "tables": json.dumps({key: found.to_json() for key, found in row.tables.items()}),
        "cause": row.cause,
    }
    return pa.Table.from_pylist([values], schema=schema)


def _from_arrow(record: dict[str, Any]) -> AuditRow:
    return AuditRow(
        record["id"],
        Action(record["action"]),
        record["kind"],
        record["branch"],
        record["actor"],
        record["commit_id"],
        record["finished_at_us"],
        {key: TableOutcome.from_json(t) for key, t in json.loads(record["tables"]).items()},
        Cause(record["cause"]) if record.get("cause") else None,
    )
