"""Reading history: commits, and what was true at an older manifest version.

History is read only when asked for, and from the newest manifest: a commit's manifest version is
the version in which its row was created, and the state at a version is the newest published
version of each type up to then. Nothing here needs an old version of ``__manifest`` to still
exist.
"""

from __future__ import annotations

from typing import Any

from omnigraph.errors import CommitNotFound, NotFound
from omnigraph.manifest.rows import Commit, Kind, Row, TablePin, history_schema, row_from_arrow
from omnigraph.manifest.state import ManifestState

_CREATED = "_row_created_at_version"


def find_commit(state: ManifestState, commit_id: str) -> Commit | None:
    """The commit with this id, if it is part of this branch's history."""
    if not commit_id.isalnum():
        return None  # not an id, and not to be spliced into a filter
    found = _read(state, f"object_id = 'graph_commit:{commit_id}'")
    return Commit.from_row(*found[0]) if found else None


def get_commit(state: ManifestState, commit_id: str) -> Commit:
    """The commit with this id, or a typed error."""
    commit = find_commit(state, commit_id)
    if commit is None:
        raise CommitNotFound(
            f"this branch has no commit {commit_id!r}", details={"commit_id": commit_id}
        )
    return commit


def list_commits(state: ManifestState, limit: int | None = None) -> list[Commit]:
    """The commits of this branch, newest first."""
    order = state.table.scan(
        ["object_id", _CREATED], f"object_type = '{Kind.GRAPH_COMMIT}'", with_row_address=True
    )
    newest = sorted(
        zip(order[_CREATED].to_pylist(), order["object_id"].to_pylist(), strict=True), reverse=True
    )
    if limit is None or limit >= len(newest):
        found = _read(state, f"object_type = '{Kind.GRAPH_COMMIT}'")
    else:
        wanted = ", ".join(f"'{object_id}'" for _, object_id in newest[:limit])
        found = _read(state, f"object_id IN ({wanted})") if wanted else []
    commits = [Commit.from_row(row, version) for row, version in found]
    return sorted(commits, key=_newest_first, reverse=True)


def pins_at(state: ManifestState, manifest_version: int) -> dict[str, TablePin]:
    """The pin of every type as of an older manifest version of this branch."""
    if manifest_version < 1 or manifest_version > state.version:
        raise NotFound(
            f"this branch has no manifest version {manifest_version} (newest: {state.version})",
            remedy="Use the graph_manifest_version of a commit from `omnigraph commit list`.",
        )
    condition = f"object_type = '{Kind.TABLE_VERSION}' AND {_CREATED} <= {manifest_version}"
    newest: dict[str, tuple[int, Row]] = {}
    for row, version in _read(state, condition):
        key = row.table_key or ""
        if key not in newest or version > newest[key][0]:
            newest[key] = (version, row)
    return {key: TablePin.from_row(newest[key][1]) for key in sorted(newest)}


def owned_tables(
    state: ManifestState, incarnation: str, since_version: int
) -> set[tuple[str, str]]:
    """The paths and physical branches of every copy of a table that a branch ever wrote to."""
    condition = f"object_type = '{Kind.TABLE_VERSION}' AND {_CREATED} > {since_version}"
    return {
        (row.location, row.table_branch)
        for row, _ in _read(state, condition)
        if row.metadata["owner"] == incarnation and row.location and row.table_branch
    }


def commit_at(state: ManifestState, manifest_version: int) -> Commit:
    """The newest commit at or before a manifest version."""
    condition = f"object_type = '{Kind.GRAPH_COMMIT}' AND {_CREATED} <= {manifest_version}"
    found = [Commit.from_row(row, version) for row, version in _read(state, condition)]
    if not found:
        raise CommitNotFound(f"this branch has no commit at manifest version {manifest_version}")
    return max(found, key=_newest_first)


def _read(state: ManifestState, condition: str) -> list[tuple[Row, int]]:
    columns = [*history_schema().names, _CREATED]
    records: list[dict[str, Any]] = state.table.scan(columns, condition).to_pylist()
    return [(row_from_arrow(record), record[_CREATED]) for record in records]


def _newest_first(commit: Commit) -> tuple[int, int, str]:
    return (commit.manifest_version or 0, commit.created_at_us, commit.commit_id)
