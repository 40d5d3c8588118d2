"""Writes to the manifest and the recovery audit of an original, in the original's own form.

Until a conversion is published the original must be able to open the graph, so everything before
uses its rows. A publish replaces the head of the branch and lists every fragment as changed: of two
concurrent ones Lance refuses one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.original.rows import HEAD_PREFIX, OriginalKind
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.storage.lance.errors import TableExists, TableNotFound
from omnigraph.storage.lance.staging.rows import delete_addresses, stage_fragments, write_rows
from omnigraph.storage.lance.tables import (
    PinnedTable,
    StagedWrite,
    TableRef,
    TableStore,
    operation_properties,
    version_file,
)
from omnigraph.storage.paths import RECOVERY_AUDIT_PATH

AUDIT_SCHEMA: Final = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("sidecar_writer_kind", pa.string(), nullable=False),
        pa.field("per_table_outcomes_json", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)
OriginalRow = Mapping[str, Any]
"""A row of the manifest by column; columns that are missing are null."""


def commit_rows(commits: Sequence[Commit], branch: str) -> list[OriginalRow]:
    """The rows of some commits, and of the head of their branch, which is the last."""
    found: list[OriginalRow] = [
        {
            "object_id": commit.commit_id,
            "object_type": str(OriginalKind.COMMIT),
            "metadata": _json(
                parent_commit_id=commit.parent,
                merged_parent_commit_id=commit.merged_parent,
                actor_id=commit.actor,
                created_at=commit.created_at_us,
            ),
            "table_version": commit.manifest_version,
            "table_branch": None if commit.branch == MAIN else commit.branch,
        }
        for commit in commits
    ]
    head = commits[-1]
    return [
        *found,
        {
            "object_id": f"{HEAD_PREFIX}{branch}",
            "object_type": str(OriginalKind.HEAD),
            "metadata": _json(head_commit_id=head.commit_id, parent_commit_id=head.parent),
        },
    ]


def version_row(store: TableStore, key: str, ref: TableRef, rows: int) -> OriginalRow:
    """The row of a published version."""
    path = store.location.child(ref.dataset_path, "_versions", version_file(ref.version)).path
    return {
        "object_id": f"{key}${ref.version:020d}",
        "object_type": str(OriginalKind.VERSION),
        "metadata": json.dumps(
            {
                "manifest_path": path.lstrip("/"),
                "manifest_size": None,
                "e_tag": None,
                "naming_scheme": "V2",
            }
        ),
        "table_key": key,
        "table_version": ref.version,
        "table_branch": ref.branch,
        "row_count": rows,
    }


def table_row(key: str, path: str) -> OriginalRow:
    """The row of a table that a schema change added."""
    kind = str(OriginalKind.TABLE)
    return {"object_id": key, "object_type": kind, "location": path, "table_key": key}


def tombstone_row(key: str, version: int) -> OriginalRow:
    """The row of a table that a schema change dropped."""
    return {
        "object_id": f"{key}$tombstone${version:020d}",
        "object_type": str(OriginalKind.TOMBSTONE),
        "table_key": key,
        "table_version": version,
    }


def stage_publish(
    table: PinnedTable, rows: Sequence[OriginalRow], operation_id: str
) -> StagedWrite:
    """Add rows to a manifest and drop those of the same ids."""
    filled = [{**dict.fromkeys(table.schema.names), "table_key": "", **row} for row in rows]
    added = pa.Table.from_pylist(filled, schema=table.schema.remove_metadata())
    ids = {row["object_id"] for row in rows}
    stored = table.scan(["object_id"], with_row_address=True)
    replaced = stored.filter(pc.is_in(stored["object_id"], value_set=pa.array(sorted(ids))))
    changed, gone = delete_addresses(table, [replaced["_rowaddr"].to_numpy()])
    properties = operation_properties(operation_id, "publish")
    new = write_rows(table, added)
    return stage_fragments(table, "publish", properties, new=new, changed=changed, gone=gone)


def append_audit(store: TableStore, row: Mapping[str, Any]) -> None:
    """Record a resolved write once; the table is made by the first row."""
    try:
        table = store.open_newest(RECOVERY_AUDIT_PATH)
    except TableNotFound:
        properties = operation_properties(row["operation_id"], "recovery_audit")
        with suppress(TableExists):  # another process was first
            store.create(RECOVERY_AUDIT_PATH, AUDIT_SCHEMA, properties)
        table = store.open_newest(RECOVERY_AUDIT_PATH)
    if row["operation_id"] in table.scan(["operation_id"])["operation_id"].to_pylist():
        return
    properties = operation_properties(row["operation_id"], "recovery_audit")
    new = write_rows(table, pa.Table.from_pylist([row], schema=AUDIT_SCHEMA))
    store.commit(stage_fragments(table, "audit", properties, new=new))


def _json(**entries: str | int | None) -> str:
    """The metadata of a row: the original leaves out what is null."""
    given = {name: value for name, value in entries.items() if value is not None}
    return json.dumps(given, separators=(",", ":"))
