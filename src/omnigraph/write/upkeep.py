"""Light upkeep: what a graph does for itself after many small writes.

A type whose table has gathered many small fragments is compacted, as a write of its own that adds
no graph commit. Upkeep never waits and never fails a user's write: when another writer is faster,
the next write tries again.
"""

from __future__ import annotations

import logging

from omnigraph.commit.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.commit.transaction import WriteTransaction
from omnigraph.errors import OmnigraphError
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage.staging import stage_compaction
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY
from omnigraph.storage.tiers import needs_compaction

log = logging.getLogger("omnigraph.upkeep")
INFO = WriteInfo("upkeep", makes_commit=False)


def tend(
    repository: Repository, transaction: WriteTransaction, branch: Branch, type_keys: list[str]
) -> list[str]:
    """Compact those of these types that need it; returns the ones that were compacted."""
    done = []
    for key in type_keys:
        try:
            if _compact(repository, transaction, branch, key):
                done.append(key)
        except OmnigraphError as error:
            log.info("upkeep of %s was put off: %s", key, error.message)
    return done


def _compact(
    repository: Repository, transaction: WriteTransaction, branch: Branch, key: str
) -> bool:
    state = repository.manifest(branch).warm()
    pin = state.pins.get(key)
    if pin is None or pin.owner != branch.incarnation:
        return False  # not this branch's own copy
    table = repository.tables.open(pin.ref)
    if not needs_compaction({f: m.physical_rows for f, m in table.fragments.items()}):
        return False
    operation_id = new_ulid()
    properties = {OPERATION_PROPERTY: operation_id, KIND_PROPERTY: INFO.kind}
    staged = stage_compaction(table, properties)
    if staged is None:
        return False
    snapshot = repository.snapshot(branch)
    if snapshot.pins.get(key) != pin:
        return False
    prepared = PreparedWrite(operation_id, snapshot, INFO, (PreparedTable(pin, staged),))
    transaction.commit(prepared)
    return True
