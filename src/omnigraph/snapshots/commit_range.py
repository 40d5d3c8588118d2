"""A range of commits of a branch, with the snapshots before and after each commit.

Manifest rows are read for the whole range at once. The snapshot before a commit is the one it was
published on: maintenance since the parent commit is in both and does not show as a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.timeline import Timeline
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.snapshots.entity_delta import State

WINDOW_COMMITS: Final = 32
"""Commits whose manifest rows are read together: enough for most pages."""

Schemas = Callable[[SnapshotPins], AcceptedSchema]


@dataclass(frozen=True, slots=True)
class CommitTransition:
    """One commit with the snapshots before and after it."""

    commit: Commit
    before: State
    after: State


@dataclass(frozen=True, slots=True)
class CommitWindow:
    """The commits of a branch from one position to another, both included."""

    branch: Branch
    timeline: Timeline
    schemas: Schemas
    first: int
    commits: list[Commit]
    """Starts with the parent of the first commit."""
    pins: Mapping[int, TablePin]

    @classmethod
    def read(
        cls, branch: Branch, timeline: Timeline, schemas: Schemas, first: int, last: int
    ) -> CommitWindow:
        """Read a range. Positions count from the first commit of the graph, which has no parent."""
        commits = timeline.read_commits(range(first - 1, last + 1))
        return cls.of(branch, timeline, schemas, first, commits)

    @classmethod
    def of(
        cls,
        branch: Branch,
        timeline: Timeline,
        schemas: Schemas,
        first: int,
        commits: list[Commit],
    ) -> CommitWindow:
        """The range of these commits; the first of them is the parent of the one at ``first``."""
        versions = timeline.commits.versions
        last = first + len(commits) - 2
        rows: list[int] = []
        for track in timeline.types.values():
            start = max(track.until(versions[first] - 1) - 1, 0)
            rows += track.rows[start : track.until(versions[last])]
        return cls(branch, timeline, schemas, first, commits, timeline.read_pins(rows))

    def transition(self, position: int) -> CommitTransition:
        parent, commit = self.commits[position - self.first : position - self.first + 2]
        made = commit.manifest_version or 0
        return CommitTransition(commit, self._state(parent, made - 1), self._state(commit, made))

    def _state(self, commit: Commit, version: int) -> State:
        hash = commit.schema_hash or ""
        snapshot = SnapshotPins(self.branch, version, commit.commit_id, hash, {})
        schema = self.schemas(snapshot)
        # Only types of the schema: renamed and dropped types still have older rows.
        keys = sorted(owner.key for owner in schema.types())
        newest = {key: self.timeline.newest(key, version) for key in keys}
        pins = {key: self.pins[row] for key, row in newest.items() if row is not None}
        return State(replace(snapshot, pins=pins), schema)
