"""Why something of a branch is missing: because the branch was deleted meanwhile.

Deleting a branch drops its row first and its files after that, while others may be at work on it.
Whoever then misses a table or a file looks at the registry once more: if a branch that was asked
for is gone, that is the answer, and not which of its files was missed first. In the steady state
nothing is looked at.
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

MISSING: Final = (
    TableNotFound,
    ObjectNotFound,
    CommitNotFound,
    HistoryReclaimed,
    ChangeFeedGap,
    StorageFailure,
)
"""What it looks like when files go away that somebody reads or writes beside."""


@contextmanager
def deletion_noticed(repository: Repository, *targets: Branch | str | None) -> Iterator[None]:
    """Raise ``BranchNotFound`` for whatever is missing when one of these branches was deleted.

    A target is a branch, or what callers call a state of the graph: those that are not the name of
    a branch do not matter here.
    """
    try:
        yield
    except MISSING as missing:
        name = None if isinstance(missing, OutcomeUnknown) else _deleted(repository, targets)
        if name is None:
            raise
        raise branch_deleted(name) from missing


def noticing_deletion(repository: Repository, branch: Branch, items: Iterator[_T]) -> Iterator[_T]:
    """The same for what is read as it is asked for."""
    with deletion_noticed(repository, branch):
        yield from items


@contextmanager
def skipped_if_deleted(repository: Repository, branch: Branch) -> Iterator[None]:
    """For one branch of many that are looked at: end the block when it was deleted meanwhile."""
    with suppress(BranchNotFound), deletion_noticed(repository, branch):
        yield


def branch_deleted(name: str) -> BranchNotFound:
    return BranchNotFound(
        f"branch {name!r} was deleted meanwhile",
        remedy="Nothing of this was carried out. Name a branch that exists.",
        details={"branch": name},
    )


def is_live(repository: Repository, branch: Branch) -> bool:
    """Whether the branch is there now."""
    return all_branches(repository.main.current()).get(branch.name) == branch


def _deleted(repository: Repository, targets: Iterable[Branch | str | None]) -> str | None:
    """The name of the first target that is a branch no longer; None when all of them live."""
    try:
        registered = all_branches(repository.main.current()).values()
    except OmnigraphError:
        return None  # whatever is wrong with the store, it is not that
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
