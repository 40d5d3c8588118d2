"""The commit graph: ancestors of a commit, and the merge base of two commits.

A branch's manifest holds the commits it made, those it inherited and those that were merged into
it. The state of a merged commit is on the branch that made it, if that still exists. Commits of
deleted branches whose merges did not store them yet are known by id only: the walk ends there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked, skip_if_deleted
from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit

Parents = Mapping[str, tuple[str, ...]]
"""The parents of every commit that can be read, first parent first."""


@dataclass(frozen=True)
class Ancestry:
    """Commits by id, and the branches that have each commit."""

    commits: Mapping[str, Commit]
    holders: Mapping[str, Branch]
    """A branch that can show the state of a commit; commits of deleted branches have none."""
    carriers: Mapping[str, Branch]
    """A branch whose history has a commit, as its own or merged."""

    @cached_property
    def parents(self) -> Parents:
        return {id: parents_of(commit) for id, commit in self.commits.items()}

    def base(self, source: str, target: str) -> Commit | None:
        """The merge base of two commits; None when they have nothing in common."""
        versions = {id: self.commits[id].manifest_version or 0 for id in self.holders}
        found = merge_base(self.parents, source, target, versions)
        return None if found is None else self.commits[found]


def parents_of(commit: Commit) -> tuple[str, ...]:
    return tuple(parent for parent in (commit.parent, commit.merged_parent) if parent is not None)


def merge_base(
    parents: Parents, source: str, target: str, versions: Mapping[str, int]
) -> str | None:
    """The merge base: a lowest common ancestor that is in ``versions``.

    With an older ancestor, changes that both sides made since would be merged again. Criss-cross
    merges have several lowest common ancestors: the one with the smallest sum of distances to both
    commits is taken, then the one with the higher version, then the later id.
    """
    from_source, from_target = distances(parents, source), distances(parents, target)
    common = {id for id in from_source.keys() & from_target.keys() if id in versions}
    dominated: set[str] = set()
    waiting = [parent for id in common for parent in parents[id]]
    while waiting:
        id = waiting.pop()
        if id not in dominated:
            dominated.add(id)
            if id not in common:  # the parents of those that are were taken above
                waiting += parents.get(id, ())
    best = common - dominated
    if not best:
        return None
    return min(
        best,
        key=lambda id: (from_source[id] + from_target[id], -versions[id], _reversed(id)),
    )


def distances(parents: Parents, start: str) -> dict[str, int]:
    """The shortest distance to each ancestor, in steps; the start itself is at 0."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for parent in parents.get(at, ()):
            if parent not in found:
                found[parent] = found[at] + 1
                queue.append(parent)
    return found


def load_ancestry(repository: Repository, branches: Iterable[Branch]) -> Ancestry:
    """The commits of some branches, and of those whose commits were merged into them.

    Raises ``BranchNotFound`` when one of ``branches`` is deleted concurrently.
    """
    commits: dict[str, Commit] = {}
    holders: dict[str, Branch] = {}
    carriers: dict[str, Branch] = {}
    wanted = list(branches)
    others = [b for b in all_branches(repository.main.current()).values() if b not in wanted]

    def read(branch: Branch) -> None:
        timeline = repository.manifest(branch).current().timeline
        own = [at for id, at in timeline.positions.items() if id not in commits]
        merged = [
            at
            for id, at in timeline.merged_positions.items()
            if id not in commits and id not in timeline.positions
        ]
        commits.update({one.commit_id: one for one in timeline.read_commits(own, merged)})
        for id in timeline.positions:
            holders.setdefault(id, branch)
        for id in (*timeline.positions, *timeline.merged_positions):
            carriers.setdefault(id, branch)

    with deletion_checked(repository, *wanted):
        for branch in wanted:
            read(branch)
    while others:
        unknown = {p for c in commits.values() for p in parents_of(c) if p not in holders}
        if not unknown:
            break
        other = others.pop()
        with skip_if_deleted(repository, other):
            read(other)
    return Ancestry(commits, holders, carriers)


def _reversed(id: str) -> tuple[int, ...]:
    """A key that sorts later ids first."""
    return tuple(-ord(character) for character in id)
