"""Resolves references (branch, tag, commit, time) to snapshots.

A target is the name of a branch (its head), a tag, the id of a commit on any branch, a moment on
main, or ``BRANCH@MOMENT``. Bare names are tried in that order; ``branch:``, ``tag:``, ``commit:``
and ``time:`` select one kind.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked, skip_if_deleted
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches, get_branch
from omnigraph.catalog.branches.tags import find_tag, get_tag
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import CommitNotFound, HistoryReclaimed, InvalidInput, RefNotFound

_PREFIXES: Final = ("branch", "tag", "commit", "time")


def resolve(repository: Repository, target: str) -> SnapshotPins:
    """The snapshot that a target refers to, or a typed error."""
    prefix, colon, rest = target.partition(":")
    if colon and prefix in _PREFIXES:
        return _explicit(repository, prefix, rest)
    main = repository.main.current()
    if target == MAIN:
        return SnapshotPins.of(MAIN_BRANCH, main)
    if target in all_branches(main):
        return repository.snapshot(get_branch(main, target))
    tag = find_tag(main, target)
    if tag is not None:
        return at_commit(repository, tag.commit_id)
    if target.isalnum() and _find(repository, target) is not None:
        return at_commit(repository, target)
    branch, at, moment = target.rpartition("@")
    when = parse_moment(moment)
    if when is not None and (not at or branch in all_branches(main)):
        return at_time(repository, branch if at else MAIN, when)
    raise RefNotFound(
        f"{target!r} is neither a branch nor a tag, a commit or a time", details={"ref": target}
    )


def locate_commit(repository: Repository, commit_id: str) -> tuple[Branch, Commit]:
    """A commit and the branch that made it or, when that was deleted, one that inherited it."""
    found = find_anywhere(repository, commit_id)
    if found is None:
        commit = describe_commit(repository, commit_id)
        raise HistoryReclaimed(
            f"the state of commit {commit_id} was removed with its branch {commit.branch!r}, which "
            "was merged and deleted",
            remedy="Use the merge commit instead; `omnigraph commit show` still shows this one.",
            details={"commit_id": commit_id, "branch": commit.branch},
        )
    branch, commit = found
    by_incarnation = {b.incarnation: b for b in all_branches(repository.main.current()).values()}
    while (
        branch.fork_version is not None
        and (commit.manifest_version or 0) <= branch.fork_version
        and branch.parent in by_incarnation
    ):
        branch = by_incarnation[branch.parent]
    return branch, commit


def describe_commit(repository: Repository, commit_id: str) -> Commit:
    """A commit by id, from a branch that made it, inherited it or had it merged."""
    found = _find(repository, commit_id)
    if found is None:
        raise CommitNotFound(
            f"no branch has a commit {commit_id!r}", details={"commit_id": commit_id}
        )
    return found


def _find(repository: Repository, commit_id: str) -> Commit | None:
    found = find_anywhere(repository, commit_id)
    if found is not None:
        return found[1]
    for branch in all_branches(repository.main.current()).values():
        merged = history.find_merged(repository.manifest(branch).current(), commit_id)
        if merged is not None:
            return merged
    return None


def find_anywhere(repository: Repository, commit_id: str) -> tuple[Branch, Commit] | None:
    """A commit and a branch that has it; main is searched first."""
    branches = all_branches(repository.main.current())
    for branch in sorted(branches.values(), key=lambda b: (b.name != MAIN, b.name)):
        with skip_if_deleted(repository, branch):
            commit = history.find_commit(repository.manifest(branch).current(), commit_id)
            if commit is not None:
                return branch, commit
    return None


def at_commit(repository: Repository, commit_id: str) -> SnapshotPins:
    """The state that a commit of any branch made."""
    branch, _ = locate_commit(repository, commit_id)
    with deletion_checked(repository, branch):
        return repository.snapshot_at_commit(branch, commit_id)


def at_time(repository: Repository, branch_name: str, when_us: int) -> SnapshotPins:
    """The state of a branch at a time: that of its newest commit until then."""
    branch = repository.branch(branch_name)
    for commit in history.iterate_commits(repository.manifest(branch).current()):
        if commit.created_at_us <= when_us:
            return repository.snapshot_at_commit(branch, commit.commit_id)
    raise CommitNotFound(f"branch {branch_name!r} has no commit before this time")


def _explicit(repository: Repository, prefix: str, rest: str) -> SnapshotPins:
    if prefix == "branch":
        return repository.snapshot(repository.branch(rest))
    if prefix == "tag":
        return at_commit(repository, get_tag(repository.main.current(), rest).commit_id)
    if prefix == "commit":
        return at_commit(repository, rest)
    branch, at, moment = rest.rpartition("@")
    when = parse_moment(moment)
    if when is None:
        raise InvalidInput(
            f"{moment!r} is not a time", remedy="Write it like 2026-05-01T12:00:00Z (UTC)."
        )
    return at_time(repository, branch if at else MAIN, when)


def parse_moment(text: str) -> int | None:
    """An ISO 8601 date or time in microseconds; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)
