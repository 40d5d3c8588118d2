"""The context that the services of the local backend share: one open graph and the guards of calls.

Owns the guards around every call. ``reading`` and ``checking_deletion`` report a branch that is
deleted concurrently as ``BranchNotFound``; ``writing`` also refuses a read-only handle and adds the
outcome of the write to an exception that interrupts the call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.commit_text import checked_metadata
from omnigraph.catalog.repository import Repository
from omnigraph.engine.engine import Reader
from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.upkeep import run_upkeep
from omnigraph.model.outcome import noting_outcome
from omnigraph.model.requests import CommitOptions
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Committer, WriteOptions
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

log = logging.getLogger("omnigraph.upkeep")


@dataclass(frozen=True, slots=True)
class GraphContext:
    """One open graph. Threads share it.

    ``actor`` is recorded for writes that name none.
    """

    repository: Repository
    transaction: WriteTransaction
    reader: Reader
    blobs: BlobPolicy
    read_only: bool
    actor: str | None

    @classmethod
    def of(
        cls, repository: Repository, *, read_only: bool, blobs: BlobPolicy, actor: str | None
    ) -> GraphContext:
        """A context with a transaction and a reader of its own."""
        repository.tables.relocates = not read_only
        transaction = WriteTransaction(repository, read_only=read_only, actor=actor)
        return cls(repository, transaction, Reader(repository), blobs, read_only, actor)

    @contextmanager
    def reading(self, branch: str) -> Iterator[Branch]:
        """Resolve a branch by name; the block fails with ``BranchNotFound`` if it is deleted."""
        resolved = self.repository.branch(branch)
        with deletion_checked(self.repository, resolved):
            yield resolved

    @contextmanager
    def checking_deletion(self, *targets: Branch | str | None) -> Iterator[None]:
        """Fail with ``BranchNotFound`` if one of these branches, or references, is deleted."""
        with deletion_checked(self.repository, *targets):
            yield

    @contextmanager
    def writing(self, *targets: str) -> Iterator[None]:
        """Guards of a write; ``targets`` are the branches and references that it names.

        Refuses read-only handles, reports a concurrently deleted branch as ``BranchNotFound`` and
        adds the outcome of the write to an exception that interrupts it.
        """
        self.transaction.require_writable()
        with noting_outcome(), deletion_checked(self.repository, *targets):
            yield

    def committer(self) -> Committer:
        """The commit loop of one write."""
        return Committer(self.repository, self.transaction)

    def run_upkeep(self, branch: str, rows_written: Mapping[str, int]) -> list[str]:
        """Compact and index the types that a write touched; returns those whose table changed.

        A failure does not affect the write.
        """
        if not rows_written:
            return []
        try:
            written = self.repository.branch(branch)
        except OmnigraphError as error:
            log.info("upkeep of %s was skipped: %s", branch, error.message)
            return []
        return run_upkeep(self.repository, self.transaction, written, rows_written)


def write_options(
    kind: str,
    branch: str,
    commit: CommitOptions,
    *,
    message: str | None = None,
    facts: Mapping[str, str] | None = None,
) -> WriteOptions:
    """The options of one write; ``message`` is the message if the caller gives none."""
    text = message if commit.message is None else commit.message
    metadata = {**checked_metadata(commit.metadata), **(facts or {})}
    info = WriteInfo(kind, commit.actor, text, metadata)
    return WriteOptions(
        branch,
        info,
        commit.expected_head,
        commit.idempotency_key,
        denied_types=commit.denied_types,
    )
