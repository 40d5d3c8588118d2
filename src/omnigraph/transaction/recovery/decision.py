"""Decides how a record is resolved. A pure function of stored state, so a dry run can show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import Conflict, CorruptData
from omnigraph.storage.lance.tables import TableStore
from omnigraph.transaction.recovery.drift import Movement, TableDrift, find_drift
from omnigraph.transaction.recovery.record import PlannedTable, RecoveryRecord


class Verdict(StrEnum):
    """How a record is to be resolved."""

    PUBLISHED = "published"  # its write is visible: only the record is left
    FORWARD = "forward"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the facts it is based on."""

    verdict: Verdict
    state: ManifestState
    commit: Commit | None
    drifts: Mapping[str, TableDrift]
    movements: Mapping[str, Movement]


def decide(
    store: TableStore, record: RecoveryRecord, state: ManifestState, *, aborted: bool = False
) -> Decision:
    """Roll forward only when every table moved as planned and all requirements still hold.

    ``aborted``: the owner reported the write as failed.
    """
    published, commit = _published(record, state)
    if published:
        return Decision(Verdict.PUBLISHED, state, commit, {}, {})
    drifts = {table.key: _drift(store, table, state) for table in record.tables}
    movements = {
        table.key: drifts[table.key].classify(record.operation_id, table.transaction)
        for table in record.tables
    }
    complete = all(movement is Movement.OURS for movement in movements.values())
    abandoned = aborted or state.row(f"abandoned:{record.operation_id}") is not None
    verdict = Verdict.BACK
    if complete and not abandoned and _requirements_hold(record, state):
        verdict = Verdict.FORWARD
    return Decision(verdict, state, None, drifts, movements)


def _published(record: RecoveryRecord, state: ManifestState) -> tuple[bool, Commit | None]:
    """Whether the record's write is visible already, and its commit if it makes one."""
    if record.commit is not None:
        commit = find_commit(state, record.commit.commit_id)
        return commit is not None, commit
    pins = [state.pins.get(table.key) for table in record.tables]
    moved = all(
        pin is not None and (pin.ref, pin.transaction) == (table.landing, table.transaction)
        for pin, table in zip(pins, record.tables, strict=True)
    )
    return moved, None


def _requirements_hold(record: RecoveryRecord, state: ManifestState) -> bool:
    try:
        record.requirements.check(state)
    except Conflict:
        return False
    return True


def _drift(store: TableStore, planned: PlannedTable, state: ManifestState) -> TableDrift:
    """The drift of a planned table; a fork is compared with itself, not with its source."""
    pin = state.pins.get(planned.key)
    if pin is None or not planned.writes_in_place(pin):
        return find_drift(store, planned.target)
    if pin.ref.version < planned.target.version:
        raise _impossible(
            f"{planned.key} is published at version {pin.ref.version}, below version "
            f"{planned.target.version} that an unfinished write started from",
            pin,
        )
    if not store.has_version(pin.ref):
        raise _impossible(
            f"{planned.key} is published at version {pin.ref.version}, and its table does not "
            "have that version",
            pin,
        )
    return find_drift(store, pin.ref)


def _impossible(message: str, pin: TablePin) -> CorruptData:
    return CorruptData(
        message,
        remedy="The graph's files were changed from outside: restore them from a backup. The "
        "record of the unfinished write stays.",
        details={"type_key": pin.key, "published_version": pin.ref.version, "path": pin.ref.path},
    )
