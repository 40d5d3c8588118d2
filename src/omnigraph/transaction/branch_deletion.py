"""Deleting a branch: gone for everybody first, then from the store.

Dropping the row makes the branch disappear; what a process that dies after that leaves are files
nothing refers to, and clean-up takes them, as it does after a creation that was cut short. A writer
puts its record and then looks whether its branch still lives, a deleter drops the row and then
looks for records: one of them sees the other. While a live writer's record is there, files stay
where they are, so that its write lands where nobody reads instead of bringing a removed directory
back to life; they are left to clean-up, too.
"""

from __future__ import annotations

import logging

from omnigraph.catalog.branches.changes import deletable, forget_branch
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.branches.unmerged import require_merged
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import OmnigraphError
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.recovery.recover import Recovery

log = logging.getLogger("omnigraph.branches")


def delete_branch(
    repository: Repository, recovery: Recovery, name: str, *, force: bool = False
) -> None:
    """Delete a branch with its own history; refused while something depends on it.

    Unless by ``force``, also while it has commits that no other branch has.
    """
    if not force:
        require_merged(repository, deletable(repository.main.current(), name))
    branch = forget_branch(repository, name)
    try:
        if _nobody_writes(recovery, branch):
            _remove_files(repository, branch)
    except OmnigraphError as error:
        # The branch is gone whatever happens here: what is left are files nothing refers to.
        log.warning("files of branch %s are left: %s", branch.name, error.message)
    hit("branch.after_delete")


def _nobody_writes(recovery: Recovery, branch: Branch) -> bool:
    records = recovery.pending.of_branch(branch.incarnation)
    if any(recovery.pending.cause_to_resolve(record) is None for record in records):
        return False
    recovery.discard(branch.incarnation)
    return True


def _remove_files(repository: Repository, branch: Branch) -> None:
    """The branch's own copies of tables, then its manifest."""
    forked_at = branch.fork_version or 0
    first = TableRef(MANIFEST_PATH, branch.ref, forked_at + 1)
    if repository.tables.has_version(first):  # otherwise nothing was ever written to it
        state = repository.manifest(branch).current()
        for path, name in history.owned_tables(state, branch.incarnation, forked_at):
            repository.tables.drop_fork(path, name)
    hit("branch.after_forks")
    repository.tables.drop_fork(MANIFEST_PATH, branch.incarnation)
