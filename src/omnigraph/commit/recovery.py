"""Recovery: finish or undo what a dead writer left, without a human.

A record is resolved by one process at a time (it claims the record first), in one of two ways.
When every table moved exactly as planned and the write's requirements still hold, it is rolled
*forward*: published under its own commit id and actor. Otherwise it is rolled *back*: tables that
moved are restored to their published content, and one publish records the restored versions
together with a mark under the operation's id. The publisher refuses a marked operation, so an
owner that was only paused can never publish what was undone here.

Reads never come here. Records of one branch are resolved only by writes to that branch, by opening
the graph for writing, and by ``omnigraph recover``.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace

from omnigraph.commit.audit import Action, AuditRow, append_audit
from omnigraph.commit.drift import ROLLBACK_PREFIX, Movement, TableDrift, find_drift
from omnigraph.commit.holding import active
from omnigraph.commit.ownership import this_process
from omnigraph.commit.pending import Pending, PendingRecords
from omnigraph.commit.queues import turn
from omnigraph.commit.record import PlannedTable, RecoveryRecord
from omnigraph.errors import Conflict, Contention, CorruptData, ObjectExists
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import Branch, all_branches
from omnigraph.manifest.history import find_commit
from omnigraph.manifest.publication import Publication, Requirements, TableChange
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import Commit, Kind, Row, TablePin
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.failpoints import hit
from omnigraph.storage.staging import stage_restore
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY, TableRef

log = logging.getLogger("omnigraph.recovery")

RECOVERY_ACTOR = "omnigraph:recovery"
DECISIONS_MAX = 20  # a decision is taken anew when the branch moved under it, this often


@dataclass(frozen=True, slots=True)
class Resolution:
    """How one record was resolved."""

    operation_id: str
    action: Action
    commit: Commit | None
    tables: dict[str, str]


class Recovery:
    """Resolves the records of one graph's branches."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._store = repository.tables
        self._objects = repository.objects
        self.pending = PendingRecords(repository.objects, repository.clock)

    def resolve(self, branch: Branch) -> list[Resolution]:
        """Resolve what dead writers left on this branch. One list call when there is nothing."""
        done = []
        for pending in self.pending.of_branch(branch.incarnation):
            if not self.pending.may_resolve(pending):
                continue
            with active(pending.record.operation_id) as first:
                if first and self._claim(pending):
                    done.append(self._resolve_in_turn(branch, pending))
        return done

    def resolve_own(self, branch: Branch, record: RecoveryRecord) -> Resolution:
        """Resolve this process's own failed write at once: nobody else may touch it yet."""
        return self._resolve_claimed(branch, Pending(record.path, record))

    def resolve_all(self) -> list[Resolution]:
        """The same for the whole graph. One list call when there is nothing."""
        waiting = self.pending.incarnations()
        if not waiting:
            return []
        live = {b.incarnation: b for b in all_branches(self._repository.main.current()).values()}
        done = []
        for incarnation in waiting:
            branch = live.get(incarnation)
            done += self._discard(incarnation) if branch is None else self.resolve(branch)
        return done

    def _discard(self, incarnation: str) -> list[Resolution]:
        """Discard the records of a branch that no longer exists."""
        done = []
        for pending in self.pending.of_branch(incarnation):
            record = pending.record
            outcome = dict.fromkeys((t.key for t in record.tables), "branch deleted")
            resolution = Resolution(
                record.operation_id, Action.ORPHANED_BRANCH_DISCARDED, None, outcome
            )
            self._finish(pending, resolution)
            done.append(resolution)
        return done

    def heal_resolved_drift(self, branch: Branch, pin: TablePin, drift: TableDrift) -> None:
        """Undo what an already abandoned operation still moved: restore and re-pin, no commit."""
        operation_id = new_ulid()
        change = self._restore(branch, pin, drift, operation_id)
        self._repository.manifest(branch).publish(
            Publication(
                operation_id,
                branch.name,
                Requirements(tables={pin.key: pin.ref}),
                (change,),
            )
        )

    # -- one record -------------------------------------------------------------------------------

    def _claim(self, pending: Pending) -> bool:
        """Become the one resolver of a record; False when somebody else is."""
        owner = json.dumps(asdict(this_process())).encode()
        try:
            self._objects.put_if_absent(pending.next_claim, owner)
        except ObjectExists:
            return False
        hit("recovery.after_claim")
        return True

    def _resolve_in_turn(self, branch: Branch, pending: Pending) -> Resolution:
        uri, record = self._repository.location.uri, pending.record
        with turn(uri, branch.incarnation, [table.key for table in record.tables]):
            return self._resolve_claimed(branch, pending)

    def _resolve_claimed(self, branch: Branch, pending: Pending) -> Resolution:
        record = pending.record
        for _ in range(DECISIONS_MAX):
            state = self._repository.manifest(branch).current()
            try:
                resolution = self._decide(branch, record, state)
            except Conflict as conflict:
                log.info("deciding again on %s: %s", record.operation_id, conflict.message)
                continue
            self._finish(pending, resolution)
            return resolution
        raise Contention(
            f"operation {record.operation_id} could not be resolved: the branch keeps moving",
            details={"operation_id": record.operation_id},
        )

    def _decide(self, branch: Branch, record: RecoveryRecord, state: ManifestState) -> Resolution:
        published = _published(record, state)
        if published is not None:
            outcome = dict.fromkeys((t.key for t in record.tables), "published")
            return Resolution(record.operation_id, Action.ROLLED_FORWARD, published.commit, outcome)
        drifts = {t.key: self._drift(t, state) for t in record.tables}
        movements = {
            t.key: drifts[t.key].seen_from(record.operation_id, t.transaction)
            for t in record.tables
        }
        abandoned = state.row(f"abandoned:{record.operation_id}") is not None
        if not abandoned and all(m is Movement.OURS for m in movements.values()):
            try:
                return self._roll_forward(branch, record)
            except Conflict as conflict:
                log.info("rolling %s back: %s", record.operation_id, conflict.message)
        return self._roll_back(branch, record, state, drifts, movements)

    def _drift(self, planned: PlannedTable, state: ManifestState) -> TableDrift:
        """What happened to a planned table; a fork is judged on its own, not on what it forked."""
        published = planned.target
        pin = state.pins.get(planned.key)
        same_place = pin is not None and pin.ref.at(0) == planned.target.at(0)
        if pin is not None and same_place:
            if pin.ref.version < planned.target.version:
                raise _impossible(planned, pin)
            published = pin.ref
        return find_drift(self._store, published)

    def _roll_forward(self, branch: Branch, record: RecoveryRecord) -> Resolution:
        publication = record.publication()
        if publication.commit is not None:
            recovered = replace(publication.commit, recovered_by=RECOVERY_ACTOR)
            publication = replace(publication, commit=recovered)
        hit("recovery.before_publish")
        published = self._repository.manifest(branch).publish(publication)
        hit("recovery.after_publish")
        outcome = dict.fromkeys((t.key for t in record.tables), "rolled forward")
        return Resolution(record.operation_id, Action.ROLLED_FORWARD, published.commit, outcome)

    def _roll_back(
        self,
        branch: Branch,
        record: RecoveryRecord,
        state: ManifestState,
        drifts: dict[str, TableDrift],
        movements: dict[str, Movement],
    ) -> Resolution:
        changes: list[TableChange] = []
        outcome: dict[str, str] = {}
        restored: dict[str, TableRef] = {}
        for planned in record.tables:
            movement = movements[planned.key]
            pin = state.pins.get(planned.key)
            outcome[planned.key] = _OUTCOMES[movement]
            forked = pin is None or pin.ref.at(0) != planned.target.at(0)
            if movement in (Movement.NONE, Movement.FOREIGN) or pin is None:
                continue
            if forked:
                outcome[planned.key] = "fork discarded"
                continue
            restored[pin.key] = pin.ref
            drift = drifts[planned.key]
            changes.append(self._restore(branch, pin, drift, record.operation_id))
        commit = self._publish_roll_back(branch, record, changes, Requirements(tables=restored))
        return Resolution(record.operation_id, Action.ROLLED_BACK, commit, outcome)

    def _publish_roll_back(
        self,
        branch: Branch,
        record: RecoveryRecord,
        changes: list[TableChange],
        requirements: Requirements,
    ) -> Commit | None:
        """Record the restored versions and mark the operation, in one publish."""
        now = self._repository.clock.now_us()
        mark = Row(
            f"abandoned:{record.operation_id}",
            Kind.ABANDONED,
            {"kind": record.kind, "actor": record.owner.host, "at_us": now},
        )
        commit = None
        if changes:
            commit = Commit(
                commit_id=new_ulid(),
                branch=branch.name,
                kind="rollback",
                created_at_us=now,
                actor=RECOVERY_ACTOR,
                operation_id=ROLLBACK_PREFIX + record.operation_id,
                message=f"undo the unfinished {record.kind} {record.operation_id}",
            )
        hit("recovery.before_publish")
        published = self._repository.manifest(branch).publish(
            Publication(
                ROLLBACK_PREFIX + record.operation_id,
                branch.name,
                requirements,
                tuple(changes),
                commit,
                put=(mark,),
            )
        )
        hit("recovery.after_publish")
        return published.commit

    def _restore(
        self, branch: Branch, pin: TablePin, drift: TableDrift, operation_id: str
    ) -> TableChange:
        """Bring the published content back as the newest version (unless that was done already)."""
        newest = self._store.open(drift.newest)
        last = drift.made_by[-1] if drift.made_by else None
        rollback = ROLLBACK_PREFIX + operation_id
        if last is not None and last.operation == rollback and last.uuid is not None:
            restored, transaction = newest.ref, last.uuid
        else:
            properties = {OPERATION_PROPERTY: rollback, KIND_PROPERTY: "restore"}
            staged = stage_restore(newest, pin.ref.version, pin.rows, properties)
            hit("recovery.before_restore")
            restored, transaction = self._store.commit(staged).ref, staged.uuid
            hit("recovery.after_restore")
        return TableChange(
            pin.key,
            restored,
            pin.rows,
            transaction,
            deletes=False,
            inserts=False,
            owner=branch.incarnation,
        )

    def _finish(self, pending: Pending, resolution: Resolution) -> None:
        """Audit exactly once, then remove everything that belongs to the record, itself last."""
        record = pending.record
        append_audit(
            self._store,
            AuditRow(
                resolution.operation_id,
                resolution.action,
                record.kind,
                record.branch,
                None if record.commit is None else record.commit.actor,
                None if resolution.commit is None else resolution.commit.commit_id,
                self._repository.clock.now_us(),
                resolution.tables,
            ),
        )
        hit("recovery.after_audit")
        self.pending.remove(pending)
        hit("recovery.after_delete")
        log.warning(
            "resolved an unfinished write: operation=%s kind=%s branch=%s action=%s",
            record.operation_id,
            record.kind,
            record.branch,
            resolution.action,
        )


_OUTCOMES = {
    Movement.NONE: "had not moved",
    Movement.OURS: "rolled back",
    Movement.UNDONE: "rolled back",
    Movement.FOREIGN: "moved by another operation, left alone",
}


@dataclass(frozen=True, slots=True)
class _Visible:
    commit: Commit | None


def _published(record: RecoveryRecord, state: ManifestState) -> _Visible | None:
    """Whether the record's write is visible already."""
    if record.commit is not None:
        commit = find_commit(state, record.commit.commit_id)
        return None if commit is None else _Visible(commit)
    pins = [state.pins.get(table.key) for table in record.tables]
    moved = [
        pin is not None and (pin.ref, pin.transaction) == (table.landing, table.transaction)
        for pin, table in zip(pins, record.tables, strict=True)
    ]
    return _Visible(None) if moved and all(moved) else None


def _impossible(planned: PlannedTable, pin: TablePin) -> CorruptData:
    return CorruptData(
        f"{planned.key} is published at version {pin.ref.version}, below version "
        f"{planned.target.version} that an unfinished write started from",
        remedy="The graph's files were changed from outside: restore them from a backup.",
    )
