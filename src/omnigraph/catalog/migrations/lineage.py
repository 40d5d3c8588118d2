"""Version 3 to 4: commits move from datasets of their own into the manifest, branch by branch.

One commit of the manifest adds the rows of all commits and the head. It lists every fragment as
changed, so of two concurrent processes one is refused, finds a head and stops: no commit is added
twice. A row keeps the manifest version that its commit was made in, so the state at every old
commit can still be read.
"""

from __future__ import annotations

from dataclasses import replace

from lance import LanceOperation, Transaction

from omnigraph.catalog.migrations.legacy import Lineage
from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.catalog.rows import Head, Row, rows_to_arrow
from omnigraph.catalog.state import load_state
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.staging.rows import write_rows
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite


class MoveLineage:
    source = 3
    description = "move the commits into the manifest"

    def preview(self, target: MigrationTarget) -> list[str]:
        state = load_state(target.newest())
        if state.heads:
            return []
        return [f"{len(target.lineage_of(state).commits)} commits"]

    def apply(self, target: MigrationTarget, properties: dict[str, str]) -> None:
        state = load_state(target.newest())
        if not state.heads:
            rows = lineage_rows(target.lineage_of(state), state.only_schema)
            target.tables.commit_rebasing(_stage(state.table, rows, properties))


def lineage_rows(lineage: Lineage, schema_hash: str) -> list[Row]:
    """The manifest rows of a lineage: its commits and its head."""
    rows = [replace(c.to_row(), table_version=c.manifest_version) for c in lineage.commits]
    return [*rows, Head(lineage.head_id, schema_hash, lineage.branch).to_row()]


def _stage(table: PinnedTable, rows: list[Row], properties: dict[str, str]) -> StagedWrite:
    with translated("staging the commits of a branch"):
        added = write_rows(table, rows_to_arrow(rows))
    operation = LanceOperation.Update(
        updated_fragments=list(table.fragments.values()), new_fragments=added
    )
    transaction = Transaction(table.ref.version, operation, transaction_properties=properties)
    return StagedWrite(table.ref, transaction, "lineage", rows_after=0)
