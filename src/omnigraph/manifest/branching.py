"""Creating branches: the ref first, the registry row second."""

from __future__ import annotations

from omnigraph.errors import Contention, ReadSetConflict
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import Branch, check_new_name
from omnigraph.manifest.publication import Publication, Requirements
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import MAIN, MANIFEST_PATH, Kind
from omnigraph.storage.failpoints import hit
from omnigraph.storage.tables import TableRef

REGISTER_ATTEMPTS_MAX = 50


def create_branch(repository: Repository, name: str, from_: str = MAIN) -> Branch:
    """Fork a branch at the head of another. Tables are forked later, by their first write."""
    name = check_new_name(repository.main.current(), name)
    source = repository.branch(from_)
    state = repository.manifest(source).current()
    branch = Branch(name, new_ulid(), source.incarnation, state.head.commit_id, state.version)
    hit("branch.before_ref")
    repository.tables.fork(TableRef(MANIFEST_PATH, source.ref, state.version), branch.incarnation)
    hit("branch.after_ref")
    _register(repository, branch)
    hit("branch.after_row")
    return branch


def _register(repository: Repository, branch: Branch) -> None:
    """Make the branch exist, unless a name it collides with came to exist first."""
    for _ in range(REGISTER_ATTEMPTS_MAX):
        state = repository.main.current()
        check_new_name(state, branch.name)
        known = tuple(sorted(row.object_id for row in state.rows(Kind.BRANCH)))
        requirements = Requirements(branches=known)
        try:
            repository.main.publish(
                Publication(branch.incarnation, MAIN, requirements, put=(branch.to_row(),))
            )
        except ReadSetConflict:
            continue
        return
    raise Contention("too many branches are being created at once")
