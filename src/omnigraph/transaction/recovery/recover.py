"""Recovery: rolls the unfinished writes of dead processes forward or back, automatically.

A record is resolved by one process at a time, which claims it first, in one of two ways.
When every table moved exactly as planned and the write's requirements still hold, it is rolled
*forward*: published under its own commit id and actor. Otherwise it is rolled *back*: tables that
moved are restored to their published content, and one publish records the restored versions
together with a mark under the operation's id. The publisher refuses a marked operation, so an
owner that was only paused can never publish what was rolled back here.

Reads never run recovery. Records of one branch are resolved only by writes to that branch, by
opening the graph for writing, and by ``omnigraph recover``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, Row, RowKind, TablePin
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import Conflict, Contention, CorruptData, Drift, ObjectExists
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import stage_restore
from omnigraph.storage.lance.tables import TableRef, operation_properties
from omnigraph.transaction.owner_lease import active
from omnigraph.transaction.ownership import this_process
from omnigraph.transaction.recovery.audit import Action, AuditRow, Cause, TableOutcome, append_audit
from omnigraph.transaction.recovery.decision import Decision, Verdict, decide
from omnigraph.transaction.recovery.drift import ROLLBACK_PREFIX, Movement, TableDrift, find_drift
from omnigraph.transaction.recovery.pending import PendingRecord, PendingRecords
from omnigraph.transaction.recovery.record import RecoveryRecord
from omnigraph.transaction.type_locks import type_locks

log = logging.getLogger("omnigraph.recovery")

RECOVERY_ACTOR = "omnigraph:recovery"
UNKNOWN_KIND = "unknown"  # of an operation whose record cannot be read
DECISIONS_MAX = 20  # attempts per record: each concurrent publish on the branch costs one


@dataclass(frozen=True, slots=True)
class ResolvedWrite:
    """How one record was resolved."""

    operation_id: str
    branch: str
    kind: str
    action: Action
    commit: Commit | None
    tables: dict[str, TableOutcome]


class Recovery:
    """Resolves the records of one graph's branches."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._store = repository.tables
        self._objects = repository.objects
        self.pending = PendingRecords(
            repository.objects, repository.clock, repository.settings.limits.lease_s
        )

    def resolve(self, branch: Branch) -> list[ResolvedWrite]:
        """Resolve the abandoned writes of this branch. One list call when there are none."""
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
    ) -> ResolvedWrite:
        """Resolve this process's own failed write at once, while it still holds the lease.

        ``aborted``: the failure was or will be reported to its caller, so it is rolled back.
        """
        return self._resolve_claimed(branch, PendingRecord(record.path, record, aborted=aborted))

    def discard(self, incarnation: str) -> list[ResolvedWrite]:
        """Discard the records of a branch that no longer exists."""
        done = []
        for pending in self.pending.of_branch(incarnation):
            gone = TableOutcome("branch deleted", None)
            outcome = dict.fromkeys((t.key for t in pending.record.tables), gone)
            action = Action.ORPHANED_BRANCH_DISCARDED
            caused = replace(pending, cause=Cause.BRANCH_DELETED)
            done.append(self._finish(caused, action, None, outcome))
        return done

    def set_aside(self, branch: Branch | None, branch_incarnation: str, operation_id: str) -> None:
        """Roll back an operation whose record cannot be read, and audit it.

        ``branch`` is None when the branch is gone.
        """
        action, commit = Action.ORPHANED_BRANCH_DISCARDED, None
        outcome: dict[str, TableOutcome] = {}
        if branch is not None:
            commit = find_commit(self._repository.manifest(branch).current(), operation_id)
            action = Action.ROLLED_FORWARD
            if commit is None:
                action = Action.ROLLED_BACK
                commit, outcome = self._undo_unreadable(branch, operation_id)
        append_audit(
            self._store,
            AuditRow(
                operation_id,
                action,
                UNKNOWN_KIND,
                branch_incarnation if branch is None else branch.name,
                None,
                None if commit is None else commit.commit_id,
                self._repository.clock.now_us(),
                outcome,
                Cause.RECORD_UNREADABLE,
            ),
        )

    def _undo_unreadable(
        self, branch: Branch, operation_id: str
    ) -> tuple[Commit | None, dict[str, TableOutcome]]:
        """Roll back an operation of which only the id is known.

        Every version it made carries its id: the tables it moved are restored, and its id is
        marked as abandoned so that it can never be published.
        """
        manifest = self._repository.manifest(branch)
        for _ in range(DECISIONS_MAX):
            state = manifest.current()
            mark = state.row(f"abandoned:{operation_id}")
            if mark is not None:
                return _from_mark(state, mark)
            changes, restored = [], {}
            for pin in state.pins.values():
                if pin.owner != branch.incarnation:
                    continue  # another branch's table, with its own history
                drift = find_drift(self._store, pin.ref)
                if drift.exists and drift.operations() == {operation_id}:
                    changes.append(self._restore(branch, pin, drift, operation_id))
                    restored[pin.key] = pin.ref
            try:
                requirements = Requirements(tables=restored)
                outcome = {
                    change.key: TableOutcome("rolled back", change.ref.version)
                    for change in changes
                }
                commit = self._publish_roll_back(
                    branch, operation_id, UNKNOWN_KIND, changes, requirements, outcome
                )
            except Conflict:
                continue
            return commit, outcome
        raise _contention(operation_id)

    def undo_drift(self, branch: Branch, pin: TablePin, drift: TableDrift) -> None:
        """Undo abandoned drift: restore the published content and re-pin, without a commit.

        The restore carries the id of the operation it undoes, so that an interrupted restore is
        recognised as abandoned drift, too.
        """
        undone = (drift.made_by[-1].operation or "").removeprefix(ROLLBACK_PREFIX)
        try:
            change = self._restore(branch, pin, drift, undone)
            requirements = Requirements(tables={pin.key: pin.ref})
            self._repository.manifest(branch).publish(
                Publication(new_ulid(), branch.name, requirements, (change,))
            )
        except Conflict as conflict:
            log.info("another process is restoring %s: %s", pin.key, conflict.message)

    def _claim_and_resolve(self, branch: Branch, pending: PendingRecord) -> ResolvedWrite | None:
        """Claim and resolve a record; None when another process has claimed or resolved it."""
        owner = json.dumps(asdict(this_process())).encode()
        try:
            self._objects.put_if_absent(pending.next_claim, owner)
        except ObjectExists:
            return None
        hit("recovery.after_claim")
        keys = [table.key for table in pending.record.tables]
        with type_locks(self._repository.location.uri, branch.incarnation, keys):
            if not self._objects.exists(pending.path):
                self._objects.delete(pending.next_claim)
                return None
            # Checked after the claim: either the owner sees the claim, or we see its abort mark.
            aborted = pending.aborted or self._objects.exists(pending.abort_path)
            try:
                return self._resolve_claimed(branch, replace(pending, aborted=aborted))
            except CorruptData:
                # Drop the claim, so that the write can be resolved once its files are restored.
                self._objects.delete(pending.next_claim)
                raise

    def _resolve_claimed(self, branch: Branch, pending: PendingRecord) -> ResolvedWrite:
        record = pending.record
        for _ in range(DECISIONS_MAX):
            state = self._repository.manifest(branch).current()
            decision = decide(self._store, record, state, aborted=pending.aborted)
            try:
                return self._carry_out(branch, pending, decision)
            except Conflict as conflict:
                log.info("deciding again on %s: %s", record.operation_id, conflict.message)
        raise _contention(record.operation_id)

    def _carry_out(
        self, branch: Branch, pending: PendingRecord, decision: Decision
    ) -> ResolvedWrite:
        record = pending.record
        if decision.verdict is Verdict.PUBLISHED:
            outcome = _landed(record, "published")
            return self._finish(pending, Action.ROLLED_FORWARD, decision.commit, outcome)
        if decision.verdict is Verdict.FORWARD:
            commit = self._roll_forward(branch, record)
            outcome = _landed(record, "rolled forward")
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
    ) -> tuple[Commit | None, dict[str, TableOutcome]]:
        mark = decision.state.row(f"abandoned:{record.operation_id}")
        if mark is not None:
            return self._already_rolled_back(branch, record, decision, mark)
        changes: list[TableChange] = []
        outcome: dict[str, TableOutcome] = {}
        restored: dict[str, TableRef] = {}
        for planned in record.tables:
            movement, drift = decision.movements[planned.key], decision.drifts[planned.key]
            pin = decision.state.pins.get(planned.key)
            outcome[planned.key] = TableOutcome(_OUTCOMES[movement], drift.newest.version)
            if movement in (Movement.NONE, Movement.FOREIGN) or pin is None:
                continue
            if not planned.writes_in_place(pin):
                outcome[planned.key] = TableOutcome("fork discarded", pin.ref.version)
                continue
            change = self._restore(branch, pin, drift, record.operation_id)
            outcome[planned.key] = TableOutcome(_OUTCOMES[movement], change.ref.version)
            changes.append(change)
            restored[pin.key] = pin.ref
        requirements = Requirements(tables=restored)
        commit = self._publish_roll_back(
            branch, record.operation_id, record.kind, changes, requirements, outcome
        )
        return commit, outcome

    def _already_rolled_back(
        self, branch: Branch, record: RecoveryRecord, decision: Decision, mark: Row
    ) -> tuple[Commit | None, dict[str, TableOutcome]]:
        """The roll-back was published before; any later version is abandoned drift."""
        for planned in record.tables:
            pin, drift = decision.state.pins.get(planned.key), decision.drifts[planned.key]
            if pin is None or not planned.writes_in_place(pin) or not drift.exists:
                continue
            if drift.is_abandoned(decision.state, ()):
                self.undo_drift(branch, pin, drift)
        return _from_mark(decision.state, mark)

    def _publish_roll_back(
        self,
        branch: Branch,
        operation_id: str,
        kind: str,
        changes: list[TableChange],
        requirements: Requirements,
        outcome: Mapping[str, TableOutcome],
    ) -> Commit | None:
        """Record the restored versions and mark the operation, in one publish.

        The mark also holds the outcome, for a later resolver if this one dies here.
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
            "tables": {key: found.to_json() for key, found in outcome.items()},
        }
        mark = Row(f"abandoned:{operation_id}", RowKind.ABANDONED, done)
        hit("recovery.before_publish")
        published = self._repository.manifest(branch).publish(
            Publication(new_ulid(), branch.name, requirements, tuple(changes), commit, put=(mark,))
        )
        hit("recovery.after_publish")
        return published.commit

    def _restore(
        self, branch: Branch, pin: TablePin, drift: TableDrift, operation_id: str
    ) -> TableChange:
        """Restore the published content as the newest version, unless that was done already.

        A restore of any other version than the published one does not count: it was staged before
        that version was published.
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
            except Drift as moved:  # Lance never refuses a restore: another process committed first
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
        self,
        pending: PendingRecord,
        action: Action,
        commit: Commit | None,
        outcome: dict[str, TableOutcome],
    ) -> ResolvedWrite:
        """Audit exactly once, then remove the record with its side objects."""
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
        return ResolvedWrite(
            record.operation_id, record.branch, record.kind, action, commit, outcome
        )


_OUTCOMES = {
    Movement.NONE: "had not moved",
    Movement.OURS: "rolled back",
    Movement.UNDONE: "rolled back",
    Movement.FOREIGN: "moved by another operation, left alone",
}


def _landed(record: RecoveryRecord, what: str) -> dict[str, TableOutcome]:
    """Every table of a record at the version that the record planned."""
    return {t.key: TableOutcome(what, t.landing.version) for t in record.tables}


def _from_mark(state: ManifestState, mark: Row) -> tuple[Commit | None, dict[str, TableOutcome]]:
    """The outcome of an earlier resolver, from the mark it published."""
    commit_id = mark.metadata.get("commit_id")
    commit = None if commit_id is None else find_commit(state, commit_id)
    tables = mark.metadata.get("tables", {})
    return commit, {key: TableOutcome.from_json(found) for key, found in tables.items()}


def _contention(operation_id: str) -> Contention:
    return Contention(
        f"operation {operation_id} could not be resolved: too many concurrent writes to the branch",
        details={"operation_id": operation_id},
    )
