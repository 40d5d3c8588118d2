"""Reads the manifest of a branch of an original, at any of its internal versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.format import LINEAGE_VERSION, internal_version, require_stable_row_ids
from omnigraph.catalog.migrations.legacy import read_lineage
from omnigraph.catalog.original.layout import check_columns
from omnigraph.catalog.original.refs import OriginalRef, read_refs
from omnigraph.catalog.original.rows import OriginalRows, commit_order, read_rows
from omnigraph.catalog.original.schema import read_schema
from omnigraph.catalog.original.state import OriginalState, TableHistory
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Commit, Head, Row
from omnigraph.catalog.state import Stored
from omnigraph.errors import CorruptData
from omnigraph.storage.lance.tables import PinnedTable, TableStore

NO_ADDRESS: Final = 0
"""The rows of an original's state are stored nowhere, and are never replaced."""


class OriginalReader:
    """Reads the manifests of one original. Nothing is written, nor is a branch relocated."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self._schemas: dict[str, Row] = {}

    def load(self, table: PinnedTable, branch: str) -> OriginalState:
        """The state of a branch at this version of its manifest."""
        uri = self._tables.location.uri
        self._tables.rebases = True
        check_columns(table, uri)
        rows = read_rows(table)
        commits = self.commits(table, branch, rows)
        schema = read_schema(self._tables.objects, commits[0].commit_id)
        history = TableHistory(self._tables, rows, schema, self._schemas)
        current = self._current(table, branch, history, commits)
        return OriginalState(
            table,
            {row.object_id: Stored(row, NO_ADDRESS) for row in current},
            {},
            tables=history,
            commits=tuple(commits),
        )

    def commits(
        self, table: PinnedTable, branch: str, rows: OriginalRows | None = None
    ) -> list[Commit]:
        """The commits of a branch, wherever its version keeps them; never none."""
        self._tables.rebases = True
        rows = read_rows(table) if rows is None else rows
        commits = list(rows.commits)
        if not commits and internal_version(table) < LINEAGE_VERSION:
            found = read_lineage(self._tables, table.ref, branch, "", "")
            commits = sorted(
                (replace(c, schema_hash=None) for c in found.commits), key=commit_order
            )
        if not commits:
            raise CorruptData(f"the manifest of branch {branch!r} has no commit")
        known = {commit.commit_id for commit in commits}
        lost = [f"{name} ({head})" for name, head in rows.heads.items() if head not in known]
        if lost:
            raise CorruptData(f"the manifest names heads that it has no commits of: {lost[0]}")
        return commits

    def _current(
        self, table: PinnedTable, branch: str, history: TableHistory, commits: list[Commit]
    ) -> list[Row]:
        pins = history.pins_at(table.ref.version)
        uri = self._tables.location.uri
        missing = {t.key for t in history.schema.accepted.types()} ^ pins.keys()
        if missing and branch == MAIN:
            names = ", ".join(sorted(missing))
            raise CorruptData(
                f"schema and manifest of {uri} do not have the same types: {names}",
                remedy="If a schema change was interrupted, open the graph once with the program "
                "that made it; otherwise restore it from a backup. Nothing was changed.",
            )
        for pin in pins.values():
            require_stable_row_ids(self._tables.open(pin.ref), uri)
        head = Head(commits[-1].commit_id, history.schema_hash(table.ref.version), branch)
        found = [*(pin.to_row() for pin in pins.values()), head.to_row()]
        if table.ref.branch is None:
            refs = read_refs(self._tables.objects, internal_version(table))
            found += [self._branch(ref, commits).to_row() for ref in refs]
        return found

    def _branch(self, ref: OriginalRef, main_commits: list[Commit]) -> Branch:
        """A branch whose incarnation is its name: the original has no other."""
        commits = main_commits
        if ref.parent is not None:
            parent = self._tables.open_newest(MANIFEST_PATH, ref.parent)
            commits = self.commits(parent, ref.parent)
        before = [c for c in commits if (c.manifest_version or 0) <= ref.parent_version]
        return Branch(
            ref.name,
            ref.name,
            ref.parent or MAIN,
            before[-1].commit_id if before else None,
            ref.parent_version,
        )
