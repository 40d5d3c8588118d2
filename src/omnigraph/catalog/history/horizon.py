"""The horizon of a branch: the manifest version below which its history may be gone.

Cleanup publishes the horizon in the branch's own manifest before it removes anything, and reads the
registry afterwards. A fork or a tag is registered first and checks the horizon afterwards. One of
them sees the other, so no state is removed that was just forked or tagged.

A publish between two commits changes no entity, so every manifest version from a commit up to the
next one shows the state of that commit. A horizon between the two removes neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.branches.tags import all_tags
from omnigraph.catalog.manifest import Manifest
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import HORIZON, Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import HistoryReclaimed
from omnigraph.model.ids import new_ulid


def raise_horizon(manifest: Manifest, branch: Branch, version: int) -> None:
    """Publish that the history below this version may be removed."""
    row = Row(HORIZON, RowKind.HORIZON, {"version": version})
    manifest.publish(Publication(new_ulid(), branch.name, put=(row,)))


def kept_version(state: ManifestState, version: int) -> int | None:
    """The manifest version at which the state of ``version`` is kept; None when it may be gone."""
    if version >= state.horizon:
        return version
    track = state.timeline.commits
    following = track.until(version)
    same_until = track.versions[following] - 1 if following < len(track) else state.version
    return state.horizon if same_until >= state.horizon else None


def protected_versions(
    main_state: ManifestState, branch: Branch, *, but: str | None = None
) -> Iterator[tuple[str, int]]:
    """The commits of a branch that tags or forks protect, each with its manifest version.

    ``but`` leaves out what one row of the registry protects.
    """
    for tag in all_tags(main_state).values():
        if tag.branch == branch.incarnation and tag.object_id != but:
            yield tag.commit_id, tag.manifest_version
    for other in all_branches(main_state).values():
        mine = other.parent == branch.incarnation and other.to_row().object_id != but
        if mine and other.fork_commit is not None and other.fork_version is not None:
            yield other.fork_commit, other.fork_version


def is_kept(
    main_state: ManifestState, branch: Branch, state: ManifestState, version: int, but: str
) -> bool:
    """Whether anything protects a state apart from the row ``but``, which was just written."""
    if kept_version(state, version) is not None:
        return True
    held = protected_versions(main_state, branch, but=but)
    return any(version == other for _, other in held)


def reclaimed(what: str, commit_id: str) -> HistoryReclaimed:
    return HistoryReclaimed(
        f"{what} can no longer be read: cleanup removed its state", details={"commit_id": commit_id}
    )
