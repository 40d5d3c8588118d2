"""Version 1 to 2: the id of a manifest row is declared as the table's primary key."""

from __future__ import annotations

from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.storage.lance.arrow_schema import PRIMARY_KEY
from omnigraph.storage.lance.staging.metadata import stage_column_metadata
from omnigraph.storage.lance.tables import PinnedTable

_COLUMN = "object_id"


class DeclarePrimaryKey:
    source = 1
    description = "declare the primary key of the manifest"

    def preview(self, target: MigrationTarget) -> list[str]:
        return [] if _is_declared(target.newest()) else [f"the column {_COLUMN} of the manifest"]

    def apply(self, target: MigrationTarget, properties: dict[str, str]) -> None:
        table = target.newest()
        if not _is_declared(table):
            staged = stage_column_metadata(table, _COLUMN, PRIMARY_KEY, properties)
            target.tables.commit_rebasing(staged)


def _is_declared(table: PinnedTable) -> bool:
    stored = table.schema.field(_COLUMN).metadata or {}
    return all(stored.get(k.encode()) == v.encode() for k, v in PRIMARY_KEY.items())
