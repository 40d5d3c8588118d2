"""Graphs as older versions of the format left them, made from graphs of today.

``aged`` takes a graph back to version 1, 2 or 3: what later versions added to the manifest of every
branch goes away, and the commits move to the datasets that kept them then. A graph for version 1
must have been made inside ``without_primary_key``, because a primary key can never be taken back.
Only for tests: nothing here is atomic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from unittest import mock

import pyarrow as pa
from lance import LanceOperation, Transaction

from omnigraph.catalog import create
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.format import FORMAT_VERSION_KEY, GRAPH_ID_KEY, INTERNAL_VERSION_KEY
from omnigraph.catalog.history.commits import list_commits
from omnigraph.catalog.migrations.legacy import ACTORS_PATH, COMMITS_PATH
from omnigraph.catalog.migrations.run_refs import PREFIX
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Commit, RowKind, manifest_schema
from omnigraph.storage.lance.staging.metadata import stage_schema_metadata
from omnigraph.storage.lance.staging.rows import write_rows
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, TableRef
from omnigraph.storage.locations import parse_location

STALE_RUNS: Final = (f"{PREFIX}01", f"{PREFIX}02")
_OFFSETS: Final = 0xFFFF_FFFF


@contextmanager
def without_primary_key() -> Iterator[None]:
    """Graphs that are created inside have a manifest like that of version 1."""

    def bare(metadata: dict[str, str] | None = None) -> pa.Schema:
        schema = manifest_schema(metadata)
        return schema.set(0, schema.field("object_id").with_metadata({}))

    with mock.patch.object(create, "manifest_schema", bare):
        yield


def aged(
    uri: str, version: int, *, legacy: bool = True, restated: bool = False
) -> dict[str, list[Commit]]:
    """Take a graph back to a version; returns the commits of every branch, oldest first.

    Without ``legacy`` the commits are lost: the graph of a program that recorded none. ``restated``
    says that the last commit of each branch was made in the version in which the branch was taken
    back: the only one that looks as every version did then.
    """
    repository = Repository.open(parse_location(uri))
    branches = list(all_branches(repository.main.current()).values())
    told = {b.name: list_commits(repository.manifest(b).current())[::-1] for b in branches}
    for branch in branches:
        version_now = _aged(repository, branch, version)
        if restated:
            told[branch.name][-1] = replace(told[branch.name][-1], manifest_version=version_now)
    if legacy:
        _record(repository, branches, told)
    if version < 3:
        main = repository.tables.open_newest(MANIFEST_PATH)
        for name in STALE_RUNS:
            repository.tables.fork(main.ref, name)
    return told


def _aged(repository: Repository, branch: Branch, version: int) -> int:
    """Take one branch back; returns the version of its manifest that this made."""
    store = repository.tables
    table = store.commit(_without_lineage(store.open_newest(MANIFEST_PATH, branch.ref)))
    stamp: dict[str, str | None] = {INTERNAL_VERSION_KEY: str(version)}
    if version == 1:
        stamp = dict.fromkeys((INTERNAL_VERSION_KEY, FORMAT_VERSION_KEY, GRAPH_ID_KEY))
    return store.commit(stage_schema_metadata(table, stamp, {})).ref.version


def _without_lineage(table: PinnedTable) -> StagedWrite:
    """The manifest without its commits and its head."""
    kinds = f"object_type in ('{RowKind.GRAPH_COMMIT}', '{RowKind.GRAPH_HEAD}')"
    gone: dict[int, list[int]] = {}
    for address in table.scan(["object_id"], kinds, with_row_address=True)["_rowaddr"].to_pylist():
        gone.setdefault(address >> 32, []).append(address & _OFFSETS)
    left, removed = [], []
    for fragment_id, offsets in gone.items():
        rest = table.dataset.get_fragment(fragment_id).delete_rows(offsets)
        removed += [fragment_id] if rest is None else []
        left += [] if rest is None else [rest]
    operation = LanceOperation.Delete(left, removed, kinds)
    return StagedWrite(table.ref, Transaction(table.ref.version, operation), "delete", 0)


def _record(
    repository: Repository, branches: list[Branch], commits: dict[str, list[Commit]]
) -> None:
    """Keep the commits as a program of version 3 kept them."""
    store = repository.tables
    everyone = {c.commit_id: c for chain in commits.values() for c in chain}
    store.create(ACTORS_PATH, _actor_schema(), {}, _actors(list(everyone.values())))
    root = store.create(COMMITS_PATH, _commit_schema(), {}, _commits(commits[MAIN]))
    for branch in branches:
        if branch != MAIN_BRANCH and branch.ref is not None:
            fork = store.open(
                store.fork(TableRef(COMMITS_PATH, None, root.ref.version), branch.ref)
            )
            store.commit(_replaced(fork, _commits(commits[branch.name])))


def _replaced(table: PinnedTable, rows: pa.Table) -> StagedWrite:
    operation = LanceOperation.Overwrite(rows.schema, write_rows(table, rows))
    return StagedWrite(table.ref, Transaction(table.ref.version, operation), "overwrite", 0)


def _commit_schema() -> pa.Schema:
    return pa.schema(
        [
            pa.field("graph_commit_id", pa.string(), nullable=False),
            pa.field("manifest_branch", pa.string()),
            pa.field("manifest_version", pa.uint64(), nullable=False),
            pa.field("parent_commit_id", pa.string()),
            pa.field("merged_parent_commit_id", pa.string()),
            pa.field("created_at", pa.timestamp("us"), nullable=False),
        ]
    )


def _commits(commits: list[Commit]) -> pa.Table:
    rows = [
        {
            "graph_commit_id": c.commit_id,
            "manifest_branch": None if c.branch == MAIN else c.branch,
            "manifest_version": c.manifest_version,
            "parent_commit_id": c.parent,
            "merged_parent_commit_id": c.merged_parent,
            "created_at": c.created_at_us,
        }
        for c in commits
    ]
    return pa.Table.from_pylist(rows, schema=_commit_schema())


def _actor_schema() -> pa.Schema:
    return pa.schema(
        [
            pa.field("graph_commit_id", pa.string(), nullable=False),
            pa.field("actor_id", pa.string(), nullable=False),
            pa.field("created_at", pa.timestamp("us"), nullable=False),
        ]
    )


def _actors(commits: list[Commit]) -> pa.Table:
    rows = [
        {"graph_commit_id": c.commit_id, "actor_id": c.actor, "created_at": c.created_at_us}
        for c in commits
        if c.actor is not None
    ]
    return pa.Table.from_pylist(rows, schema=_actor_schema())
