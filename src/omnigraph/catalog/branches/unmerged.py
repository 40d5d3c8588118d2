"""Commits of a branch that are in no other branch's history, and would be lost with it.

A commit counts as merged when another live branch made it, inherited it or merged it. Older merges,
which did not store the merged commits, count when the commit is an ancestor of their second parent.
"""

from __future__ import annotations

from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.history.ancestry import distances, load_ancestry
from omnigraph.catalog.references import describe_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.errors import BranchUnmerged


def require_merged(repository: Repository, branch: Branch) -> None:
    """Refuse to delete a branch with unmerged commits."""
    lost = unmerged_commits(repository, branch)
    if not lost:
        return
    newest = lost[0]
    said = "" if newest.message is None else f": {newest.message!r}"
    by = "" if newest.actor is None else f" by {newest.actor}"
    count = "a commit that is" if len(lost) == 1 else f"{len(lost)} commits that are"
    raise BranchUnmerged(
        f"branch {branch.name!r} has {count} in no other branch; "
        f"the newest is {newest.commit_id}{by}{said}",
        details={
            "branch": branch.name,
            "unmerged_commits": len(lost),
            "newest_commit_id": newest.commit_id,
            "newest_message": newest.message,
            "newest_actor_id": newest.actor,
        },
    )


def unmerged_commits(repository: Repository, branch: Branch) -> list[Commit]:
    """The commits that only this branch has, own and merged into it, newest first."""
    timeline = repository.manifest(branch).current().timeline
    forked_at = branch.fork_version or 0
    left = {
        id
        for track in (timeline.commits, timeline.merged)
        for id in track.names[track.until(forked_at) :]
    }
    for other in _others(repository, branch) if left else ():
        known = repository.manifest(other).current().timeline
        left = {id for id in left if not known.contains(id)}
        if not left:
            break
    if left:
        left -= _reachable(repository, branch)
    found = [describe_commit(repository, id) for id in left]
    return sorted(found, key=lambda c: (c.created_at_us, c.commit_id), reverse=True)


def _others(repository: Repository, branch: Branch) -> list[Branch]:
    """All other branches; main and the parent first, as the most likely merge targets."""
    found = [b for b in all_branches(repository.main.current()).values() if b != branch]
    return sorted(found, key=lambda b: (b != MAIN_BRANCH, b.incarnation != branch.parent, b.name))


def _reachable(repository: Repository, branch: Branch) -> set[str]:
    """Every commit that the head of another branch descends from."""
    others = _others(repository, branch)
    parents = load_ancestry(repository, [*others, branch]).parents
    heads = (repository.manifest(other).current().head.commit_id for other in others)
    return {id for head in heads for id in distances(parents, head)}
