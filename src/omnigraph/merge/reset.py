"""Resets a branch to an older state of its history, as a new commit.

Publishes forks of the table versions that the older state had, so that the cost does not depend on
the size of the change. Nothing of the history is removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.catalog.branches.registry import is_protected
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.history.horizon import kept_version
from omnigraph.catalog.references import resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, Row, TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import BranchProtected, InvalidInput
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo


def reset(
    repository: Repository, committer: Committer, target: str, options: WriteOptions
) -> Commit | None:
    """Reset a branch; returns the commit, or None if the branch has this state already.

    Raises ``BranchProtected`` for a protected branch.
    """

    def prepare(attempt: Attempt) -> Prepared[None]:
        old = _require_allowed(repository, attempt, target)
        return _Reset(repository, attempt, old).prepare(options.info)

    return committer.run(options, prepare, digest=lambda: f"reset to {target}").commit


def _require_allowed(repository: Repository, attempt: Attempt, target: str) -> SnapshotPins:
    """The state to reset to, if the branch may be reset to it."""
    branch = attempt.branch
    if is_protected(repository.main.current(), branch):
        raise BranchProtected(
            f"branch {branch.name!r} is protected and cannot be reset",
            details={"branch": branch.name},
        )
    old = resolve(repository, target)
    if find_commit(attempt.state, old.commit_id) is None:
        raise InvalidInput(
            f"{target!r} is not in the history of branch {branch.name!r}",
            remedy="Merge the other branch, or restore from it.",
        )
    return old


@dataclass(frozen=True, slots=True)
class _Reset:
    """One attempt at a reset, and the forks that it has made."""

    repository: Repository
    attempt: Attempt
    old: SnapshotPins
    forks: list[TableRef] = field(default_factory=list)

    def prepare(self, info: WriteInfo) -> Prepared[None]:
        now, old = self.attempt.snapshot, self.old
        has_same_schema = old.schema_hash == now.schema_hash
        if has_same_schema:
            changed = [key for key, pin in old.pins.items() if now.pins[key].ref != pin.ref]
        else:
            changed = list(old.pins)
        if not changed:
            return Prepared(None)
        before = now if has_same_schema else old
        rows = tuple(row for key in changed for row in self._rows(key, before))
        hit("reset.before_publish")
        write = PreparedWrite(
            operation_id=new_ulid(),
            snapshot=now,
            info=info,
            reads={key: now.pins[key].ref for key in changed} if has_same_schema else {},
            # A later commit would be undone, too, and its author would not know.
            expected_head=now.commit_id,
            kept=self._kept(),
            put=rows,
            drop=tuple(f"table:{key}" for key in now.pins if key not in old.pins),
            schema_hash=None if has_same_schema else old.schema_hash,
        )
        return Prepared(write, repeatable=False, discard=self._drop_forks)

    def _kept(self) -> int | None:
        """The version of the old state, unless only a tag or a fork protects it from cleanup."""
        version = self.old.manifest_version
        return version if kept_version(self.attempt.state, version) is not None else None

    def _rows(self, key: str, before: SnapshotPins) -> Iterator[Row]:
        """The rows that pin a type to a fork of its old version; later writes build on the fork."""
        old: TablePin = self.old.pins[key]
        self.forks.append(self.repository.tables.fork(old.ref, new_ulid()))
        pin = before.pins[key].moved(
            self.forks[-1],
            rows=old.rows,
            transaction=old.transaction,
            deletes=True,
            inserts=True,
            owner=self.attempt.branch.incarnation,
        )
        yield from (pin.to_row(), pin.to_version_row())

    def _drop_forks(self) -> None:
        for fork in self.forks:
            assert fork.branch is not None, "a fork is a physical branch"
            self.repository.tables.drop_fork(fork.path, fork.branch)
