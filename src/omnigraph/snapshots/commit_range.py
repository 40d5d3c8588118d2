"""A stretch of a branch's history: its commits with the states before and after each.

What is needed of the manifest is fetched for the whole stretch at once. The state before a commit
is the one it was published on: what upkeep did since the parent is in both and does not show.
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
"""Commits whose rows are fetched together: a page rarely holds more."""

Schemas = Callable[[SnapshotPins], AcceptedSchema]


@dataclass(frozen=True, slots=True)
class Step:
    """One commit with what was before it and what it made."""

    commit: Commit
    before: State
    after: State


@dataclass(frozen=True, slots=True)
class Window:
    """Commits of a branch from one position to another, the last one included."""

    branch: Branch
    timeline: Timeline
    schemas: Schemas
    first: int
    commits: list[Commit]
    """From the parent of the first one on."""
    pins: Mapping[int, TablePin]

    @classmethod
    def read(
        cls, branch: Branch, timeline: Timeline, schemas: Schemas, first: int, last: int
    ) -> Window:
        """Positions count from the first commit of the graph, which has no step."""
        commits = timeline.read_commits(range(first - 1, last + 1))
        versions = timeline.commits.versions
        rows: list[int] = []
        for track in timeline.types.values():
            start = max(track.until(versions[first] - 1) - 1, 0)
            rows += track.rows[start : track.until(versions[last])]
        return cls(branch, timeline, schemas, first, commits, timeline.read_pins(rows))

    def step(self, position: int) -> Step:
        parent, commit = self.commits[position - self.first : position - self.first + 2]
        made = commit.manifest_version or 0
        return Step(commit, self._state(parent, made - 1), self._state(commit, made))

    def _state(self, commit: Commit, version: int) -> State:
        hash = commit.schema_hash or ""
        snapshot = SnapshotPins(self.branch, version, commit.commit_id, hash, {})
        schema = self.schemas(snapshot)
        # Only what the schema names: a type that was renamed or dropped has older rows, too.
        keys = sorted(owner.key for owner in schema.types())
        newest = {key: self.timeline.newest(key, version) for key in keys}
        pins = {key: self.pins[row] for key, row in newest.items() if row is not None}
        return State(replace(snapshot, pins=pins), schema)
