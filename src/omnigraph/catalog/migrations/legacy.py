"""Reads the commits of graphs before format version 4.

Commits were rows of ``_graph_commits.lance``, which had a physical branch for every branch of the
graph, and their actors rows of ``_graph_commit_actors.lance``, which was never branched. A dataset
that does not exist holds no commits. Any other failure to read it is an error: treated as "no
commits" it would lose the history of the graph. Nothing is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from omnigraph.catalog.history.timeline import Timeline, Track
from omnigraph.catalog.rows import MAIN, Commit, TablePin
from omnigraph.errors import CorruptData
from omnigraph.model.ids import encode_ulid
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.tables import TableRef, TableStore

COMMITS_PATH: Final = "_graph_commits.lance"
ACTORS_PATH: Final = "_graph_commit_actors.lance"
INERT_SINCE: Final = {
    "_graph_runs.lance": 3,
    "_graph_run_actors.lance": 3,
    COMMITS_PATH: 4,
    ACTORS_PATH: 4,
}
"""Datasets of older formats, and the version since which they are not read."""
UNRECORDED: Final = "what was there before commits were recorded"
_CREATED_AT: Final = "created_at"
_ULID_BYTES: Final = 16
_RANDOM_BYTES: Final = 10  # the bytes of an id that follow its time


@dataclass(frozen=True, slots=True)
class Lineage:
    """The commits of one branch, oldest first; the last one is its head."""

    branch: str
    commits: tuple[Commit, ...]

    @property
    def head_id(self) -> str:
        return self.commits[-1].commit_id


@dataclass(frozen=True, slots=True)
class RecordedTimeline(Timeline):
    """A timeline whose commits are not rows of the manifest."""

    recorded: Sequence[Commit] = ()

    def read_commits(self, positions: Sequence[int], merged: Sequence[int] = ()) -> list[Commit]:
        return [self.recorded[at] for at in positions]


def recorded_timeline(timeline: Timeline, lineage: Lineage) -> RecordedTimeline:
    """The timeline of a manifest that holds no commits, with those that were kept elsewhere."""
    commits = lineage.commits
    places = [(c.manifest_version or 0, at, c.commit_id) for at, c in enumerate(commits)]
    track = Track().extended(places)
    return RecordedTimeline(timeline.table, track, timeline.types, recorded=commits)


def unstamped_id(pins: Iterable[TablePin]) -> str:
    """The id of a graph without a stored one: derived from the incarnations of its types."""
    incarnations = sorted(f"{pin.type_id} {pin.incarnation}" for pin in pins)
    return encode_ulid(_digest("\n".join(incarnations), _ULID_BYTES))


def read_lineage(
    store: TableStore, manifest: TableRef, branch: str, schema_hash: str, graph_id: str
) -> Lineage:
    """The commits of a branch in the older format, up to this version of its manifest."""
    records = _rows(store, COMMITS_PATH, manifest.branch)
    actor_rows = _rows(store, ACTORS_PATH, None)
    actors = {row["graph_commit_id"]: row["actor_id"] for row in actor_rows}
    commits = [_commit(row, actors, schema_hash) for row in records]
    seen = [c for c in commits if (c.manifest_version or 0) <= manifest.version]
    if not seen:
        seen = [_unrecorded(branch, manifest, schema_hash, graph_id)]
    seen.sort(key=lambda c: (c.manifest_version or 0, c.created_at_us, c.commit_id))
    return Lineage(branch, tuple(seen))


def _rows(store: TableStore, path: str, ref: str | None) -> list[dict[str, Any]]:
    """All rows of a dataset; none when the store has no object of it."""
    try:
        rows = store.open_newest(path, ref).scan()
    except TableNotFound as missing:
        if not store.objects.list(path):
            return []
        raise CorruptData(
            f"{path} holds commits of this graph and cannot be read: {missing.message}",
            remedy=f"Restore {path}/ from a backup; nothing was changed.",
            details={"path": path},
        ) from missing
    at = rows.schema.get_field_index(_CREATED_AT)
    microseconds = rows[_CREATED_AT].cast(pa.timestamp("us")).cast(pa.int64())
    return list(rows.set_column(at, _CREATED_AT, microseconds).to_pylist())


def _commit(row: dict[str, Any], actors: dict[str, str], schema_hash: str) -> Commit:
    return Commit(
        commit_id=row["graph_commit_id"],
        branch=row["manifest_branch"] or MAIN,
        kind=_kind(row),
        created_at_us=row[_CREATED_AT],
        parent=row["parent_commit_id"],
        merged_parent=row["merged_parent_commit_id"],
        actor=actors.get(row["graph_commit_id"]),
        operation_id=row["graph_commit_id"],
        schema_hash=schema_hash,
        manifest_version=int(row["manifest_version"]),
    )


def _kind(row: dict[str, Any]) -> str:
    """Derived from the parents: the older form does not store the kind of a commit."""
    if row["parent_commit_id"] is None:
        return "init"
    return "write" if row["merged_parent_commit_id"] is None else "merge"


def _unrecorded(branch: str, manifest: TableRef, schema_hash: str, graph_id: str) -> Commit:
    """The one commit of a branch that recorded none. Deterministic: every process derives it."""
    text = f"{graph_id} {manifest.branch or MAIN} {UNRECORDED}"
    commit_id = encode_ulid(_digest(text, _RANDOM_BYTES))
    return Commit(
        commit_id=commit_id,
        branch=branch,
        kind="init",
        created_at_us=0,
        message=UNRECORDED,
        operation_id=commit_id,
        schema_hash=schema_hash,
        manifest_version=manifest.version,
    )


def _digest(text: str, length: int) -> int:
    """The first bytes of the SHA-256 of a text, as a number."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:length], "big")
