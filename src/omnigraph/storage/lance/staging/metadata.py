"""Staged changes of schema and column metadata.

No row and no data file changes. A concurrent change of the same key is a conflict, after which the
caller reads the new value; concurrent changes of rows are not.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance import LanceOperation, Transaction

from omnigraph.storage.lance.tables import PinnedTable, StagedWrite


def stage_schema_metadata(
    table: PinnedTable, entries: Mapping[str, str | None], properties: Mapping[str, str]
) -> StagedWrite:
    """Set entries of the schema's metadata; None removes one."""
    updates = LanceOperation.UpdateMap(dict(entries))
    operation = LanceOperation.UpdateConfig(schema_metadata_updates=updates)
    transaction = Transaction(table.ref.version, operation, transaction_properties=dict(properties))
    return StagedWrite(table.ref, transaction, "metadata", rows_after=table.rows)


def stage_column_metadata(
    table: PinnedTable, column: str, entries: Mapping[str, str], properties: Mapping[str, str]
) -> StagedWrite:
    """Set entries of one column's metadata."""
    fields = table.dataset.lance_schema.fields()
    field_id = next(field.id() for field in fields if field.name() == column)
    updates = {field_id: LanceOperation.UpdateMap(dict(entries))}
    operation = LanceOperation.UpdateConfig(field_metadata_updates=updates)
    transaction = Transaction(table.ref.version, operation, transaction_properties=dict(properties))
    return StagedWrite(table.ref, transaction, "metadata", rows_after=table.rows)
