"""The write transaction: the only path by which changes become visible.

    A  write the recovery record
    B  move each staged table, strictly
    C  publish
    D  delete the record

Before A nothing durable is visible. Between A and C the record lets any process roll the write
forward or back. After C the write is committed, even if D fails. A write that fails or is
interrupted in between rolls itself back at once; if that fails too, recovery does it before the
next write to the branch.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.publication import Requirements
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.errors import (
    BranchNotFound,
    Contention,
    CorruptData,
    Drift,
    NotFound,
    OmnigraphError,
    OutcomeUnknown,
    OwnershipLost,
    PermissionDenied,
    ReadOnly,
    RecoveryRequired,
    StorageFailure,
    VersionConflict,
)
from omnigraph.model import outcome
from omnigraph.model.retry import Retry, RetryPolicy, poll_policy
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.files.checksums import digests_of
from omnigraph.transaction.interrupts import deferred_interrupts
from omnigraph.transaction.owner_lease import OwnerLease, active
from omnigraph.transaction.ownership import this_process
from omnigraph.transaction.prepared import PreparedWrite
from omnigraph.transaction.recovery.audit import Action
from omnigraph.transaction.recovery.decision import Verdict, decide
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.pending import PendingRecord
from omnigraph.transaction.recovery.record import RecoveryRecord
from omnigraph.transaction.recovery.recover import Recovery, ResolvedWrite
from omnigraph.transaction.type_locks import type_locks

log = logging.getLogger("omnigraph.commit")

# The wait for another process's write of the same type: at least this long, and at least this many
# leases, because a record whose owner sends no heartbeat is resolved after one lease.
OWNER_WAIT = RetryPolicy(base_s=0.005, cap_s=0.25, deadline_s=5.0)
LEASES_WAITED = 1.5
DECISION_POLL = poll_policy(0.005, 5.0)  # for the process that took over this write to resolve it


class WriteTransaction:
    """Commits prepared writes to one graph."""

    def __init__(
        self, repository: Repository, *, read_only: bool = False, actor: str | None = None
    ) -> None:
        """``actor`` is the default for writes that name none."""
        self._repository = repository
        self._actor = actor
        self._store = repository.tables
        self._objects = repository.objects
        self._read_only = read_only
        self.recovery = Recovery(repository)

    def require_writable(self) -> None:
        if self._read_only:
            raise ReadOnly("this handle was opened read-only")

    def actor_of(self, given: str | None) -> str | None:
        """The actor to record for a write."""
        return self._actor if given is None else given

    def enter(self, branch: Branch) -> list[ResolvedWrite]:
        """Start a write: migrate the branch to the current format and resolve abandoned writes."""
        self.require_writable()
        self._repository.manifest(branch).migrate()
        return self.recovery.resolve(branch)

    def commit(self, prepared: PreparedWrite) -> Commit | None:
        """Make a prepared write visible. Returns its commit (None for upkeep)."""
        self.require_writable()
        branch = prepared.snapshot.branch
        self._repository.manifest(branch).migrate()
        keys = [table.pin.key for table in prepared.tables]
        lease_s = self._repository.settings.limits.lease_s
        wait = _owner_wait(lease_s, waits=prepared.info.makes_commit)
        retry = wait.start(self._repository.clock)
        while True:
            with type_locks(self._repository.location.uri, branch.incarnation, keys):
                record = self._record(branch, prepared)
                # A check now costs one request; a refusal in phase C would cost a roll-back.
                record.requirements.check(self._repository.manifest(branch).current())
                drift = self._first_drift(prepared)
                if drift is None:
                    return self._commit_locked(branch, prepared, record)
            self._handle_drift(branch, *drift, retry)

    def _first_drift(self, prepared: PreparedWrite) -> tuple[TablePin, TableDrift] | None:
        """A table whose newest version is not the one this write builds on."""
        for table in prepared.tables:
            if table.staged.ref.at(0) == table.pin.ref.at(0):  # a fresh fork cannot have moved
                try:
                    drift = find_drift(self._store, table.pin.ref)
                except (CorruptData, NotFound, PermissionDenied) as cause:
                    raise _unreadable_drift(table.pin, cause) from cause
                if drift.exists:
                    return table.pin, drift
        return None

    def _handle_drift(self, branch: Branch, pin: TablePin, drift: TableDrift, retry: Retry) -> None:
        """Resolve the drift, wait for its live owner, or raise a typed error."""
        state = self._repository.manifest(branch).current()
        now = state.pins.get(pin.key)
        if now is None or now.ref != pin.ref:
            raise VersionConflict(pin.key, pin.ref.version, now.ref.version if now else None)
        if self.recovery.resolve(branch):
            return
        pending = {
            found.record.operation_id
            for found in self.recovery.pending.of_branch(branch.incarnation)
        }
        if drift.is_abandoned(state, pending):
            self.recovery.undo_drift(branch, pin, drift)
            return
        covering = sorted(pending & drift.operations())
        if not covering and find_drift(self._store, pin.ref) == drift:
            newest = self._repository.manifest(branch).current().pins.get(pin.key)
            if newest is not None and newest.ref == pin.ref:
                raise _changed_outside(pin, drift)
            return
        if not retry.again():
            raise RecoveryRequired(
                f"another process is writing {pin.key} and has not finished within "
                f"{retry.policy.deadline_s:.0f} s",
                remedy="Try again when that write has finished.",
                details={
                    "case": "covered",
                    "type_key": pin.key,
                    "operation_id": covering[0] if covering else None,
                },
            )

    def _commit_locked(
        self, branch: Branch, prepared: PreparedWrite, record: RecoveryRecord
    ) -> Commit | None:
        if not prepared.tables:
            self._require_live(branch)
            return self._repository.manifest(branch).publish_and_report(record.publication()).commit
        with active(record.operation_id):
            # Other processes may see the record before the put returns: the lease starts first.
            lease_s = self._repository.settings.limits.lease_s
            lease = OwnerLease(self._objects, record, self._repository.clock, lease_s)
            progress = _CommitProgress(lease)
            try:
                hit("record.before_put")
                self._objects.put_if_absent(record.path, record.to_bytes())
                hit("record.after_put")
                commit = self._move_and_publish(branch, prepared, record, progress)
                if progress.published:
                    self._delete_record(record, progress.lease)
                return commit
            except OmnigraphError:
                raise
            except BaseException:  # Ctrl-C, SystemExit, no memory, or a defect
                if not progress.published:  # otherwise only the record is left, for the next write
                    self._abandon(branch, record, progress)
                raise

    def _move_and_publish(
        self,
        branch: Branch,
        prepared: PreparedWrite,
        record: RecoveryRecord,
        progress: _CommitProgress,
    ) -> Commit | None:
        """Phases B and C; after a failure of the store the write is undone."""
        lease = progress.lease
        try:
            self._require_live(branch)
            with lease.renewed():
                for table in prepared.tables:
                    lease.verify()
                    hit("table.before_commit")
                    progress.moved += 1
                    self._store.commit(table.staged)
                    hit("table.after_commit")
                lease.verify()
                progress.publishing = True
                commit = self._repository.manifest(branch).publish(record.publication()).commit
                progress.published = True
                outcome.committed(None if commit is None else commit.commit_id)
        except OwnershipLost as lost:
            return self._resolved_by_another(branch, record, lost)
        except OutcomeUnknown:
            raise  # rolling back now could destroy a committed write: recovery decides
        except (CommitRefused, Drift) as refusal:
            # A refused commit did not move its table. With Drift it did: Lance committed after
            # another process's index build.
            progress.moved -= isinstance(refusal, CommitRefused)
            self._undo(branch, record, progress)
            raise self._lost_to_another_writer(branch, record, refusal) from refusal
        except OmnigraphError:
            visible = self._undo(branch, record, progress)
            if visible is not None:
                return visible
            raise
        return commit

    def _abandon(self, branch: Branch, record: RecoveryRecord, progress: _CommitProgress) -> None:
        """After an interrupt between A and C: roll the write back, deferring further interrupts.

        A write that cannot be rolled back now gets the abort mark, so that recovery never rolls it
        forward after its caller has repeated it. Reports the outcome; the interrupt is re-raised.
        """
        try:
            with deferred_interrupts():
                if progress.moved:
                    self._objects.put(PendingRecord(record.path, record).abort_path, b"{}")
                    progress.aborted = True
                visible = self._undo(branch, record, progress)
                if visible is not None:
                    outcome.committed(visible.commit_id)
        except OwnershipLost:
            return  # another process rolled it back
        except BaseException as second:
            log.warning(
                "the interrupted write %s is left for recovery: %r", record.operation_id, second
            )
            certain = progress.aborted and not progress.publishing
            if progress.moved and (isinstance(second, OutcomeUnknown) or not certain):
                outcome.undecided(None if record.commit is None else record.operation_id)

    def _require_live(self, branch: Branch) -> None:
        """Raise when the branch was deleted while the write was prepared."""
        if branch.ref is not None and self._repository.branch(branch.name) != branch:
            raise BranchNotFound(
                f"branch {branch.name!r} was deleted while it was being written to",
                details={"branch": branch.name},
            )

    def _record(self, branch: Branch, prepared: PreparedWrite) -> RecoveryRecord:
        info, snapshot = prepared.info, prepared.snapshot
        now = self._repository.clock.now_us()
        commit = None
        if info.makes_commit:
            commit = Commit(
                commit_id=prepared.operation_id,
                branch=branch.name,
                kind=info.kind,
                created_at_us=now,
                merged_parent=info.merged_parent,
                actor=self.actor_of(info.actor),
                message=info.message,
                operation_id=prepared.operation_id,
                metadata=dict(info.metadata),
            )
        return RecoveryRecord(
            operation_id=prepared.operation_id,
            branch=branch.name,
            branch_incarnation=branch.incarnation,
            kind=info.kind,
            owner=this_process(),
            created_at_us=now,
            tables=tuple(t.planned(digests_of(self._store, t.staged)) for t in prepared.tables),
            requirements=Requirements(
                tables={**prepared.reads, **{t.pin.key: t.pin.ref for t in prepared.tables}},
                delete_epochs=dict(prepared.delete_epochs),
                insert_epochs=dict(prepared.insert_epochs),
                schema_hash=snapshot.schema_hash,
                head=prepared.expected_head,
                absent=prepared.absent,
                kept=prepared.kept,
            ),
            commit=commit,
            put=prepared.put,
            drop=prepared.drop,
            schema_hash=prepared.schema_hash,
        )

    def _delete_record(self, record: RecoveryRecord, lease: OwnerLease) -> None:
        """Phase D. The write is durable: a failure here is only logged."""
        hit("record.before_delete")
        try:
            lease.release()
            self._objects.delete(record.path)
        except OmnigraphError as error:
            log.warning(
                "the write %s succeeded; its record is left for the next write to remove: %s",
                record.operation_id,
                error.message,
            )
        hit("record.after_delete")

    def _undo(
        self, branch: Branch, record: RecoveryRecord, progress: _CommitProgress
    ) -> Commit | None:
        """Roll back after a failure between A and C.

        Returns the commit if the write is visible because only its response was lost.
        """
        pending = PendingRecord(record.path, record)
        try:
            progress.lease.verify()
            if progress.moved:
                resolution = self.recovery.resolve_own(branch, record, aborted=progress.aborted)
                if resolution.action is not Action.ROLLED_FORWARD:
                    return None
                commit = resolution.commit
                outcome.committed(None if commit is None else commit.commit_id)
                return commit
            self.recovery.pending.remove(pending)
            return None
        except OwnershipLost as lost:
            return self._resolved_by_another(branch, record, lost)
        except OmnigraphError as second:
            log.warning(
                "the failed write %s is left for recovery: %s", record.operation_id, second.message
            )
            return self._leave_aborted(branch, pending, second)

    def _leave_aborted(
        self, branch: Branch, pending: PendingRecord, second: OmnigraphError
    ) -> Commit | None:
        """Write the abort mark of a write that cannot be rolled back now, so that it stays failed.

        A resolver that claimed the record before may miss the mark and roll the write forward.
        """
        record = pending.record
        try:
            self._objects.put(pending.abort_path, b"{}")
            if self.recovery.pending.is_claimed(pending):
                raise Contention("another process is resolving it")
            state = self._repository.manifest(branch).current()
            decision = decide(self._store, record, state, aborted=True)
        except OmnigraphError as third:
            raise OutcomeUnknown(
                f"the write failed, and so did its roll-back ({second.message}); the next write to "
                "the branch resolves it",
                details={"commit_id": record.operation_id},
            ) from third
        return decision.commit

    def _resolved_by_another(
        self, branch: Branch, record: RecoveryRecord, lost: OwnershipLost
    ) -> Commit | None:
        """Another process took this write over: its commit if it was published, else the error.

        Until then the write must not be reported as rolled back: a caller that repeats it would
        write twice.
        """
        retry = DECISION_POLL.start(self._repository.clock)
        while True:
            try:
                state = self._repository.manifest(branch).current()
                decision = decide(self._store, record, state)
            except StorageFailure as second:
                raise OutcomeUnknown(
                    f"another process took this write over, and its outcome could not be read "
                    f"({second.message})",
                    details={"commit_id": record.operation_id},
                ) from second
            if decision.verdict is Verdict.PUBLISHED:
                return decision.commit
            if record.commit is None or state.row(f"abandoned:{record.operation_id}") is not None:
                raise lost
            if not retry.again():
                raise OutcomeUnknown(
                    "this write was paused for longer than its lease; another process took it "
                    "over and has not resolved it yet",
                    details={"commit_id": record.operation_id},
                ) from lost

    def _lost_to_another_writer(
        self, branch: Branch, record: RecoveryRecord, refusal: OmnigraphError
    ) -> OmnigraphError:
        """The conflict behind a refused table commit, with the type and its versions."""
        try:
            pins = self._repository.manifest(branch).current().pins
        except OmnigraphError:
            return refusal
        for table in record.tables:
            pin = pins.get(table.key)
            if pin is None or pin.ref != table.base:
                return VersionConflict(
                    table.key, table.base.version, None if pin is None else pin.ref.version
                )
        first = record.tables[0]
        return VersionConflict(first.key, first.base.version, first.base.version + 1)


@dataclass(slots=True)
class _CommitProgress:
    """The progress of a write between A and D."""

    lease: OwnerLease
    moved: int = 0  # tables whose commit was started
    publishing: bool = False
    published: bool = False
    aborted: bool = False  # the abort mark is durable: the write must not be rolled forward


def _owner_wait(lease_s: float, *, waits: bool) -> RetryPolicy:
    """The wait for another process's write: longer than a lease, so that one command is enough.

    A lease is watched from the moment this process first sees the record: a program that makes one
    write and ends would otherwise never see the lease of a lost host expire. Upkeep runs after a
    write that has succeeded and does not wait.
    """
    seconds = max(OWNER_WAIT.deadline_s, LEASES_WAITED * lease_s) if waits else 0.0
    return replace(OWNER_WAIT, deadline_s=seconds)


def _changed_outside(pin: TablePin, drift: TableDrift) -> Drift:
    kind, _, name = pin.key.partition(":")
    return Drift(
        f"{kind} type {name} was changed outside Omnigraph: version {drift.newest.version} "
        f"exists, version {pin.ref.version} is the published one",
        remedy="Run `omnigraph repair` to restore the published version.",
        details={
            "case": "uncovered",
            "type_key": pin.key,
            "published_version": pin.ref.version,
            "newest_version": drift.newest.version,
            "operations": sorted(str(o) for o in drift.operations()),
        },
    )


def _unreadable_drift(pin: TablePin, cause: OmnigraphError) -> Drift:
    kind, _, name = pin.key.partition(":")
    return Drift(
        f"{kind} type {name} has a version beyond the published one ({pin.ref.version}), and "
        f"its origin cannot be read: {cause.message}",
        remedy="Run `omnigraph recover` to resolve unfinished writes, then `omnigraph repair` for "
        "changes from outside. Restore damaged files from a backup.",
        details={
            "case": "unclassified",
            "type_key": pin.key,
            "published_version": pin.ref.version,
            "cause": cause.code,
        },
    )
