"""The rows of ``__manifest`` and their typed forms.

There are two sorts of rows. *Current* rows hold the present state (one head, one pin per type, the
schemas, the branches, the marks of abandoned writes) and are replaced by later commits. *History*
rows (one per commit, one per published version of a type, one per commit that came with a merge and
one per merge) are only ever added. The nullable column ``current`` is true on current rows;
fragments that hold only history do not have the column at all, so that a reader finds the current
rows without reading history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.errors import CorruptData
from omnigraph.storage.lance.files.checksums import Digests, read_digests
from omnigraph.storage.lance.fingerprints import Fingerprints, read_fingerprints
from omnigraph.storage.lance.tables import TableRef

MANIFEST_PATH = "__manifest"
MAIN = "main"
CURRENT = "current"
HORIZON = "horizon"


class RowKind(StrEnum):
    """Row kinds. Readers skip unknown ones."""

    TABLE = "table"
    TABLE_VERSION = "table_version"
    GRAPH_COMMIT = "graph_commit"
    MERGED_COMMIT = "merged_commit"
    MERGE = "merge"
    GRAPH_HEAD = "graph_head"
    SCHEMA = "schema"
    BRANCH = "branch"
    TAG = "tag"
    PROTECTION = "protection"
    ABANDONED = "abandoned"
    IDEMPOTENCY = "idempotency"
    HORIZON = "horizon"
    PURGE = "purge"
    PURGED = "purged"
    QUIET = "quiet"


HISTORY_KINDS = frozenset(
    {RowKind.TABLE_VERSION, RowKind.GRAPH_COMMIT, RowKind.MERGED_COMMIT, RowKind.MERGE}
)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of ``__manifest``, as stored."""

    object_id: str
    object_type: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: str | None = None
    base_objects: tuple[str, ...] | None = None
    table_key: str | None = None
    table_version: int | None = None
    table_branch: str | None = None
    row_count: int | None = None

    @property
    def is_current(self) -> bool:
        return self.object_type not in HISTORY_KINDS


@dataclass(frozen=True, slots=True)
class TablePin:
    """The table version that holds the rows of one type, as of one commit.

    The epochs count the commits that deleted from, or inserted into, the type. A write that is
    valid only if no such commit came in between requires the epoch that it read.
    """

    key: str
    ref: TableRef
    rows: int
    type_id: str
    incarnation: str
    transaction: str
    owner: str = MAIN  # incarnation of the branch that may write to this copy; others fork it
    delete_epoch: int = 0
    insert_epoch: int = 0
    removed: Fingerprints = None  # of the ids that this version removed; in history rows only
    digests: Digests = None  # of the files that this version added; in history rows only

    def moved(
        self,
        ref: TableRef,
        *,
        rows: int,
        transaction: str,
        deletes: bool,
        inserts: bool,
        owner: str,
        removed: Fingerprints = None,
        digests: Digests = None,
    ) -> TablePin:
        """The pin after a write."""
        return replace(
            self,
            ref=ref,
            rows=rows,
            transaction=transaction,
            owner=owner,
            delete_epoch=self.delete_epoch + deletes,
            insert_epoch=self.insert_epoch + inserts,
            removed=removed,
            digests=digests,
        )

    def to_row(self) -> Row:
        return self._row(RowKind.TABLE, f"table:{self.key}")

    def to_version_row(self, *, published: int | None = None) -> Row:
        """The history row that time travel reads.

        ``published`` is the manifest version that published it, where the row is written later
        (ADR 36); otherwise that is the version that creates the row.
        """
        kind = str(RowKind.TABLE_VERSION) + ("" if published is None else f"@{published}")
        row = self._row(RowKind.TABLE_VERSION, f"{kind}:{self.key}:{version_key(self.ref)}")
        metadata = dict(row.metadata)
        if self.removed:
            metadata["removed"] = list(self.removed)
        if self.digests:
            metadata["digests"] = list(self.digests)
        return replace(row, metadata=metadata)

    def _row(self, kind: RowKind, object_id: str) -> Row:
        return Row(
            object_id,
            kind,
            {
                "type_id": self.type_id,
                "incarnation": self.incarnation,
                "transaction": self.transaction,
                "owner": self.owner,
                "delete_epoch": self.delete_epoch,
                "insert_epoch": self.insert_epoch,
            },
            location=self.ref.path,
            table_key=self.key,
            table_version=self.ref.version,
            table_branch=self.ref.branch,
            row_count=self.rows,
        )

    @classmethod
    def from_row(cls, row: Row) -> TablePin:
        if row.table_key is None or row.location is None or row.table_version is None:
            raise CorruptData(f"the manifest row {row.object_id} names no table version")
        return cls(
            row.table_key,
            TableRef(row.location, row.table_branch, row.table_version),
            row.row_count or 0,
            row.metadata["type_id"],
            row.metadata["incarnation"],
            row.metadata["transaction"],
            row.metadata["owner"],
            row.metadata["delete_epoch"],
            row.metadata["insert_epoch"],
            read_fingerprints(row.metadata.get("removed")),
            read_digests(row.metadata.get("digests")),
        )


def version_key(ref: TableRef) -> str:
    """A version of a table as one string: path, physical branch, version."""
    return f"{ref.path}@{ref.branch or MAIN}:{ref.version}"


def parse_version_key(key: str) -> TableRef:
    """The inverse of ``version_key``."""
    where, _, version = key.rpartition(":")
    path, _, branch = where.rpartition("@")
    return TableRef(path, None if branch == MAIN else branch, int(version))


@dataclass(frozen=True, slots=True)
class Head:
    """The tip of a branch. Every manifest commit rewrites it, so concurrent commits conflict."""

    commit_id: str
    schema_hash: str
    branch: str

    def to_row(self) -> Row:
        return Row(
            f"graph_head:{self.branch}",
            RowKind.GRAPH_HEAD,
            {"commit_id": self.commit_id, "schema_hash": self.schema_hash, "branch": self.branch},
        )

    @classmethod
    def from_row(cls, row: Row) -> Head:
        data = row.metadata
        return cls(data["commit_id"], data["schema_hash"], data["branch"])


@dataclass(frozen=True, slots=True)
class Commit:
    """One graph commit. ``manifest_version`` is None until the commit was published."""

    commit_id: str
    branch: str
    kind: str
    created_at_us: int
    parent: str | None = None
    merged_parent: str | None = None
    actor: str | None = None
    message: str | None = None
    operation_id: str | None = None
    schema_hash: str | None = None
    recovered_by: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    manifest_version: int | None = None

    def to_row(self) -> Row:
        data = {
            "branch": self.branch,
            "kind": self.kind,
            "created_at_us": self.created_at_us,
            "parent": self.parent,
            "merged_parent": self.merged_parent,
            "actor": self.actor,
            "message": self.message,
            "operation_id": self.operation_id,
            "schema_hash": self.schema_hash,
            "recovered_by": self.recovered_by,
            "metadata": dict(self.metadata) or None,
        }
        return Row(
            f"graph_commit:{self.commit_id}",
            RowKind.GRAPH_COMMIT,
            {name: value for name, value in data.items() if value is not None},
        )

    def to_merged_row(self) -> Row:
        """The history row of a branch that this commit was merged into."""
        row = self.to_row()
        return replace(
            row,
            object_id=f"merged_commit:{self.commit_id}",
            object_type=RowKind.MERGED_COMMIT,
            table_version=self.manifest_version,
        )

    @classmethod
    def from_row(cls, row: Row, manifest_version: int | None) -> Commit:
        data = dict(row.metadata)
        data["metadata"] = data.get("metadata") or {}
        commit_id = row.object_id.partition(":")[2]
        return cls(commit_id=commit_id, manifest_version=manifest_version, **data)

    def to_json(self) -> dict[str, Any]:
        """The commit as JSON: the seven fields that other implementations have come first."""
        body: dict[str, Any] = {
            "graph_commit_id": self.commit_id,
            "graph_branch": None if self.branch == MAIN else self.branch,
            "graph_manifest_version": self.manifest_version,
            "parent_commit_id": self.parent,
            "merged_parent_commit_id": self.merged_parent,
            "actor_id": self.actor,
            "created_at": self.created_at_us,
            "kind": self.kind,
            "message": self.message,
            "operation_id": self.operation_id,
        }
        if self.metadata:
            body["metadata"] = dict(self.metadata)
        if self.recovered_by:
            body["recovered_by"] = self.recovered_by
        return body


def manifest_schema(metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """The Arrow schema of ``__manifest``."""
    key = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False, metadata=key),
            pa.field("object_type", pa.string(), nullable=False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.string())),
            pa.field("table_key", pa.string()),
            pa.field("table_version", pa.int64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.int64()),
            pa.field(CURRENT, pa.bool_()),
        ],
        metadata=dict(metadata) if metadata else None,
    )


def history_schema() -> pa.Schema:
    """The schema of a fragment that holds history only: the marker column is absent."""
    full = manifest_schema()
    return full.remove(full.get_field_index(CURRENT))


def rows_to_arrow(rows: list[Row], *, history_only: bool = False) -> pa.Table:
    """Rows as an Arrow table, in the order given."""
    columns: dict[str, list[Any]] = {
        "object_id": [row.object_id for row in rows],
        "object_type": [str(row.object_type) for row in rows],
        "location": [row.location for row in rows],
        "metadata": [json.dumps(dict(row.metadata), separators=(",", ":")) for row in rows],
        "base_objects": [None if r.base_objects is None else list(r.base_objects) for r in rows],
        "table_key": [row.table_key for row in rows],
        "table_version": [row.table_version for row in rows],
        "table_branch": [row.table_branch for row in rows],
        "row_count": [row.row_count for row in rows],
    }
    if not history_only:
        columns[CURRENT] = [row.is_current for row in rows]
    return pa.table(columns, schema=history_schema() if history_only else manifest_schema())


def row_from_arrow(record: Mapping[str, Any]) -> Row:
    """One stored row."""
    try:
        metadata = json.loads(record["metadata"] or "{}")
    except ValueError as error:
        raise CorruptData(
            f"the manifest row {record['object_id']} has unreadable metadata"
        ) from error
    return Row(
        record["object_id"],
        record["object_type"],
        metadata,
        record["location"],
        None if record["base_objects"] is None else tuple(record["base_objects"]),
        record["table_key"],
        record["table_version"],
        record["table_branch"],
        record["row_count"],
    )
