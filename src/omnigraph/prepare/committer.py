"""The commit loop of every writer: prepare, commit, and after a conflict prepare again.

A writer gives a function from an ``Attempt`` (one snapshot) to a ``Prepared`` value and gets an
``Outcome`` back (ADR 28). After an optimistic conflict a repeatable write is prepared again on the
current state; a write that was decided on what its caller had read raises the conflict. The loop is
bounded, with jittered backoff. The caller's preconditions and idempotency key are checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.branches.registry import Branch, accepts_only_merges
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.schemas import cached_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import (
    BranchProtected,
    Conflict,
    Forbidden,
    KeyConflict,
    OwnershipLost,
    PreconditionFailed,
)
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.retry import RetryPolicy
from omnigraph.prepare.write_pause import wait_for_pause
from omnigraph.storage.named_locks import named_lock
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

PREPARE_RETRY: Final = RetryPolicy(base_s=0.02, cap_s=0.25, attempts_min=10, deadline_s=30.0)
"""Bounded by attempts and time: with attempts alone the slowest of many writers would starve."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write: branch, commit information, preconditions and idempotency key."""

    branch: str
    info: WriteInfo
    expected_head: str | None = None
    idempotency_key: str | None = None
    may_request_pause: bool = False
    """Whether it may ask other writers to pause; it does not pause for others then."""
    denied_types: frozenset[str] = frozenset()
    """Names of types that a policy does not let this write change."""

    def __post_init__(self) -> None:
        check_text("idempotency key", self.idempotency_key)
        check_text("expected head", self.expected_head)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a write: the state that it is prepared on. ``number`` counts from 1."""

    repository: Repository
    branch: Branch
    state: ManifestState
    number: int = 1

    @cached_property
    def snapshot(self) -> SnapshotPins:
        return SnapshotPins.of(self.branch, self.state)

    @cached_property
    def schema(self) -> AcceptedSchema:
        return cached_schema(self.state, self.snapshot.schema_hash)


def _nothing_to_discard() -> None:
    """The ``discard`` of a preparation that wrote nothing beside its tables."""


Detail = TypeVar("Detail")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Detail]):
    """The result of a preparation: all that the committer needs from a writer.

    ``write`` is None when there is nothing to write. ``result`` are JSON values for the caller:
    they are stored with an idempotency key, and a repeated request returns them. ``rows_written``
    are counts by type key, for upkeep. ``detail`` is for the writer alone.
    """

    write: PreparedWrite | None
    result: Mapping[str, Any] = field(default_factory=dict)
    rows_written: Mapping[str, int] = field(default_factory=dict)
    repeatable: bool = True
    """Whether it may be prepared again on newer state after an optimistic conflict."""
    detail: Detail | None = None
    discard: Callable[[], None] = _nothing_to_discard
    """Removes what was written beside the tables; called when the write is prepared again."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Detail]):
    """The outcome of a write.

    ``repeated``: an earlier request with the same idempotency key made the commit. Then ``result``
    is what that request reported, and nothing was written now.
    """

    commit: Commit | None
    result: Mapping[str, Any] = field(default_factory=dict)
    rows_written: Mapping[str, int] = field(default_factory=dict)
    detail: Detail | None = None
    repeated: bool = False


def is_caused_by_head(conflict: Conflict, expected: str, head: str) -> bool:
    """Whether a conflict came up because the branch has another head than the caller expects.

    A write that another process took over may be the new head itself: that process resolves it.
    """
    return conflict.retryable and not isinstance(conflict, OwnershipLost) and head != expected


def may_repeat(conflict: Conflict, *, repeatable: bool, head_has_moved: bool) -> bool:
    """Whether a write may be prepared again after an optimistic conflict.

    If the head has not moved, only maintenance has changed tables, and any write may be repeated;
    except one that another process took over and resolves.
    """
    only_maintenance = not head_has_moved and not isinstance(conflict, OwnershipLost)
    return conflict.retryable and (repeatable or only_maintenance)


Prepare = Callable[[Attempt], Prepared[Detail]]
"""Prepares a write on the snapshot of an attempt."""


class Committer:
    """Commits writes to one graph."""

    def __init__(self, repository: Repository, transaction: WriteTransaction) -> None:
        self._repository = repository
        self._transaction = transaction
        self._begun: set[str] = set()  # branches whose unfinished writes were resolved by ``begin``

    def begin(self, branch_name: str) -> Attempt:
        """The state that a writer reads before it calls ``run``, for example for its schema.

        Unfinished writes of dead processes are resolved first (R-9). One of them may change the
        schema; a write that needs the new schema could never begin otherwise.
        """
        branch = self._repository.branch(branch_name)
        with deletion_checked(self._repository, branch):
            self._transaction.enter(branch)
            self._begun.add(branch_name)
            return Attempt(self._repository, branch, self._repository.manifest(branch).current())

    def attempt(self, branch_name: str, number: int = 1) -> Attempt:
        """The current state of a branch, to prepare a write on."""
        branch = self._repository.branch(branch_name)
        with deletion_checked(self._repository, branch):
            state = self._repository.manifest(branch).current()
            return Attempt(self._repository, branch, state, number)

    def run(
        self,
        options: WriteOptions,
        prepare: Prepare[Detail],
        *,
        digest: Callable[[], str] = lambda: "",
    ) -> Outcome[Detail]:
        """Prepare and commit; after an optimistic conflict prepare again, if that is allowed.

        ``digest`` identifies the request; it is computed only when there is an idempotency key.
        """
        with deletion_checked(self._repository, options.branch):
            return self._run(options, prepare, digest)

    def _run(
        self, options: WriteOptions, prepare: Prepare[Detail], digest: Callable[[], str]
    ) -> Outcome[Detail]:
        if options.branch not in self._begun:
            self._transaction.enter(self._repository.branch(options.branch))
        given = options.idempotency_key
        key = None if given is None else RequestKey(given, digest())
        retries = PREPARE_RETRY.start(self._repository.clock)
        # One thread at a time prepares again, and writes that begin later wait for it, so that
        # only writes that had begun before it can cause another conflict.
        lane = named_lock(self._repository.location.uri, "prepare again", options.branch)
        lane.wait()
        while True:
            attempt = self.attempt(options.branch)
            waited = not options.may_request_pause and wait_for_pause(
                self._repository, attempt.branch, attempt.state
            )
            with lane.held() if retries.failures else nullcontext():
                if waited or retries.failures:
                    attempt = self.attempt(options.branch, retries.failures + 1)
                before: Outcome[Detail] | None = self._repeated(attempt, key)
                if before is not None:
                    return before
                prepared: Prepared[Detail] | None = None
                try:
                    self._require_expected(attempt, options)
                    prepared = prepare(attempt)
                    return self._commit(options, attempt, prepared, key)
                except PreconditionFailed as failed:
                    raise PreconditionFailed(
                        failed.expected, failed.actual, options.branch
                    ) from None
                except KeyConflict:
                    raise
                except Conflict as conflict:
                    now = self.attempt(options.branch)
                    before = self._repeated(now, key)
                    if before is not None:
                        return before
                    expected, head = options.expected_head, now.snapshot.commit_id
                    if expected is not None and is_caused_by_head(conflict, expected, head):
                        raise PreconditionFailed(expected, head, options.branch) from conflict
                    # Without ``prepared`` the preparation itself failed, so it can be repeated.
                    repeatable = prepared is None or prepared.repeatable
                    has_moved = head != attempt.snapshot.commit_id
                    if not may_repeat(conflict, repeatable=repeatable, head_has_moved=has_moved):
                        raise
                    if not retries.failed():
                        raise
            if prepared is not None:
                prepared.discard()
            retries.back_off()

    def _require_expected(self, attempt: Attempt, options: WriteOptions) -> None:
        expected = options.expected_head
        if expected is not None and attempt.snapshot.commit_id != expected:
            raise PreconditionFailed(expected, attempt.snapshot.commit_id)
        self._require_allowed(attempt.branch, options.info)

    def _commit(
        self,
        options: WriteOptions,
        attempt: Attempt,
        prepared: Prepared[Detail],
        key: RequestKey | None,
    ) -> Outcome[Detail]:
        expected, commit = options.expected_head, None
        if prepared.write is None:
            if expected is not None:
                self._require_head(options.branch, expected)
        else:
            _require_types(prepared.write, options)
            required = prepared.write.expected_head if expected is None else expected
            write = replace(prepared.write, expected_head=required)
            if key is not None:
                rows = key.rows(attempt.branch, attempt.state, write.operation_id, prepared.result)
                write = replace(
                    write,
                    put=(*write.put, rows.put),
                    drop=(*write.drop, *rows.drop),
                    absent=(*write.absent, rows.put.object_id),
                )
            commit = self._transaction.commit(write)
        return Outcome(commit, prepared.result, prepared.rows_written, prepared.detail)

    def _require_allowed(self, branch: Branch, info: WriteInfo) -> None:
        """Raise on a branch that accepts only merges."""
        if info.kind != "merge" and accepts_only_merges(self._repository.main.warm(), branch):
            raise BranchProtected(
                f"branch {branch.name!r} accepts only merges",
                details={"branch": branch.name},
            )

    def _require_head(self, branch: str, expected: str) -> None:
        """Check the expected head of a write without effect, which no publish checks."""
        head = self.attempt(branch).state.head.commit_id
        if head != expected:
            raise PreconditionFailed(expected, head)

    def _repeated(self, attempt: Attempt, key: RequestKey | None) -> Outcome[Detail] | None:
        """The outcome of an earlier request with the same idempotency key."""
        row = None if key is None else key.find(attempt.branch, attempt.state)
        if row is None:
            return None
        commit = find_commit(attempt.state, row.metadata["commit_id"])
        return Outcome(commit, row.metadata["result"], repeated=True)


def _require_types(write: PreparedWrite, options: WriteOptions) -> None:
    """Raise when a prepared write changes a type that a policy denies; nothing is visible yet."""
    for table in write.tables:
        name = table.pin.key.partition(":")[2]
        if name in options.denied_types:
            raise Forbidden(
                f"policy denied action 'change' on branch '{options.branch}' on type '{name}' "
                f"for actor '{options.info.actor}'",
                details={"action": "change", "branch": options.branch, "type": name},
            )
