"""Letting a long preparation through: others wait a little, by agreement and never by force.

Whoever prepares longer than others take to write would be overtaken for ever. After that happened,
it leaves a row on the branch; writers that see it wait until it is gone, each for a bounded time on
its own clock. The row protects nothing: who does not wait, or waited long enough, only makes the
other prepare once more. A row that a dead process left is removed by whoever waited in vain.
"""

from __future__ import annotations

import logging
import random
import time
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Kind, Row
from omnigraph.catalog.state import ManifestState
from omnigraph.model.ids import new_ulid

log = logging.getLogger("omnigraph.commit")

QUIET_WAIT_S: Final = 20.0
"""Long enough to fill columns of a large type; short enough that a dead process is no obstacle."""
_POLL_S: Final = 0.05


def quiet_id(branch: Branch) -> str:
    """Named after the branch: a fork has none of its parent's."""
    return f"quiet:{branch.incarnation}"


def ask_for_quiet(repository: Repository, branch: Branch) -> None:
    row = Row(quiet_id(branch), Kind.QUIET, {"asked": new_ulid()})
    repository.manifest(branch).publish(Publication(new_ulid(), branch.name, put=(row,)))


def end_quiet(repository: Repository, branch: Branch) -> None:
    manifest = repository.manifest(branch)
    if manifest.current().row(quiet_id(branch)) is not None:
        manifest.publish(Publication(new_ulid(), branch.name, drop=(quiet_id(branch),)))


def wait_for_others(repository: Repository, branch: Branch, state: ManifestState) -> bool:
    """Wait while somebody asks for quiet; whether there was anything to wait for."""
    asked = state.row(quiet_id(branch))
    if asked is None:
        return False
    clock = repository.clock
    deadline = clock.monotonic() + QUIET_WAIT_S
    while clock.monotonic() < deadline:
        time.sleep(random.uniform(0, _POLL_S))
        if repository.manifest(branch).current().row(quiet_id(branch)) != asked:
            return True
    log.warning("a schema change of %s has not finished for %.0f s", branch.name, QUIET_WAIT_S)
    end_quiet(repository, branch)
    return True
