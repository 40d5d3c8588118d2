"""The write transaction: the one way anything becomes visible.

    A  write the recovery record
    B  move each staged table, strictly
    C  publish
    D  delete the record

Before A nothing durable has happened that anybody can see. Between A and C the record lets any
process finish or undo the write. After C the write is done, whatever happens to D. A write that
fails or is interrupted in between tries to undo itself at once; if even that fails, the next write
to the branch does it.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass

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
from omnigraph.model.ids import Clock
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.files.checksums import digests_of
from omnigraph.transaction.interrupts import held_back
from omnigraph.transaction.owner_lease import Holding, active
from omnigraph.transaction.ownership import lease_seconds, this_process
from omnigraph.transaction.prepared import PreparedWrite
from omnigraph.transaction.recovery.audit import Action
from omnigraph.transaction.recovery.decision import Way, decide
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.pending import Pending
from omnigraph.transaction.recovery.record import RecoveryRecord
from omnigraph.transaction.recovery.recover import Recovery, Resolution
from omnigraph.transaction.write_queues import turn

log = logging.getLogger("omnigraph.commit")

LIVE_WRITER_WAIT_S = 5.0  # how long to wait for another process's write of the same type, at least
LEASES_WAITED = 1.5  # and by leases: an owner that shows no sign of life is resolved within one
LIVE_WRITER_POLL_S = 0.005  # the first look comes soon, later ones ever less often
LIVE_WRITER_POLL_MAX_S = 0.25


class WriteTransaction:
    """Commits prepared writes to one graph."""

    def __init__(
        self, repository: Repository, *, read_only: bool = False, actor: str | None = None
    ) -> None:
        """``actor`` is who writes where a write does not say."""
        self._repository = repository
        self._actor = actor
        self._store = repository.tables
        self._objects = repository.objects
        self._read_only = read_only
        self.recovery = Recovery(repository)

    def require_writable(self) -> None:
        if self._read_only:
            raise ReadOnly("this handle was opened read-only")

    def acting(self, given: str | None) -> str | None:
        """Who a write is recorded as, given what its caller said."""
        return self._actor if given is None else given

    def enter(self, branch: Branch) -> list[Resolution]:
        """What every write does first: bring the branch to the current format, if it is not, and
        resolve what dead writers left on it.
        """
        self.require_writable()
        self._repository.manifest(branch).migrate()
        return self.recovery.resolve(branch)

    def commit(self, prepared: PreparedWrite) -> Commit | None:
        """Make a prepared write visible. Returns its commit (None for upkeep)."""
        self.require_writable()
        branch = prepared.snapshot.branch
        self._repository.manifest(branch).migrate()
        keys = [table.pin.key for table in prepared.tables]
        patience = _Patience(self._repository.clock, waits=prepared.info.makes_commit)
        while True:
            with turn(self._repository.location.uri, branch.incarnation, keys):
                record = self._record(branch, prepared)
                # Refusing now costs one look; refusing in phase C would cost a roll-back.
                record.requirements.check(self._repository.manifest(branch).current())
                drift = self._first_drift(prepared)
                if drift is None:
                    return self._commit_in_turn(branch, prepared, record)
            self._deal_with_drift(branch, *drift, patience)

    # -- before A ----------------------------------------------------------------------------------

    def _first_drift(self, prepared: PreparedWrite) -> tuple[TablePin, TableDrift] | None:
        """A table whose newest version is not the one this write builds on."""
        for table in prepared.tables:
            if table.staged.ref.at(0) == table.pin.ref.at(0):  # a fresh fork cannot have moved
                try:
                    drift = find_drift(self._store, table.pin.ref)
                except (CorruptData, NotFound, PermissionDenied) as cause:
                    raise _unclassified(table.pin, cause) from cause
                if drift.exists:
                    return table.pin, drift
        return None

    def _deal_with_drift(
        self, branch: Branch, pin: TablePin, drift: TableDrift, patience: _Patience
    ) -> None:
        """Resolve the drift, wait for its live owner, or say which case it is."""
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
        if drift.is_wanted_by_nobody(state, pending):
            self.recovery.heal_drift(branch, pin, drift)
            return
        covering = sorted(pending & drift.operations())
        if not covering and find_drift(self._store, pin.ref) == drift:
            newest = self._repository.manifest(branch).current().pins.get(pin.key)
            if newest is not None and newest.ref == pin.ref:
                raise _uncovered(pin, drift)
            return
        if not patience.wait():
            raise RecoveryRequired(
                f"another process is writing {pin.key} and has not finished for "
                f"{patience.seconds:.0f} s",
                remedy="Try again when its process has finished.",
                details={
                    "case": "covered",
                    "type_key": pin.key,
                    "operation_id": covering[0] if covering else None,
                },
            )

    # -- A to D ------------------------------------------------------------------------------------

    def _commit_in_turn(
        self, branch: Branch, prepared: PreparedWrite, record: RecoveryRecord
    ) -> Commit | None:
        if not prepared.tables:
            self._require_live(branch)
            return self._repository.manifest(branch).publish_told(record.publication()).commit
        with active(record.operation_id):
            # Others may watch the record from before the put returns: the first proof is from then.
            flight = _Flight(Holding(self._objects, record, self._repository.clock))
            try:
                hit("record.before_put")
                self._objects.put_if_absent(record.path, record.to_bytes())
                hit("record.after_put")
                commit = self._move_and_publish(branch, prepared, record, flight)
                if flight.published:
                    self._delete_record(record, flight.holding)
                return commit
            except OmnigraphError:
                raise
            except BaseException:  # Ctrl-C, SystemExit, no memory, or a defect
                if not flight.published:  # otherwise only the record is left, for the next write
                    self._abandon(branch, record, flight)
                raise

    def _move_and_publish(
        self, branch: Branch, prepared: PreparedWrite, record: RecoveryRecord, flight: _Flight
    ) -> Commit | None:
        """Phases B and C; after a failure of the store the write is undone."""
        holding = flight.holding
        try:
            self._require_live(branch)
            with holding.kept():
                for table in prepared.tables:
                    holding.prove()
                    hit("table.before_commit")
                    flight.moved += 1
                    self._store.commit(table.staged)
                    hit("table.after_commit")
                holding.prove()
                flight.publishing = True
                commit = self._repository.manifest(branch).publish(record.publication()).commit
                flight.published = True
                outcome.committed(None if commit is None else commit.commit_id)
        except OwnershipLost as lost:
            return self._decided_by_another(branch, record, lost)
        except OutcomeUnknown:
            raise  # touching anything now could harm: whoever looks the id up decides
        except (CommitRefused, Drift) as refusal:
            # Drift: Lance let the last table land on top of another process's index build.
            flight.moved -= isinstance(refusal, CommitRefused)
            self._undo(branch, record, flight)
            raise self._lost_to_another_writer(branch, record, refusal) from refusal
        except OmnigraphError:
            visible = self._undo(branch, record, flight)
            if visible is not None:
                return visible
            raise
        return commit

    def _abandon(self, branch: Branch, record: RecoveryRecord, flight: _Flight) -> None:
        """After an interrupt between A and C: undo the write, whoever presses Ctrl-C again.

        What cannot be undone now carries the abort mark, so that nobody finishes a write that its
        caller may repeat. Says what became of it; the exception under way goes on.
        """
        try:
            with held_back():
                if flight.moved:
                    self._objects.put(Pending(record.path, record).abort_path, b"{}")
                    flight.aborted = True
                visible = self._undo(branch, record, flight)
                if visible is not None:
                    outcome.committed(visible.commit_id)
        except OwnershipLost:
            return  # another process undid it
        except BaseException as second:
            log.warning("the interrupted write %s waits: %r", record.operation_id, second)
            certain = flight.aborted and not flight.publishing
            if flight.moved and (isinstance(second, OutcomeUnknown) or not certain):
                outcome.undecided(None if record.commit is None else record.operation_id)

    def _require_live(self, branch: Branch) -> None:
        """A branch may have been deleted while the write was prepared; its files may be gone."""
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
                actor=self.acting(info.actor),
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
            ),
            commit=commit,
            put=prepared.put,
            drop=prepared.drop,
            schema_hash=prepared.schema_hash,
        )

    def _delete_record(self, record: RecoveryRecord, holding: Holding) -> None:
        """Phase D. The write is durable: a failure here is only logged."""
        hit("record.before_delete")
        try:
            holding.release()
            self._objects.delete(record.path)
        except OmnigraphError as error:
            log.warning(
                "the write %s succeeded; its record stays until the next write: %s",
                record.operation_id,
                error.message,
            )
        hit("record.after_delete")

    def _undo(self, branch: Branch, record: RecoveryRecord, flight: _Flight) -> Commit | None:
        """After a failure between A and C: leave the branch as it was.

        Returns the commit if it turns out that only an answer was lost and the write is visible.
        """
        pending = Pending(record.path, record)
        try:
            flight.holding.prove()
            if flight.moved:
                resolution = self.recovery.resolve_own(branch, record, aborted=flight.aborted)
                if resolution.action is not Action.ROLLED_FORWARD:
                    return None
                commit = resolution.commit
                outcome.committed(None if commit is None else commit.commit_id)
                return commit
            self.recovery.pending.remove(pending)
            return None
        except OwnershipLost as lost:
            return self._decided_by_another(branch, record, lost)
        except OmnigraphError as second:
            log.warning("the failed write %s waits: %s", record.operation_id, second.message)
            return self._leave_aborted(branch, pending, second)

    def _leave_aborted(
        self, branch: Branch, pending: Pending, second: OmnigraphError
    ) -> Commit | None:
        """It cannot be undone now: say durably that it must be, so that "failed" stays true.

        A resolver that claimed the record before may not have seen this, and finish the write.
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
                f"the write failed, and so did undoing it ({second.message}); the next write to "
                "the branch decides it",
                details={"commit_id": record.operation_id},
            ) from third
        return decision.commit

    def _decided_by_another(
        self, branch: Branch, record: RecoveryRecord, lost: OwnershipLost
    ) -> Commit | None:
        """Another process took this write over: success if it published it, else the error.

        Until it has decided, the write must not be called undone: whoever repeats it then would
        write twice.
        """
        deadline = self._repository.clock.monotonic() + LIVE_WRITER_WAIT_S
        while True:
            try:
                state = self._repository.manifest(branch).current()
                decision = decide(self._store, record, state)
            except StorageFailure as second:
                raise OutcomeUnknown(
                    f"another process took this write over; what became of it cannot be found "
                    f"out ({second.message})",
                    details={"commit_id": record.operation_id},
                ) from second
            if decision.way is Way.PUBLISHED:
                return decision.commit
            if record.commit is None or state.row(f"abandoned:{record.operation_id}") is not None:
                raise lost
            if self._repository.clock.monotonic() > deadline:
                raise OutcomeUnknown(
                    "this write was paused for longer than its lease; another process took it "
                    "over and has not decided it yet",
                    details={"commit_id": record.operation_id},
                ) from lost
            time.sleep(random.uniform(0, LIVE_WRITER_POLL_S))

    def _lost_to_another_writer(
        self, branch: Branch, record: RecoveryRecord, refusal: OmnigraphError
    ) -> OmnigraphError:
        """A table refused to move because somebody else moved it: say which and to where."""
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


@dataclass
class _Flight:
    """How far a write is between A and D."""

    holding: Holding
    moved: int = 0  # tables whose commit was begun
    publishing: bool = False
    published: bool = False
    aborted: bool = False  # the abort mark is durable: nobody may finish the write


class _Patience:
    """Waiting for another process's write: longer than a lease, so that one command is enough.

    A lease is watched from the moment this process first sees the record. A program that makes one
    write and ends would otherwise never see the lease of a lost host run out. Upkeep, which comes
    after a write that is done, does not wait.
    """

    def __init__(self, clock: Clock, *, waits: bool) -> None:
        self._clock = clock
        self.seconds = max(LIVE_WRITER_WAIT_S, LEASES_WAITED * lease_seconds()) if waits else 0.0
        self._deadline = clock.monotonic() + self.seconds
        self._poll_s = LIVE_WRITER_POLL_S

    def wait(self) -> bool:
        """Pause before the next look; False when it has been long enough."""
        if self._clock.monotonic() >= self._deadline:
            return False
        time.sleep(random.uniform(0, self._poll_s))
        self._poll_s = min(2 * self._poll_s, LIVE_WRITER_POLL_MAX_S)
        return True


def _uncovered(pin: TablePin, drift: TableDrift) -> Drift:
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


def _unclassified(pin: TablePin, cause: OmnigraphError) -> Drift:
    kind, _, name = pin.key.partition(":")
    return Drift(
        f"{kind} type {name} has a version beyond the published one ({pin.ref.version}), and "
        f"whose doing it is cannot be read: {cause.message}",
        remedy="If a write was left unfinished, `omnigraph recover` resolves it; if the files were "
        "changed from outside, `omnigraph repair` says what can be done. A damaged file has to "
        "come back from a backup.",
        details={
            "case": "unclassified",
            "type_key": pin.key,
            "published_version": pin.ref.version,
            "cause": cause.code,
        },
    )
