"""Changes of the branch registry: creating, unregistering and protecting branches.

Creating makes the ref first and the row second: the row makes the branch exist. Deleting drops the
row first, which makes the branch invisible; files follow. Each change is published only on the
registry state it was checked against, so that no branch or tag depends on a deleted branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from omnigraph.catalog.branches.registry import (
    MAIN_BRANCH,
    Branch,
    all_branches,
    check_new_name,
    get_branch,
    is_protected,
    protection_id,
)
from omnigraph.catalog.branches.tags import all_tags
from omnigraph.catalog.format import internal_version
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.history.horizon import is_kept, raise_horizon, reclaimed
from omnigraph.catalog.migrations.legacy import Lineage
from omnigraph.catalog.original.rewrite import fork_before_conversion, is_before_conversion
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.references import resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import BranchInUse, BranchProtected, Contention, InvalidInput, ReadSetConflict
from omnigraph.model.ids import new_ulid
from omnigraph.model.retry import RetryPolicy
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.tables import TableRef
from omnigraph.storage.named_locks import named_lock

REGISTRY_RETRY = RetryPolicy(base_s=0.004, cap_s=0.25, attempts_max=50)

Change = Callable[[ManifestState], Publication | None]
"""From the state of the registry to a publication; None when there is nothing to do."""


def create_branch(
    repository: Repository,
    name: str,
    from_: str = MAIN,
    actor: str | None = None,
    key: RequestKey | None = None,
) -> Branch:
    """Fork a branch at a branch, a commit or a tag. Tables are forked later, by first writes.

    A repeated request with the same ``key`` returns the branch that the first one made.
    """
    state = repository.main.current()
    known = None if key is None else key.find(MAIN_BRANCH, state)
    if known is not None:
        return Branch(**known.metadata["result"])
    name = check_new_name(state, name)
    start = resolve(repository, from_)
    source = start.branch
    forked_at = start.manifest_version
    branch = Branch(name, new_ulid(), source.incarnation, start.commit_id, forked_at, actor)
    hit("branch.before_ref")
    ref = TableRef(MANIFEST_PATH, source.ref, start.manifest_version)
    converted = is_before_conversion(repository, source, forked_at)
    try:
        if converted:
            fork_before_conversion(repository, branch, start)
        else:
            repository.tables.fork(ref, branch.incarnation)
    except TableNotFound as error:
        raise reclaimed(repr(from_), start.commit_id) from error
    hit("branch.after_ref")
    if not converted:
        _migrate_fork(repository, branch, source, ref)
    _inherit_horizon(repository, branch, source, ref)
    register_branch(repository, branch, source, key)
    hit("branch.after_row")
    if not is_still_kept(repository, source, ref.version, branch.to_row().object_id):
        # A concurrent cleanup did not see the branch; the next one removes its ref.
        unregister_branch(repository, name)
        raise reclaimed(repr(from_), start.commit_id)
    return branch


def _migrate_fork(repository: Repository, branch: Branch, source: Branch, ref: TableRef) -> None:
    """Migrate a fork of an older version to the current format, before it is registered.

    Its commits are those of the source, up to the fork.
    """
    if internal_version(repository.tables.open(ref)) == INTERNAL_VERSION:
        return
    timeline = repository.manifest(source).current().timeline
    commits = timeline.read_commits(range(timeline.commits.until(ref.version)))
    repository.migrator(branch, Lineage(source.name, tuple(commits))).migrate()


def _inherit_horizon(repository: Repository, branch: Branch, source: Branch, ref: TableRef) -> None:
    """Copy the source's horizon to a fork of an older version: cleanup may have run since."""
    state = repository.manifest(source).current()
    if not state.horizon or ref.version >= state.version:
        return
    manifest = repository.manifest(branch)
    horizon = min(state.horizon, ref.version)
    if manifest.current().horizon < horizon:
        raise_horizon(manifest, branch, horizon)


def is_still_kept(repository: Repository, branch: Branch, version: int, held: str) -> bool:
    """Whether a state still exists that the new registry row ``held`` protects from cleanup.

    Cleanup may have removed it just before. Main's horizon is in the state that registering made;
    the horizon of another branch has to be read.
    """
    manifest = repository.manifest(branch)
    state = manifest.warm() if branch.ref is None else manifest.current()
    return is_kept(repository.main.warm(), branch, state, version, held)


def register_branch(
    repository: Repository, branch: Branch, source: Branch, key: RequestKey | None = None
) -> None:
    """Register a branch whose ref exists, unless its name is taken or its source was deleted."""

    def change(state: ManifestState) -> Publication:
        check_new_name(state, branch.name)
        get_branch(state, source.name)  # raises when it was deleted concurrently
        made = Publication(branch.incarnation, MAIN, put=(branch.to_row(),))
        return remembered(made, key, state, asdict(branch))

    change_registry(repository, change)


def remembered(
    publication: Publication, key: RequestKey | None, state: ManifestState, result: dict[str, Any]
) -> Publication:
    """A change of the registry that also keeps its result under the caller's key."""
    if key is None:
        return publication
    rows = key.rows(MAIN_BRANCH, state, publication.operation_id, result)
    return replace(
        publication, put=(*publication.put, rows.put), drop=(*publication.drop, *rows.drop)
    )


def unregister_branch(repository: Repository, name: str, key: RequestKey | None = None) -> Branch:
    """Remove a branch from the registry, unless something depends on it."""
    hit("branch.before_delete")
    removed: list[Branch] = []

    def change(state: ManifestState) -> Publication:
        removed[:] = [deletable(state, name)]
        gone = Publication(new_ulid(), MAIN, drop=(removed[0].to_row().object_id,))
        return remembered(gone, key, state, {})

    change_registry(repository, change)
    hit("branch.after_unregister")
    return removed[0]


def deletable(state: ManifestState, name: str) -> Branch:
    """The branch of this name; raises when it is protected or something depends on it."""
    if name == MAIN:
        raise InvalidInput("the branch main cannot be deleted", remedy="Delete another branch.")
    branch = get_branch(state, name)
    if is_protected(state, branch):
        raise BranchProtected(f"branch {name!r} is protected", details={"branch": name})
    children = [b.name for b in all_branches(state).values() if b.parent == branch.incarnation]
    if children:
        raise BranchInUse(
            f"branch {name!r} cannot be deleted: {children[0]!r} was forked from it",
            remedy=f"Delete {', '.join(children)} first.",
            details={"branch": name, "descendants": children},
        )
    tags = [tag.name for tag in all_tags(state).values() if tag.branch == branch.incarnation]
    if tags:
        raise BranchInUse(
            f"branch {name!r} cannot be deleted: the tag {tags[0]!r} keeps one of its commits",
            remedy=f"Delete the tags {', '.join(tags)} first.",
            details={"branch": name, "tags": tags},
        )
    return branch


def protect_branch(
    repository: Repository, name: str, *, protected: bool = True, merges_only: bool = False
) -> None:
    """Protect a branch from being deleted and reset, or lift the protection.

    With ``merges_only`` nothing but merges may write to it.
    """

    def change(state: ManifestState) -> Publication:
        object_id = protection_id(get_branch(state, name))
        if not protected:
            return Publication(new_ulid(), MAIN, drop=(object_id,))
        row = Row(object_id, RowKind.PROTECTION, {"merges_only": merges_only})
        return Publication(new_ulid(), MAIN, put=(row,))

    change_registry(repository, change)


def change_registry(repository: Repository, change: Change) -> None:
    """Publish a change of the registry, computed again after a conflict with another process.

    A lock serialises the threads of this process.
    """
    with named_lock(repository.location.uri, "registry").held():
        retry = REGISTRY_RETRY.start()
        while True:
            state = repository.main.current()
            publication = change(state)
            if publication is None:
                return
            requirements = replace(publication.requirements, branches=state.registry)
            try:
                repository.main.publish_and_report(replace(publication, requirements=requirements))
            except ReadSetConflict as conflict:
                if not retry.again():
                    raise Contention(
                        "too many branches and tags are being changed at once"
                    ) from conflict
                continue
            return
