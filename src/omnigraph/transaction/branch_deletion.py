"""Deletes a branch: its registry row first, then its files.

Dropping the row makes the branch invisible. A crash after that leaves orphaned files for cleanup,
as does an interrupted creation. A writer puts its record and then checks that its branch exists; a
deletion drops the row and then lists the records: one of them sees the other. While the record of a
live writer exists, the files stay, so that its write cannot recreate a removed directory. Cleanup
removes them later.
"""

from __future__ import annotations

import logging

from omnigraph.catalog.branches.changes import deletable, unregister_branch
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch
from omnigraph.catalog.branches.unmerged import require_merged
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import OmnigraphError
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.recovery.recover import Recovery

log = logging.getLogger("omnigraph.branches")


def delete_branch(
    repository: Repository,
    recovery: Recovery,
    name: str,
    *,
    force: bool = False,
    key: RequestKey | None = None,
) -> None:
    """Delete a branch with its own history; refused while something depends on it.

    Without ``force`` it is also refused while the branch has unmerged commits. A repeated request
    with the same ``key`` does nothing.
    """
    state = repository.main.current()
    if key is not None and key.find(MAIN_BRANCH, state) is not None:
        return
    if not force:
        require_merged(repository, deletable(state, name))
    branch = unregister_branch(repository, name, key)
    try:
        if _has_no_live_writer(recovery, branch):
            _remove_files(repository, branch)
    except OmnigraphError as error:
        # The branch is deleted already: a failure here only leaves orphaned files.
        log.warning("orphaned files of branch %s remain: %s", branch.name, error.message)
    hit("branch.after_delete")


def _has_no_live_writer(recovery: Recovery, branch: Branch) -> bool:
    records = recovery.pending.of_branch(branch.incarnation)
    if any(recovery.pending.cause_to_resolve(record) is None for record in records):
        return False
    recovery.discard(branch.incarnation)
    return True


def _remove_files(repository: Repository, branch: Branch) -> None:
    """The branch's own copies of tables, then its manifest."""
    forked_at = branch.fork_version or 0
    first = TableRef(MANIFEST_PATH, branch.ref, forked_at + 1)
    if repository.tables.has_version(first):  # False if nothing was ever written to the branch
        state = repository.manifest(branch).current()
        for path, name in history.owned_tables(state, branch.incarnation, forked_at):
            repository.tables.drop_fork(path, name)
    hit("branch.after_forks")
    repository.tables.drop_fork(MANIFEST_PATH, branch.incarnation)
