"""The rows of the original's manifest, checked and typed.

The original keeps one row per table (``table``), one per published version of a table
(``table_version``), one per dropped table (``table_tombstone``), one per commit (``graph_commit``)
and one per branch (``graph_head``). Rows of another kind, or without what their kind needs, are
damage: nothing is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from omnigraph.catalog.original.layout import COLUMNS
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.errors import CorruptData
from omnigraph.storage.lance.row_versions import CREATED
from omnigraph.storage.lance.tables import PinnedTable, TableRef

HEAD_PREFIX: Final = "graph_head:"
RECOVERY_ACTOR: Final = "omnigraph:recovery"
"""The actor of the original's recovery commits, as of ours."""


class OriginalKind(StrEnum):
    TABLE = "table"
    VERSION = "table_version"
    TOMBSTONE = "table_tombstone"
    COMMIT = "graph_commit"
    HEAD = "graph_head"


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A version of a table, and the manifest version that published it."""

    key: str
    ref: TableRef
    rows: int
    published: int
    tag: str
    """Identifies the content of the version's file, if the original recorded it."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The end of a table: versions up to this one are not visible any more."""

    key: str
    version: int
    published: int


@dataclass(frozen=True, slots=True)
class OriginalRows:
    """All rows of one manifest, by kind."""

    paths: Mapping[str, str]
    versions: Sequence[PublishedVersion]
    tombstones: Sequence[Tombstone]
    commits: Sequence[Commit]
    heads: Mapping[str, str]
    """The head commit of each branch that has a head row, by branch."""

    def visible(self, version: int) -> dict[str, PublishedVersion]:
        """The newest version of each table as of a manifest version, without dropped tables."""
        newest: dict[str, PublishedVersion] = {}
        for found in self.versions:
            known = newest.get(found.key)
            if found.published <= version and (
                known is None or found.ref.version > known.ref.version
            ):
                newest[found.key] = found
        for tombstone in self.tombstones:
            ended = newest.get(tombstone.key)
            if ended is None or tombstone.published > version:
                continue
            if tombstone.version >= ended.ref.version:
                del newest[tombstone.key]
        return dict(sorted(newest.items()))


def read_rows(table: PinnedTable) -> OriginalRows:
    """All rows of a manifest of the original."""
    records: list[dict[str, Any]] = table.scan([*COLUMNS, CREATED]).to_pylist()
    by_kind: dict[OriginalKind, list[dict[str, Any]]] = {kind: [] for kind in OriginalKind}
    for record in records:
        try:
            by_kind[OriginalKind(record["object_type"])].append(record)
        except ValueError:
            kind = record["object_type"]
            raise _damaged(record, f"it is of the unknown kind {kind!r}") from None
    paths = {r["table_key"]: _given(r, "location") for r in by_kind[OriginalKind.TABLE]}
    versions = [_version(r, paths) for r in by_kind[OriginalKind.VERSION]]
    made = {found.published for found in versions}
    return OriginalRows(
        paths,
        sorted(versions, key=lambda v: (v.published, v.key, v.ref.version)),
        [
            Tombstone(r["table_key"], int(_given(r, "table_version")), int(r[CREATED]))
            for r in by_kind[OriginalKind.TOMBSTONE]
        ],
        sorted((_commit(r, made) for r in by_kind[OriginalKind.COMMIT]), key=commit_order),
        {
            r["object_id"].removeprefix(HEAD_PREFIX): str(_metadata(r).get("head_commit_id"))
            for r in by_kind[OriginalKind.HEAD]
        },
    )


def commit_order(commit: Commit) -> tuple[int, int, str]:
    """The order in which the original looks for the head: its newest commit is the last."""
    return commit.manifest_version or 0, commit.created_at_us, commit.commit_id


def commit_kind(commit_parent: str | None, merged_parent: str | None) -> str:
    """Derived from the parents: the original does not store the kind of a commit."""
    if commit_parent is None:
        return "init"
    return "write" if merged_parent is None else "merge"


def _version(record: Mapping[str, Any], paths: Mapping[str, str]) -> PublishedVersion:
    key = record["table_key"]
    if key not in paths:
        raise _damaged(record, f"no row says where the table {key!r} is")
    if not key.startswith(("node:", "edge:")):
        raise _damaged(record, f"{key!r} is neither a node type nor an edge type")
    data = _metadata(record)
    branch = record["table_branch"]
    ref = TableRef(
        paths[key], None if branch in (None, MAIN) else branch, int(_given(record, "table_version"))
    )
    tag = data.get("e_tag") or data.get("manifest_size") or ""
    return PublishedVersion(
        key, ref, int(_given(record, "row_count")), int(record[CREATED]), str(tag)
    )


def _commit(record: Mapping[str, Any], made: set[int]) -> Commit:
    """A commit row. It states its manifest version; concurrency may have moved it to a later one.

    Then the versions of tables that it published were made there, too. A row without any was moved
    from the commit datasets of older versions, long after its commit.
    """
    data = _metadata(record)
    stated, created = int(_given(record, "table_version")), int(record[CREATED])
    parent, merged = data.get("parent_commit_id"), data.get("merged_parent_commit_id")
    if not isinstance(data.get("created_at"), int):
        raise _damaged(record, "it has no time")
    return Commit(
        commit_id=record["object_id"],
        branch=record["table_branch"] or MAIN,
        kind=commit_kind(parent, merged),
        created_at_us=data["created_at"],
        parent=parent,
        merged_parent=merged,
        actor=data.get("actor_id"),
        operation_id=record["object_id"],
        manifest_version=created if created in made else stated,
    )


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    try:
        data = json.loads(_given(record, "metadata"))
    except ValueError:
        raise _damaged(record, "its metadata is not JSON") from None
    if not isinstance(data, dict):
        raise _damaged(record, "its metadata is not an object")
    return data


def _given(record: Mapping[str, Any], column: str) -> Any:
    value = record[column]
    if value is None:
        raise _damaged(record, f"it has no {column}")
    return value


def _damaged(record: Mapping[str, Any], problem: str) -> CorruptData:
    return CorruptData(
        f"the row {record['object_id']!r} of the manifest cannot be used: {problem}",
        remedy="Restore __manifest/ from a backup; nothing was changed.",
    )
