"""Errors of reads and writes whose branch is deleted concurrently.

Deleting a branch drops its registry row first and its files afterwards, while readers and writers
may still use it. When a table or a file is missing, the registry is read again: if the branch is
gone, the error is ``BranchNotFound`` instead of the name of the first missing file. Nothing is read
unless something is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.repository import Repository
from omnigraph.errors import (
    BranchNotFound,
    ChangeFeedGap,
    CommitNotFound,
    HistoryReclaimed,
    ObjectNotFound,
    OmnigraphError,
    OutcomeUnknown,
    StorageFailure,
)
from omnigraph.storage.lance.errors import TableNotFound

_T = TypeVar("_T")

MISSING_ERRORS: Final = (
    TableNotFound,
    ObjectNotFound,
    CommitNotFound,
    HistoryReclaimed,
    ChangeFeedGap,
    StorageFailure,
)
"""Errors that the removal of files in use can cause."""


@contextmanager
def deletion_checked(repository: Repository, *targets: Branch | str | None) -> Iterator[None]:
    """Raise ``BranchNotFound`` in place of a missing file when one of these branches was deleted.

    A target is a branch or a reference; references that name no branch are ignored.
    """
    try:
        yield
    except MISSING_ERRORS as missing:
        name = None if isinstance(missing, OutcomeUnknown) else _deleted(repository, targets)
        if name is None:
            raise
        raise branch_deleted(name) from missing


def deletion_checked_items(
    repository: Repository, branch: Branch, items: Iterator[_T]
) -> Iterator[_T]:
    """``deletion_checked`` for a lazily read iterator."""
    with deletion_checked(repository, branch):
        yield from items


@contextmanager
def skip_if_deleted(repository: Repository, branch: Branch) -> Iterator[None]:
    """Leave the block silently if its branch is deleted concurrently.

    For code that iterates over all branches.
    """
    with suppress(BranchNotFound), deletion_checked(repository, branch):
        yield


def branch_deleted(name: str) -> BranchNotFound:
    return BranchNotFound(
        f"branch {name!r} was deleted while it was in use",
        remedy="Nothing was changed. Use a branch that exists.",
        details={"branch": name},
    )


def is_live(repository: Repository, branch: Branch) -> bool:
    """Whether the branch exists now."""
    return all_branches(repository.main.current()).get(branch.name) == branch


def _deleted(repository: Repository, targets: Iterable[Branch | str | None]) -> str | None:
    """The name of the first target whose branch was deleted; None when all exist."""
    try:
        registered = all_branches(repository.main.current()).values()
    except OmnigraphError:
        return None  # the store fails: not a deleted branch
    live = {branch.incarnation for branch in registered}
    for target in targets:
        if isinstance(target, Branch):
            if target.incarnation not in live:
                return target.name
        elif target is not None:
            name = target.removeprefix("branch:").removeprefix("time:").partition("@")[0]
            if any(known not in live for known in repository.incarnations(name)):
                return name
    return None
