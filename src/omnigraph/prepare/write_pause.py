"""Cooperative back-off: a long preparation asks the other writers of its branch to pause.

A preparation that takes longer than the writes of others would lose every optimistic conflict.
After the first one it publishes a row on the branch; writers that read the row wait until it is
gone, each for a bounded time on its own clock. The row is no lock: a writer that does not wait, or
that stops waiting, only makes the long preparation start again. A row that a dead process left is
removed by the first writer whose wait times out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.model.ids import new_ulid
from omnigraph.model.retry import poll_policy

log = logging.getLogger("omnigraph.commit")

PAUSE_POLL: Final = poll_policy(0.05, 20.0)
"""The longest wait: a large type can be filled in this time; a dead process blocks no longer."""


def pause_id(branch: Branch) -> str:
    """The row of a pause. It names the branch's incarnation: a fork does not inherit it."""
    return f"quiet:{branch.incarnation}"


@contextmanager
def writers_paused(repository: Repository, branch: Branch) -> Iterator[None]:
    """Ask the other writers of a branch to pause while the block runs."""
    try:
        request_pause(repository, branch)
        yield
    finally:
        end_pause(repository, repository.branch(branch.name))


def request_pause(repository: Repository, branch: Branch) -> None:
    """Publish the row that asks the other writers of a branch to pause."""
    row = Row(pause_id(branch), RowKind.QUIET, {"asked": new_ulid()})
    repository.manifest(branch).publish(Publication(new_ulid(), branch.name, put=(row,)))


def end_pause(repository: Repository, branch: Branch) -> None:
    """Remove the row of a pause, if there is one."""
    manifest = repository.manifest(branch)
    if manifest.current().row(pause_id(branch)) is not None:
        manifest.publish(Publication(new_ulid(), branch.name, drop=(pause_id(branch),)))


def wait_for_pause(repository: Repository, branch: Branch, state: ManifestState) -> bool:
    """Wait until a pause has ended or timed out; False when there was none."""
    requested = state.row(pause_id(branch))
    if requested is None:
        return False
    retry = PAUSE_POLL.start(repository.clock)
    while retry.again():
        if repository.manifest(branch).current().row(pause_id(branch)) != requested:
            return True
    waited_s = PAUSE_POLL.deadline_s
    log.warning("a schema change of %s has not finished for %.0f s", branch.name, waited_s)
    end_pause(repository, branch)
    return True
