"""Reads commits, and the pins of an older manifest version.

History is read on demand, and from the newest manifest: a commit's manifest version is
the version in which its row was created, and the state at a version is the newest published
version of each type up to then. Old versions of ``__manifest`` need not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from omnigraph.catalog.rows import Commit, Row, RowKind, TablePin, history_schema, row_from_arrow
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CommitNotFound, NotFound
from omnigraph.storage.lance.row_versions import CREATED


def find_commit(state: ManifestState, commit_id: str) -> Commit | None:
    """The commit with this id, if it is part of this branch's history."""
    at = state.timeline.positions.get(commit_id)
    return None if at is None else state.timeline.read_commits([at])[0]


def get_commit(state: ManifestState, commit_id: str) -> Commit:
    """The commit with this id, or a typed error."""
    commit = find_commit(state, commit_id)
    if commit is None:
        raise CommitNotFound(
            f"this branch has no commit {commit_id!r}", details={"commit_id": commit_id}
        )
    return commit


def find_merged(state: ManifestState, commit_id: str) -> Commit | None:
    """The commit with this id, if it came into this branch with a merge."""
    at = state.timeline.merged_positions.get(commit_id)
    return None if at is None else state.timeline.read_commits((), [at])[0]


def list_commits(state: ManifestState, limit: int | None = None) -> list[Commit]:
    """The commits of this branch, newest first."""
    return list(islice(iterate_commits(state), limit))


def iterate_commits(state: ManifestState) -> Iterator[Commit]:
    """The commits of this branch, newest first, read lazily."""
    return state.timeline.iterate_commits(range(len(state.timeline.commits))[::-1])


def pins_at(state: ManifestState, manifest_version: int) -> dict[str, TablePin]:
    """The pin of every type as of an older manifest version of this branch."""
    if manifest_version < 1 or manifest_version > state.version:
        raise NotFound(
            f"this branch has no manifest version {manifest_version} (newest: {state.version})",
            remedy="Use the graph_manifest_version of a commit from `omnigraph commit list`.",
        )
    return state.timeline.pins_at(manifest_version)


def owned_tables(
    state: ManifestState, incarnation: str, since_version: int
) -> set[tuple[str, str]]:
    """The paths and physical branches of every copy of a table that a branch ever wrote to."""
    condition = f"object_type = '{RowKind.TABLE_VERSION}' AND {CREATED} > {since_version}"
    return {
        (row.location, row.table_branch)
        for row, _ in _read(state, condition)
        if row.metadata["owner"] == incarnation and row.location and row.table_branch
    }


def commit_at(state: ManifestState, manifest_version: int) -> Commit:
    """The newest commit at or before a manifest version."""
    count = state.timeline.commits.until(manifest_version)
    if not count:
        raise CommitNotFound(f"this branch has no commit at manifest version {manifest_version}")
    return state.timeline.read_commits([count - 1])[0]


def _read(state: ManifestState, condition: str) -> list[tuple[Row, int]]:
    columns = [*history_schema().names, CREATED]
    records: list[dict[str, Any]] = state.table.scan(columns, condition).to_pylist()
    return [(row_from_arrow(record), record[CREATED]) for record in records]
