"""The log of a branch: its commits newest first, filtered and paged, or all ancestors of its head.

``log`` follows first parents. ``reachable`` also follows merged branches. Commits of deleted
branches are kept by their merges; those merged before merges recorded them are known by id only,
and the traversal ends there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final

from omnigraph.catalog.branches.concurrent_deletion import skip_if_deleted
from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.timeline import Timeline
from omnigraph.catalog.references import parse_moment
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CommitNotFound, InvalidInput
from omnigraph.history.filters import require_known_types
from omnigraph.model.requests import CommitFilter
from omnigraph.snapshots.diff import DiffFilter

NEIGHBOURS: Final = 64
"""The number of commits that are read ahead: ancestors are requested next."""


def log(
    state: ManifestState,
    filter: CommitFilter,
    after: str | None = None,
) -> Iterator[Commit]:
    """The commits of a branch that match the filter, newest first.

    ``after`` is the last commit of the previous page.
    """
    timeline = state.timeline
    end = len(timeline.commits)
    if after is not None:
        if after not in timeline.positions:
            raise CommitNotFound(
                f"this branch has no commit {after!r}", details={"commit_id": after}
            )
        end = timeline.positions[after]
    names = frozenset(filter.types)
    require_known_types(state, DiffFilter(types=names))
    positions = range(end)[::-1]
    chosen = list(positions) if not names else _touching(timeline, names, positions)
    conditions = list(_conditions(filter))
    found = timeline.iterate_commits(chosen)
    return (commit for commit in found if all(holds(commit) for holds in conditions))


def _conditions(filter: CommitFilter) -> Iterator[Callable[[Commit], bool]]:
    """The conditions of a filter, except that on types."""
    if filter.actor is not None:
        # A commit that recovery has published also matches the actor that ran the recovery.
        yield lambda commit: filter.actor in (commit.actor, commit.recovered_by)
    if filter.since is not None:
        since = _time(filter.since)
        yield lambda commit: commit.created_at_us >= since
    if filter.until is not None:
        until = _time(filter.until)
        yield lambda commit: commit.created_at_us < until
    if filter.message is not None:
        part = filter.message.casefold()
        yield lambda commit: part in (commit.message or "").casefold()


def _touching(timeline: Timeline, names: frozenset[str], positions: range) -> list[int]:
    """The positions whose commits wrote to one of these types."""
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
    """All ancestors of the head of a branch, merged branches included, newest first.

    Each commit comes with the ids of its parents that can still be read.
    """
    lookup = _CommitLookup(repository, branch)
    seen: set[str] = set()
    waiting: list[tuple[int, str, Commit]] = []

    def visit(commit_id: str) -> bool:
        commit = lookup.find(commit_id)
        if commit is not None and commit_id not in seen:
            seen.add(commit_id)
            heapq.heappush(waiting, (-commit.created_at_us, commit_id, commit))
        return commit is not None

    visit(repository.manifest(branch).current().head.commit_id)
    while waiting:
        commit = heapq.heappop(waiting)[2]
        parents = (parent for parent in (commit.parent, commit.merged_parent) if parent)
        yield commit, tuple(parent for parent in parents if visit(parent))


class _CommitLookup:
    """Finds commits on any branch, starting with a given one."""

    def __init__(self, repository: Repository, branch: Branch) -> None:
        branches = all_branches(repository.main.current())
        others = (other for other in branches.values() if other != branch)
        self._repository = repository
        self._branches = [branch, *others]
        self._timelines: list[Timeline] = []
        self._known: dict[str, Commit] = {}

    def find(self, commit_id: str) -> Commit | None:
        if commit_id not in self._known:
            timeline = self._timeline_of(commit_id)
            if timeline is None:
                return None
            own = commit_id in timeline.positions
            at = (timeline.positions if own else timeline.merged_positions)[commit_id]
            near = range(max(0, at - NEIGHBOURS), at + 1)
            for commit in timeline.read_commits(near if own else (), () if own else near):
                self._known.setdefault(commit.commit_id, commit)
        return self._known[commit_id]

    def _timeline_of(self, commit_id: str) -> Timeline | None:
        """The timeline that has a commit. Branches are read one by one until it is found."""
        for timeline in self._timelines:
            if timeline.contains(commit_id):
                return timeline
        while self._branches:
            branch = self._branches.pop(0)
            with skip_if_deleted(self._repository, branch):
                timeline = self._repository.manifest(branch).current().timeline
                self._timelines.append(timeline)
                if timeline.contains(commit_id):
                    return timeline
        return None
