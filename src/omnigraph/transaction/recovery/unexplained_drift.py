"""Drift that nobody is at: no record of an unfinished write explains it, and nothing undoes it.

A live writer moves its tables before it publishes; seen from outside, that looks like drift for a
moment. So what looks like it is looked at again in the order in which a writer works: the table
first, then the records, then what is published.
"""

from __future__ import annotations

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import CorruptData
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.pending import PendingRecords


def uncovered_drift(
    repository: Repository, pending: PendingRecords, branch: Branch, pin: TablePin
) -> TableDrift | None:
    """How a type of the branch's own was changed from outside; None when it was not."""
    if pin.owner != branch.incarnation:
        return None  # another branch's table, which has a history of its own by now
    drift = find_drift(repository.tables, pin.ref)
    if not drift.exists:
        return None
    try:
        records = pending.of_branch(branch.incarnation)
    except CorruptData:
        records = []  # nobody can say what it covers
    covered = {found.record.operation_id for found in records}
    state = repository.manifest(branch).current()
    published = state.pins.get(pin.key)
    if published is None or published.ref != pin.ref:
        return None  # its writer was about to publish it
    if covered & drift.operations() or drift.is_wanted_by_nobody(state, covered):
        return None
    return drift if find_drift(repository.tables, pin.ref) == drift else None
