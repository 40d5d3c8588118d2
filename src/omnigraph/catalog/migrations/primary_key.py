"""Version 1 to 2: the id of a manifest row is declared as the table's primary key."""

from __future__ import annotations

from omnigraph.catalog.migrations.step import Site
from omnigraph.storage.lance.arrow_schema import PRIMARY_KEY
from omnigraph.storage.lance.staging.metadata import stage_column_metadata
from omnigraph.storage.lance.tables import PinnedTable

_COLUMN = "object_id"


class DeclarePrimaryKey:
    source = 1
    says = "declare the primary key of the manifest"

    def touches(self, site: Site) -> list[str]:
        return [] if _is_declared(site.newest()) else [f"the column {_COLUMN} of the manifest"]

    def work(self, site: Site, properties: dict[str, str]) -> None:
        table = site.newest()
        if not _is_declared(table):
            staged = stage_column_metadata(table, _COLUMN, PRIMARY_KEY, properties)
            site.tables.commit_rebasing(staged)


def _is_declared(table: PinnedTable) -> bool:
    stored = table.schema.field(_COLUMN).metadata or {}
    return all(stored.get(k.encode()) == v.encode() for k, v in PRIMARY_KEY.items())
