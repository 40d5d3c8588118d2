"""Automatic upkeep after a write: compaction of small files, and the indexes that look-ups need.

A type whose table has many small fragments is compacted. After a compaction or a large write, the
indexes of ids, edge ends, keys and unique properties are brought up to date. Each is published
without a graph commit. Upkeep never waits and never fails the write it follows: after a conflict
the next write tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.schemas import load_schema
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.maintenance.publish import MaintenancePublisher, StageMaintenance
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.staging.compaction_tiers import needs_compaction
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

log = logging.getLogger("omnigraph.upkeep")
INFO: Final = WriteInfo("upkeep", makes_commit=False)

LARGE_WRITE_ROWS: Final = 10_000
"""The rows of a larger write are indexed at once; look-ups scan fewer rows without an index."""


def run_upkeep(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    rows_written: Mapping[str, int],
) -> list[str]:
    """Compact and index the types that were just written; returns those whose table changed."""
    publisher = MaintenancePublisher(repository, transaction, branch)
    changed = []
    for key, rows in sorted(rows_written.items()):
        try:
            compacted = publisher.publish_once(INFO, key, _compact)
            indexed = False
            if compacted or rows > LARGE_WRITE_ROWS:
                stage = _lookup_indexes(_schema(repository, branch))
                indexed = publisher.publish_once(INFO, key, stage)
            if compacted or indexed:
                changed.append(key)
        except OmnigraphError as error:
            log.info("upkeep of %s was skipped: %s", key, error.message)
    return changed


def lookup_columns(owner: NodeType | EdgeType) -> list[str]:
    """The columns by which writes look entities up."""
    unique = [column for columns in owner.unique for column in columns]
    return list(dict.fromkeys([*owner.system_columns, *owner.key_properties, *unique]))


def _compact(key: str, table: PinnedTable, properties: Mapping[str, str]) -> StagedWrite | None:
    if not needs_compaction({f: m.physical_rows for f, m in table.fragments.items()}):
        return None
    return stage_compaction(table, properties)


def _lookup_indexes(schema: AcceptedSchema) -> StageMaintenance:
    def stage(key: str, table: PinnedTable, properties: Mapping[str, str]) -> StagedWrite | None:
        if table.rows <= LARGE_WRITE_ROWS:
            return None
        specs = [IndexSpec(column, "BTREE") for column in lookup_columns(schema.type(key))]
        return stage_indexes(table, specs, properties)

    return stage


def _schema(repository: Repository, branch: Branch) -> AcceptedSchema:
    state = repository.manifest(branch).warm()
    return load_schema(state, state.head.schema_hash)
