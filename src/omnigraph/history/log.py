"""The log of a branch: its commits newest first, filtered and in pages; or all that led to it.

``log`` follows the branch itself. ``reachable`` also follows what was merged into it, for people
who look at the shape of a history. Commits of deleted branches stay, except for those that were
merged before merges kept them: these are known by their ids only and end the walk there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from omnigraph.catalog.branches.deleted import skipped_if_deleted
from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.timeline import Timeline
from omnigraph.catalog.references import parse_moment
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CommitNotFound, InvalidInput
from omnigraph.history.filters import require_known_types
from omnigraph.snapshots.diff import DiffFilter

NEIGHBOURS: Final = 64
"""Commits fetched with one that is asked for: a walk soon asks for those before it."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which commits to show. Everything that is given must hold."""

    actor: str | None = None
    since: str | None = None
    until: str | None = None
    """Times in ISO 8601; ``since`` is included, ``until`` is not."""
    types: frozenset[str] = frozenset()
    """Names of types, one of which the commit must have written to."""
    message: str | None = None
    """A part of the message, in letters of any case."""
    where: Callable[[Commit], bool] | None = None

    def conditions(self) -> list[Callable[[Commit], bool]]:
        found: list[Callable[[Commit], bool]] = []
        if self.actor is not None:
            # Whoever finished a write that its owner could not finish is an actor of it, too.
            found.append(lambda commit: self.actor in (commit.actor, commit.recovered_by))
        if self.since is not None:
            since = _time(self.since)
            found.append(lambda commit: commit.created_at_us >= since)
        if self.until is not None:
            until = _time(self.until)
            found.append(lambda commit: commit.created_at_us < until)
        if self.message is not None:
            part = self.message.casefold()
            found.append(lambda commit: part in (commit.message or "").casefold())
        if self.where is not None:
            found.append(self.where)
        return found


def log(
    state: ManifestState,
    filter: LogFilter,
    after: str | None = None,
) -> Iterator[Commit]:
    """The commits of a branch that the filter wants, newest first.

    ``after`` is the last commit of the page before.
    """
    timeline = state.timeline
    end = len(timeline.commits)
    if after is not None:
        if after not in timeline.places:
            raise CommitNotFound(
                f"this branch has no commit {after!r}", details={"commit_id": after}
            )
        end = timeline.places[after]
    require_known_types(state, DiffFilter(types=filter.types))
    positions = range(end)[::-1]
    chosen = list(positions) if not filter.types else _touching(timeline, filter.types, positions)
    conditions = filter.conditions()
    found = timeline.iterate_commits(chosen)
    return (commit for commit in found if all(holds(commit) for holds in conditions))


def _touching(timeline: Timeline, names: frozenset[str], positions: range) -> list[int]:
    """Of some positions those whose commits wrote to one of these types."""
    versions = {
        version
        for key, track in timeline.types.items()
        if key.partition(":")[2] in names
        for version in track.versions
    }
    return [at for at in positions if timeline.commits.versions[at] in versions]


def _time(text: str) -> int:
    found = parse_moment(text)
    if found is None:
        raise InvalidInput(
            f"{text!r} is not a time", remedy="Write it like 2026-05-01T12:00:00Z (UTC)."
        )
    return found


def reachable(repository: Repository, branch: Branch) -> Iterator[tuple[Commit, tuple[str, ...]]]:
    """Everything that led to the head of a branch, merged branches included, newest first.

    With each commit come the ids of those of its parents that can still be read.
    """
    holders = _Holders(repository, branch)
    seen: set[str] = set()
    waiting: list[tuple[int, str, Commit]] = []

    def meet(commit_id: str) -> bool:
        commit = holders.find(commit_id)
        if commit is not None and commit_id not in seen:
            seen.add(commit_id)
            heapq.heappush(waiting, (-commit.created_at_us, commit_id, commit))
        return commit is not None

    meet(repository.manifest(branch).current().head.commit_id)
    while waiting:
        commit = heapq.heappop(waiting)[2]
        parents = (parent for parent in (commit.parent, commit.merged_parent) if parent)
        yield commit, tuple(parent for parent in parents if meet(parent))


class _Holders:
    """Finds commits on whichever branch holds them, this one first."""

    def __init__(self, repository: Repository, branch: Branch) -> None:
        branches = all_branches(repository.main.current())
        others = (other for other in branches.values() if other != branch)
        self._repository = repository
        self._branches = [branch, *others]
        self._timelines: list[Timeline] = []
        self._known: dict[str, Commit] = {}

    def find(self, commit_id: str) -> Commit | None:
        if commit_id not in self._known:
            timeline = self._holder(commit_id)
            if timeline is None:
                return None
            own = commit_id in timeline.places
            at = (timeline.places if own else timeline.merged_places)[commit_id]
            read = timeline.read_commits if own else timeline.read_merged
            for commit in read(range(max(0, at - NEIGHBOURS), at + 1)):
                self._known.setdefault(commit.commit_id, commit)
        return self._known[commit_id]

    def _holder(self, commit_id: str) -> Timeline | None:
        """Histories are read one after the other, and only until the commit is found."""
        for timeline in self._timelines:
            if timeline.knows(commit_id):
                return timeline
        while self._branches:
            branch = self._branches.pop(0)
            with skipped_if_deleted(self._repository, branch):
                timeline = self._repository.manifest(branch).current().timeline
                self._timelines.append(timeline)
                if timeline.knows(commit_id):
                    return timeline
        return None
