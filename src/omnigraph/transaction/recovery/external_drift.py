"""Detects drift from outside Omnigraph: no recovery record covers it, and recovery cannot undo it.

A live writer moves its tables before it publishes, which looks like drift for a moment. A suspected
drift is therefore checked in the order of a write: the table first, then the records, then the
published state.
"""

from __future__ import annotations

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import CorruptData
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.pending import PendingRecords


def external_drift(
    repository: Repository, pending: PendingRecords, branch: Branch, pin: TablePin
) -> TableDrift | None:
    """The drift of a table that was changed from outside; None when there is none."""
    if pin.owner != branch.incarnation:
        return None  # another branch's table, with its own history
    drift = find_drift(repository.tables, pin.ref)
    if not drift.exists:
        return None
    try:
        records = pending.of_branch(branch.incarnation)
    except CorruptData:
        records = []  # unknown which operations they cover
    covered = {found.record.operation_id for found in records}
    state = repository.manifest(branch).current()
    published = state.pins.get(pin.key)
    if published is None or published.ref != pin.ref:
        return None  # its writer has published it meanwhile
    if covered & drift.operations() or drift.is_abandoned(state, covered):
        return None
    return drift if find_drift(repository.tables, pin.ref) == drift else None
