"""From a prepared write to its commit: preconditions, idempotency keys, and preparing again.

Every writer of the room ends here. A write that only inserts is prepared again on the current
state when another writer was faster; one that decided something on what it had read reports the
conflict instead. Waiting between attempts is bounded and jittered.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.branches.registry import Branch, accepts_only_merges
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, Kind, Row
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import (
    BranchProtected,
    Conflict,
    IdempotencyMismatch,
    KeyConflict,
    OwnershipLost,
    PreconditionFailed,
)
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.prepare.backoff import wait_for_others
from omnigraph.storage.thread_queues import queue
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

PREPARE_ATTEMPTS_MIN: Final = 10
PREPARE_BUDGET_S: Final = 30.0
"""An insertion is tried at least this often and for at least this long: counting attempts alone
lets the slower of many quick writers starve."""
PREPARE_BACKOFF_S: Final = 0.01
PREPARE_BACKOFF_MAX_S: Final = 0.25
IDEMPOTENCY_KEYS_MAX: Final = 1_000
"""How many keys a branch remembers: current state stays small, and repeats come soon or never."""

_SCHEMAS_MAX: Final = 32
_schemas: dict[str, AcceptedSchema] = {}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a caller says about a write besides its content."""

    branch: str
    info: WriteInfo
    expected_head: str | None = None
    idempotency_key: str | None = None
    asks_for_quiet: bool = False
    """Whether it may ask others to wait, and so waits for nobody."""

    def __post_init__(self) -> None:
        check_text("idempotency key", self.idempotency_key)
        check_text("expected head", self.expected_head)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a write. ``result`` are the facts its first execution reported."""

    commit: Commit | None
    result: Mapping[str, Any] = field(default_factory=dict)
    repeated: bool = False


@dataclass
class Attempt:
    """One try: the snapshot everything is decided on."""

    repository: Repository
    branch: Branch
    state: ManifestState

    @cached_property
    def snapshot(self) -> SnapshotPins:
        return SnapshotPins.of(self.branch, self.state)

    @cached_property
    def schema(self) -> AcceptedSchema:
        return cached_schema(self.state, self.snapshot.schema_hash)


Prepare = Callable[[Attempt], tuple[PreparedWrite | None, Mapping[str, Any]]]
"""Prepares on an attempt; None when there is nothing to write. Also what to report."""


def cached_schema(state: ManifestState, schema_hash: str) -> AcceptedSchema:
    """The schema of this hash, parsed once per process."""
    found = _schemas.get(schema_hash)
    if found is None:
        found = load_schema(state, schema_hash)
        if len(_schemas) >= _SCHEMAS_MAX:
            _schemas.clear()
        _schemas[schema_hash] = found
    return found


class Committer:
    """Commits writes to one graph."""

    def __init__(self, repository: Repository, transaction: WriteTransaction) -> None:
        self._repository = repository
        self._transaction = transaction
        self._begun: set[str] = set()  # the names of branches that were entered already

    def begin(self, branch_name: str) -> Attempt:
        """The start of a write that reads before it is run: its schema, to begin with.

        What dead writers left is resolved first (R-9): an unfinished change of the schema may be
        among it, and nothing that needs the new schema would ever get through otherwise.
        """
        branch = self._repository.branch(branch_name)
        with deletion_noticed(self._repository, branch):
            self._transaction.enter(branch)
            self._begun.add(branch_name)
            return Attempt(self._repository, branch, self._repository.manifest(branch).current())

    def attempt(self, branch_name: str) -> Attempt:
        branch = self._repository.branch(branch_name)
        with deletion_noticed(self._repository, branch):
            return Attempt(self._repository, branch, self._repository.manifest(branch).current())

    def run(
        self,
        options: WriteOptions,
        prepare: Prepare,
        *,
        retry: Callable[[], bool],
        digest: Callable[[], str] = lambda: "",
    ) -> Outcome:
        """Prepare and commit, once or until nobody was faster.

        ``retry`` says, after a preparation, whether it may be repeated on newer state. ``digest``
        identifies the request; it is asked only when there is an idempotency key.
        """
        with deletion_noticed(self._repository, options.branch):
            return self._run(options, prepare, retry, digest)

    def _run(
        self,
        options: WriteOptions,
        prepare: Prepare,
        retry: Callable[[], bool],
        digest: Callable[[], str],
    ) -> Outcome:
        if options.branch not in self._begun:
            self._transaction.enter(self._repository.branch(options.branch))
        key = None
        if options.idempotency_key is not None:
            key = (options.idempotency_key, digest())
        deadline = self._repository.clock.monotonic() + PREPARE_BUDGET_S
        # One thread at a time prepares again, and those who come later let it: it is overtaken at
        # most by those who had begun before it.
        lane = queue(self._repository.location.uri, "prepare again", options.branch)
        lane.wait()
        number = 0
        while True:
            number += 1
            attempt = self.attempt(options.branch)
            waited = not options.asks_for_quiet and wait_for_others(
                self._repository, attempt.branch, attempt.state
            )
            with lane.held() if number > 1 else nullcontext():
                if waited or number > 1:
                    attempt = self.attempt(options.branch)
                before = self._done_before(attempt, key)
                if before is not None:
                    return before
                try:
                    return self._once(options, attempt, prepare, key)
                except PreconditionFailed as failed:
                    expected, actual = failed.expected, failed.actual
                    raise PreconditionFailed(expected, actual, options.branch) from None
                except KeyConflict:
                    raise
                except Conflict as conflict:
                    now = self.attempt(options.branch)
                    before = self._done_before(now, key)
                    if before is not None:
                        return before
                    # Upkeep moves tables without a commit: nothing that was decided on changed.
                    # A write that others took over is theirs to decide: its caller is told.
                    head, taken = now.snapshot.commit_id, isinstance(conflict, OwnershipLost)
                    token = options.expected_head
                    if token is not None and token != head and conflict.retryable and not taken:
                        raise PreconditionFailed(token, head, options.branch) from conflict
                    unchanged = not taken and head == attempt.snapshot.commit_id
                    if not ((retry() or unchanged) and conflict.retryable):
                        raise
                    late = self._repository.clock.monotonic() > deadline
                    if late and number >= PREPARE_ATTEMPTS_MIN:
                        raise
            ceiling = min(PREPARE_BACKOFF_MAX_S, PREPARE_BACKOFF_S * 2**number)
            time.sleep(random.uniform(0, ceiling))

    def _once(
        self,
        options: WriteOptions,
        attempt: Attempt,
        prepare: Prepare,
        key: tuple[str, str] | None,
    ) -> Outcome:
        snapshot, expected = attempt.snapshot, options.expected_head
        if expected is not None and snapshot.commit_id != expected:
            raise PreconditionFailed(expected, snapshot.commit_id)
        self._require_allowed(attempt.branch, options.info)
        prepared, result = prepare(attempt)
        if prepared is None:
            if expected is not None:
                self._require_head(options.branch, expected)
            return Outcome(None, result)
        prepared = replace(prepared, expected_head=expected)
        if key is not None:
            prepared = _remembering(prepared, attempt, key, result)
        return Outcome(self._transaction.commit(prepared), result)

    def _require_allowed(self, branch: Branch, info: WriteInfo) -> None:
        """Some protected branches take nothing but merges."""
        if info.kind != "merge" and accepts_only_merges(self._repository.main.warm(), branch):
            raise BranchProtected(
                f"branch {branch.name!r} takes nothing but merges",
                details={"branch": branch.name},
            )

    def _require_head(self, branch: str, expected: str) -> None:
        """A write without effect still holds its caller's precondition to the end."""
        head = self.attempt(branch).state.head.commit_id
        if head != expected:
            raise PreconditionFailed(expected, head)

    def _done_before(self, attempt: Attempt, key: tuple[str, str] | None) -> Outcome | None:
        """The outcome of an earlier request with the same key."""
        row = None if key is None else attempt.state.row(_object_id(attempt.branch, key[0]))
        if row is None or key is None:
            return None
        if row.metadata["digest"] != key[1]:
            raise IdempotencyMismatch(
                f"the idempotency key {key[0]!r} was used for a different request",
                details={"commit_id": row.metadata["commit_id"]},
            )
        commit = find_commit(attempt.state, row.metadata["commit_id"])
        return Outcome(commit, row.metadata["result"], repeated=True)


def _remembering(
    prepared: PreparedWrite, attempt: Attempt, key: tuple[str, str], result: Mapping[str, Any]
) -> PreparedWrite:
    """The same write, which also leaves its idempotency key behind."""
    row = Row(
        _object_id(attempt.branch, key[0]),
        Kind.IDEMPOTENCY,
        {"commit_id": prepared.operation_id, "digest": key[1], "result": dict(result)},
    )
    known = sorted(
        attempt.state.rows(Kind.IDEMPOTENCY), key=lambda item: str(item.metadata["commit_id"])
    )
    forgotten = known[: max(0, len(known) + 1 - IDEMPOTENCY_KEYS_MAX)]
    return replace(
        prepared,
        put=(*prepared.put, row),
        drop=(*prepared.drop, *(item.object_id for item in forgotten)),
        absent=(*prepared.absent, row.object_id),
    )


def _object_id(branch: Branch, key: str) -> str:
    """Named after the branch too: a fork starts with none of its parent's keys in force."""
    return "idem:" + hashlib.sha256(f"{branch.incarnation}\0{key}".encode()).hexdigest()
