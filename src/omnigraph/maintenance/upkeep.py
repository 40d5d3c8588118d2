"""Light upkeep: what a graph does for itself after writes.

A type whose table has gathered many small fragments is compacted, and after that, or after a large
write, the indexes that look-ups rest on (ids, ends of edges, keys, unique properties) are brought
up to date. Each is a write of its own that adds no graph commit. Upkeep never waits and never fails
a user's write: when another writer is faster, the next write tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.schemas import load_schema
from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.staging.compaction_tiers import needs_compaction
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

log = logging.getLogger("omnigraph.upkeep")
INFO = WriteInfo("upkeep", makes_commit=False)

LARGE_WRITE_ROWS: Final = 10_000
"""A write of more rows than this is indexed at once; fewer are found by scanning them."""

Stage = Callable[[PinnedTable, dict[str, str]], StagedWrite | None]


def tend(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    rows_written: Mapping[str, int],
) -> list[str]:
    """Tend the types that were just written; returns those whose table changed."""
    done = []
    for key, rows in sorted(rows_written.items()):
        try:
            compacted = _publish(repository, transaction, branch, key, _compaction)
            indexed = False
            if compacted or rows > LARGE_WRITE_ROWS:
                stage = _indexing(_schema(repository, branch), key)
                indexed = _publish(repository, transaction, branch, key, stage)
            if compacted or indexed:
                done.append(key)
        except OmnigraphError as error:
            log.info("upkeep of %s was put off: %s", key, error.message)
    return done


def lookup_columns(owner: NodeType | EdgeType) -> list[str]:
    """The columns that writes look entities up by."""
    unique = [column for columns in owner.unique for column in columns]
    return list(dict.fromkeys([*owner.system_columns, *owner.key_properties, *unique]))


def _compaction(table: PinnedTable, properties: dict[str, str]) -> StagedWrite | None:
    if not needs_compaction({f: m.physical_rows for f, m in table.fragments.items()}):
        return None
    return stage_compaction(table, properties)


def _indexing(schema: AcceptedSchema, key: str) -> Stage:
    specs = [IndexSpec(column, "BTREE") for column in lookup_columns(schema.type(key))]

    def stage(table: PinnedTable, properties: dict[str, str]) -> StagedWrite | None:
        if table.rows <= LARGE_WRITE_ROWS:
            return None
        return stage_indexes(table, specs, properties)

    return stage


def _schema(repository: Repository, branch: Branch) -> AcceptedSchema:
    state = repository.manifest(branch).warm()
    return load_schema(state, state.head.schema_hash)


def _publish(
    repository: Repository, transaction: WriteTransaction, branch: Branch, key: str, stage: Stage
) -> bool:
    """Stage something on a type's table and publish it; False when there was nothing to do."""
    state = repository.manifest(branch).warm()
    pin = state.pins.get(key)
    if pin is None or pin.owner != branch.incarnation:
        return False  # not this branch's own copy
    operation_id = new_ulid()
    properties = operation_properties(operation_id, INFO.kind)
    staged = stage(repository.tables.open(pin.ref), properties)
    if staged is None:
        return False
    snapshot = repository.snapshot(branch)
    if snapshot.pins.get(key) != pin:
        return False
    prepared = PreparedWrite(operation_id, snapshot, INFO, (PreparedTable(pin, staged),))
    transaction.commit(prepared)
    return True
