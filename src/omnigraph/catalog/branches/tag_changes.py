"""Creating, moving and deleting tags: each change is one publish on main."""

from __future__ import annotations

from dataclasses import asdict

from omnigraph.catalog.branches.changes import change_registry, is_still_kept, remembered
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches, name_problem
from omnigraph.catalog.branches.tags import Tag, find_tag, get_tag
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.history.horizon import reclaimed
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.references import locate_commit, resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import InvalidInput, TagExists
from omnigraph.model.ids import new_ulid


def create_tag(
    repository: Repository,
    name: str,
    target: str = MAIN,
    *,
    force: bool = False,
    actor: str | None = None,
    message: str | None = None,
    key: RequestKey | None = None,
) -> Tag:
    """Name a commit: the head of a branch, or any commit. ``force`` moves a tag that exists.

    A repeated request with the same ``key`` returns the tag that the first one made.
    """
    known = _remembered(repository, key)
    if known is not None:
        return known
    check_text("actor", actor)
    check_text("message", message)
    check_text("name of a tag", name)
    name = name.strip()
    problem = name_problem(name)
    if problem:
        raise InvalidInput(
            f"{name!r} cannot be a tag name: {problem}",
            remedy="Use letters, digits and . _ - with / between parts, such as release/1.0.",
        )
    made: list[Tag] = []
    holder: list[Branch] = []

    def change(state: ManifestState) -> Publication:
        if name in all_branches(state):
            raise TagExists(f"there is a branch {name!r} already", details={"branch": name})
        if find_tag(state, name) is not None and not force:
            raise TagExists(f"tag {name!r} exists already", details={"tag": name})
        branch, commit = locate_commit(repository, resolve(repository, target).commit_id)
        held = repository.snapshot_at_commit(branch, commit.commit_id)
        holder.append(branch)
        tag = Tag(
            name,
            commit.commit_id,
            branch.incarnation,
            held.manifest_version,
            repository.clock.now_us(),
            actor,
            message,
        )
        made.append(tag)
        return remembered(
            Publication(new_ulid(), MAIN, put=(tag.to_row(),)), key, state, asdict(tag)
        )

    change_registry(repository, change)
    tag = made[-1]
    if not is_still_kept(repository, holder[-1], tag.manifest_version, tag.object_id):
        delete_tag(repository, name)  # a concurrent cleanup did not see it
        raise reclaimed(repr(target), tag.commit_id)
    return tag


def _remembered(repository: Repository, key: RequestKey | None) -> Tag | None:
    """The tag of an earlier request with this key."""
    row = None if key is None else key.find(MAIN_BRANCH, repository.main.current())
    return None if row is None else Tag(**row.metadata["result"])


def delete_tag(repository: Repository, name: str, key: RequestKey | None = None) -> Tag:
    """Remove a tag; its commit stays as long as a branch leads to it."""
    known = _remembered(repository, key)
    if known is not None:
        return known
    found: list[Tag] = []

    def change(state: ManifestState) -> Publication:
        found.append(get_tag(state, name))
        gone = Publication(new_ulid(), MAIN, drop=(found[-1].object_id,))
        return remembered(gone, key, state, asdict(found[-1]))

    change_registry(repository, change)
    return found[-1]
