"""Recovery: finish or undo what a dead writer left, without a human.

A record is resolved by one process at a time (it claims the record first), in one of two ways.
When every table moved exactly as planned and the write's requirements still hold, it is rolled
*forward*: published under its own commit id and actor. Otherwise it is rolled *back*: tables that
moved are restored to their published content, and one publish records the restored versions
together with a mark under the operation's id. The publisher refuses a marked operation, so an
owner that was only paused can never publish what was undone here.

Reads never come here. Records of one branch are resolved only by writes to that branch, by
opening the graph for writing, and by ``omnigraph recover``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from omnigraph.commit.audit import Action, AuditRow, Cause, append_audit
from omnigraph.commit.decision import Decision, Way, decide
from omnigraph.commit.drift import ROLLBACK_PREFIX, Movement, TableDrift, find_drift
from omnigraph.commit.holding import active
from omnigraph.commit.ownership import this_process
from omnigraph.commit.pending import Pending, PendingRecords
from omnigraph.commit.queues import turn
from omnigraph.commit.record import RecoveryRecord
from omnigraph.errors import Conflict, Contention, Drift, ObjectExists
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.history import find_commit
from omnigraph.manifest.publication import Publication, Requirements, TableChange
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import Commit, Kind, Row, TablePin
from omnigraph.storage.failpoints import hit
from omnigraph.storage.staging import stage_restore
from omnigraph.storage.tables import TableRef, operation_properties

log = logging.getLogger("omnigraph.recovery")

RECOVERY_ACTOR = "omnigraph:recovery"
DECISIONS_MAX = 20  # a decision is taken anew when the branch moved under it, this often


@dataclass(frozen=True, slots=True)
class Resolution:
    """How one record was resolved."""

    operation_id: str
    branch: str
    kind: str
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
        for pending in self.pending.of_branch(branch.incarnation, sweep=True):
            cause = self.pending.cause_to_resolve(pending)
            if cause is None:
                continue
            with active(pending.record.operation_id) as first:
                caused = replace(pending, cause=cause)
                resolution = self._claim_and_resolve(branch, caused) if first else None
                if resolution is not None:
                    done.append(resolution)
        return done

    def resolve_own(
        self, branch: Branch, record: RecoveryRecord, *, aborted: bool = False
    ) -> Resolution:
        """Resolve this process's own failed write at once: nobody else may touch it yet.

        ``aborted``: its caller was or will be told that it failed, so it is not finished.
        """
        return self._resolve_claimed(branch, Pending(record.path, record, aborted=aborted))

    def discard(self, incarnation: str) -> list[Resolution]:
        """Discard the records of a branch that no longer exists."""
        done = []
        for pending in self.pending.of_branch(incarnation):
            outcome = dict.fromkeys((t.key for t in pending.record.tables), "branch deleted")
            action = Action.ORPHANED_BRANCH_DISCARDED
            caused = replace(pending, cause=Cause.BRANCH_DELETED)
            done.append(self._finish(caused, action, None, outcome))
        return done

    def undo_unreadable(self, branch: Branch, operation_id: str) -> bool:
        """Undo an operation of which only the id is known; False when it was published.

        Its record cannot be read, but every version it made carries its id: whatever it moved is
        restored, and its id is marked so that it can never be published.
        """
        manifest = self._repository.manifest(branch)
        for _ in range(DECISIONS_MAX):
            state = manifest.current()
            if find_commit(state, operation_id) is not None:
                return False
            changes, restored = [], {}
            for pin in state.pins.values():
                if pin.owner != branch.incarnation:
                    continue  # another branch's table, which has a history of its own by now
                drift = find_drift(self._store, pin.ref)
                if drift.exists and drift.operations() == {operation_id}:
                    changes.append(self._restore(branch, pin, drift, operation_id))
                    restored[pin.key] = pin.ref
            try:
                requirements = Requirements(tables=restored)
                outcome = dict.fromkeys(restored, "rolled back")
                self._publish_roll_back(
                    branch, operation_id, "unknown", changes, requirements, outcome
                )
            except Conflict:
                continue
            return True
        raise _keeps_moving(operation_id)

    def heal_drift(self, branch: Branch, pin: TablePin, drift: TableDrift) -> None:
        """Undo what nobody wants: restore the published content and re-pin, without a commit.

        The restore goes by the name of the operation it undoes, so that whoever finds it
        unfinished knows that it can be finished or undone, too.
        """
        undone = (drift.made_by[-1].operation or "").removeprefix(ROLLBACK_PREFIX)
        try:
            change = self._restore(branch, pin, drift, undone)
            requirements = Requirements(tables={pin.key: pin.ref})
            self._repository.manifest(branch).publish(
                Publication(new_ulid(), branch.name, requirements, (change,))
            )
        except Conflict as conflict:
            log.info("somebody else is healing %s: %s", pin.key, conflict.message)

    # -- one record -------------------------------------------------------------------------------

    def _claim_and_resolve(self, branch: Branch, pending: Pending) -> Resolution | None:
        """Become the one resolver of a record; None when somebody else is, or was faster."""
        owner = json.dumps(asdict(this_process())).encode()
        try:
            self._objects.put_if_absent(pending.next_claim, owner)
        except ObjectExists:
            return None
        hit("recovery.after_claim")
        keys = [table.key for table in pending.record.tables]
        with turn(self._repository.location.uri, branch.incarnation, keys):
            if not self._objects.exists(pending.path):
                self._objects.delete(pending.next_claim)
                return None
            # Looked at after the claim: either the owner sees the claim, or we see that it gave up.
            aborted = pending.aborted or self._objects.exists(pending.abort_path)
            return self._resolve_claimed(branch, replace(pending, aborted=aborted))

    def _resolve_claimed(self, branch: Branch, pending: Pending) -> Resolution:
        record = pending.record
        for _ in range(DECISIONS_MAX):
            state = self._repository.manifest(branch).current()
            decision = decide(self._store, record, state, aborted=pending.aborted)
            try:
                return self._carry_out(branch, pending, decision)
            except Conflict as conflict:
                log.info("deciding again on %s: %s", record.operation_id, conflict.message)
        raise _keeps_moving(record.operation_id)

    def _carry_out(self, branch: Branch, pending: Pending, decision: Decision) -> Resolution:
        record = pending.record
        keys = [table.key for table in record.tables]
        if decision.way is Way.PUBLISHED:
            outcome = dict.fromkeys(keys, "published")
            return self._finish(pending, Action.ROLLED_FORWARD, decision.commit, outcome)
        if decision.way is Way.FORWARD:
            commit = self._roll_forward(branch, record)
            outcome = dict.fromkeys(keys, "rolled forward")
            return self._finish(pending, Action.ROLLED_FORWARD, commit, outcome)
        commit, outcome = self._roll_back(branch, record, decision)
        return self._finish(pending, Action.ROLLED_BACK, commit, outcome)

    def _roll_forward(self, branch: Branch, record: RecoveryRecord) -> Commit | None:
        publication = record.publication()
        if publication.commit is not None:
            recovered = replace(publication.commit, recovered_by=RECOVERY_ACTOR)
            publication = replace(publication, commit=recovered)
        hit("recovery.before_publish")
        published = self._repository.manifest(branch).publish(publication)
        hit("recovery.after_publish")
        return published.commit

    def _roll_back(
        self, branch: Branch, record: RecoveryRecord, decision: Decision
    ) -> tuple[Commit | None, dict[str, str]]:
        mark = decision.state.row(f"abandoned:{record.operation_id}")
        if mark is not None:
            return self._already_rolled_back(branch, record, decision, mark)
        changes: list[TableChange] = []
        outcome: dict[str, str] = {}
        restored: dict[str, TableRef] = {}
        for planned in record.tables:
            movement = decision.movements[planned.key]
            pin = decision.state.pins.get(planned.key)
            outcome[planned.key] = _OUTCOMES[movement]
            if movement in (Movement.NONE, Movement.FOREIGN) or pin is None:
                continue
            if not planned.writes_in_place(pin):
                outcome[planned.key] = "fork discarded"
                continue
            drift = decision.drifts[planned.key]
            changes.append(self._restore(branch, pin, drift, record.operation_id))
            restored[pin.key] = pin.ref
        requirements = Requirements(tables=restored)
        commit = self._publish_roll_back(
            branch, record.operation_id, record.kind, changes, requirements, outcome
        )
        return commit, outcome

    def _already_rolled_back(
        self, branch: Branch, record: RecoveryRecord, decision: Decision, mark: Row
    ) -> tuple[Commit | None, dict[str, str]]:
        """The decision was published before; what came after it is drift that nobody wants."""
        for planned in record.tables:
            pin, drift = decision.state.pins.get(planned.key), decision.drifts[planned.key]
            if pin is None or not planned.writes_in_place(pin) or not drift.exists:
                continue
            if drift.is_wanted_by_nobody(decision.state, ()):
                self.heal_drift(branch, pin, drift)
        commit_id = mark.metadata.get("commit_id")
        commit = None if commit_id is None else find_commit(decision.state, commit_id)
        return commit, dict(mark.metadata.get("tables", {}))

    def _publish_roll_back(
        self,
        branch: Branch,
        operation_id: str,
        kind: str,
        changes: list[TableChange],
        requirements: Requirements,
        outcome: Mapping[str, str],
    ) -> Commit | None:
        """Record the restored versions and mark the operation, in one publish.

        The mark also says what was done, for a resolver that comes after one that died here.
        """
        now = self._repository.clock.now_us()
        commit = None
        if changes:
            commit = Commit(
                commit_id=new_ulid(),
                branch=branch.name,
                kind="rollback",
                created_at_us=now,
                actor=RECOVERY_ACTOR,
                operation_id=ROLLBACK_PREFIX + operation_id,
                message=f"undo the unfinished {kind} {operation_id}",
            )
        done = {
            "kind": kind,
            "at_us": now,
            "commit_id": None if commit is None else commit.commit_id,
            "tables": dict(outcome),
        }
        mark = Row(f"abandoned:{operation_id}", Kind.ABANDONED, done)
        hit("recovery.before_publish")
        published = self._repository.manifest(branch).publish(
            Publication(new_ulid(), branch.name, requirements, tuple(changes), commit, put=(mark,))
        )
        hit("recovery.after_publish")
        return published.commit

    def _restore(
        self, branch: Branch, pin: TablePin, drift: TableDrift, operation_id: str
    ) -> TableChange:
        """Bring the published content back as the newest version, unless that was done already.

        A restore of any other version than the published one does not count: it was staged
        before that version was published and came too late.
        """
        rollback = ROLLBACK_PREFIX + operation_id
        last = drift.made_by[-1]
        done = last.operation == rollback and last.restores == pin.ref.version
        if done and last.uuid is not None:
            restored, transaction = drift.newest, last.uuid
        else:
            properties = operation_properties(rollback, "restore")
            newest = self._store.open(drift.newest)
            staged = stage_restore(newest, pin.ref.version, pin.rows, properties)
            hit("recovery.before_restore")
            try:
                restored, transaction = self._store.commit(staged).ref, staged.uuid
            except Drift as moved:  # Lance never refuses a restore: somebody was faster
                raise Contention(f"{pin.key} moved while it was being restored") from moved
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

    def _finish(
        self, pending: Pending, action: Action, commit: Commit | None, outcome: dict[str, str]
    ) -> Resolution:
        """Audit exactly once, then remove everything that belongs to the record, itself last."""
        record = pending.record
        append_audit(
            self._store,
            AuditRow(
                record.operation_id,
                action,
                record.kind,
                record.branch,
                None if record.commit is None else record.commit.actor,
                None if commit is None else commit.commit_id,
                self._repository.clock.now_us(),
                outcome,
                pending.cause,
            ),
        )
        hit("recovery.after_audit")
        self.pending.remove(pending)
        hit("recovery.after_delete")
        log.warning(
            "resolved an unfinished write: operation=%s kind=%s branch=%s action=%s cause=%s",
            record.operation_id,
            record.kind,
            record.branch,
            action,
            pending.cause,
        )
        return Resolution(record.operation_id, record.branch, record.kind, action, commit, outcome)


_OUTCOMES = {
    Movement.NONE: "had not moved",
    Movement.OURS: "rolled back",
    Movement.UNDONE: "rolled back",
    Movement.FOREIGN: "moved by another operation, left alone",
}


def _keeps_moving(operation_id: str) -> Contention:
    return Contention(
        f"operation {operation_id} could not be resolved: the branch keeps moving",
        details={"operation_id": operation_id},
    )
