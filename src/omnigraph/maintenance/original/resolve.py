"""Resolves the recovery records of an original, so that none is left when it is converted.

What is done is what the original does when it opens a graph for writing, in its own layout: tables
move back or their versions are published, with one commit by the actor of recoveries; then one
audit row; then the record is deleted. The id of the commit follows from the record, so a resolution
that was cut short is finished and never done twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from omnigraph.catalog.format import internal_version
from omnigraph.catalog.original.refs import read_refs
from omnigraph.catalog.original.rows import RECOVERY_ACTOR, commit_kind, read_rows
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Commit
from omnigraph.maintenance.original.layout_writer import (
    OriginalRow,
    append_audit,
    commit_rows,
    stage_publish,
    table_row,
    tombstone_row,
    version_row,
)
from omnigraph.maintenance.original.records import (
    FoundTable,
    Moved,
    RecordDecision,
    Resolution,
    Writer,
    WriteRecord,
    decide,
    read_records,
)
from omnigraph.maintenance.original.schema_files import settle, staged_files, was_published
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import stage_restore
from omnigraph.storage.lance.tables import PinnedTable, TableRef, operation_properties

_KINDS: Final = {
    Resolution.FORWARD: "RolledForward",
    Resolution.DONE: "RolledForward",
    Resolution.BACK: "RolledBack",
    Resolution.ORPHANED: "OrphanedBranchDiscarded",
}


class RecordResolver:
    """Decides and resolves the records of one original."""

    def __init__(self, repository: Repository) -> None:
        self._clock = repository.clock
        self._tables = repository.tables
        self._objects = repository.objects

    def preview(self) -> list[RecordDecision]:
        """What would be done about each record. Reads only."""
        return [self._decide(record) for record in read_records(self._objects)]

    def resolve(self) -> list[RecordDecision]:
        """Resolve every record in the order of operations, then settle staged schema files."""
        done = []
        for record in read_records(self._objects):
            done.append(self._decide(record))
            self._carry_out(done[-1])
        if staged_files(self._objects):
            main = self._manifest(MAIN)
            tables = read_rows(main).visible(main.ref.version)
            settle(self._objects, published=was_published(self._objects, tables))
        return done

    def _decide(self, record: WriteRecord) -> RecordDecision:
        live = {r.name for r in read_refs(self._objects, internal_version(self._manifest(MAIN)))}
        if record.branch not in (MAIN, *live):
            return RecordDecision(record, Resolution.ORPHANED)
        manifest = self._manifest(record.branch)
        found = decide(self._tables, record, read_rows(manifest), manifest.ref.version)
        if record.writer is not Writer.SCHEMA_APPLY or found.verdict is not Resolution.FORWARD:
            return found
        promotable = staged_files(self._objects) or self._is_published(found)
        return found if promotable else replace(found, verdict=Resolution.BACK)

    def _carry_out(self, decided: RecordDecision) -> None:
        record = decided.record
        if not self._is_published(decided):
            self._publish(decided, self._changes(decided))
        hit("recovery.after_publish")
        if record.writer is Writer.SCHEMA_APPLY:
            settle(self._objects, published=decided.verdict is not Resolution.BACK)
        append_audit(self._tables, self._audit(decided))
        hit("recovery.after_audit")
        self._objects.delete(record.path)
        hit("recovery.after_delete")

    def _is_published(self, decided: RecordDecision) -> bool:
        """Whether an earlier attempt got as far as the commit of the resolution."""
        commits = read_rows(self._manifest(_branch(decided))).commits
        return decided.record.commit_id(decided.verdict) in {c.commit_id for c in commits}

    def _manifest(self, branch: str) -> PinnedTable:
        return self._tables.open_newest(MANIFEST_PATH, None if branch == MAIN else branch)

    def _changes(self, decided: RecordDecision) -> list[OriginalRow]:
        """Move tables back, or find what is to be published; the rows that say so."""
        record = decided.record
        if decided.verdict is Resolution.BACK:
            moved = [table for table in decided.tables if table.moved is not Moved.NOT]
            return [self._version_row(t.plan.key, self._restore(record, t)) for t in moved]
        if decided.verdict is not Resolution.FORWARD:
            return []
        rows = [self._version_row(table.plan.key, table.newest) for table in decided.tables]
        known = read_rows(self._manifest(record.branch)).paths
        for key, (path, branch) in record.registrations.items():
            if key not in known:
                newest = self._tables.open_newest(path, branch).ref
                rows += [table_row(key, path), self._version_row(key, newest)]
        return [*rows, *(tombstone_row(key, v) for key, v in record.tombstones.items())]

    def _version_row(self, key: str, ref: TableRef) -> OriginalRow:
        return version_row(self._tables, key, ref, self._tables.open(ref).rows)

    def _restore(self, record: WriteRecord, table: FoundTable) -> TableRef:
        """Bring the published content back as the newest version."""
        newest = self._tables.open(table.newest)
        rows = self._tables.open(table.newest.at(table.published)).rows
        properties = operation_properties(record.operation_id, "rollback")
        staged = stage_restore(newest, table.published, rows, properties)
        hit("recovery.before_restore")
        landed = self._tables.commit(staged)
        hit("recovery.after_restore")
        return landed.ref

    def _publish(self, decided: RecordDecision, rows: list[OriginalRow]) -> None:
        record, branch = decided.record, _branch(decided)
        manifest = self._manifest(branch)
        head = read_rows(manifest).commits[-1]
        merges = record.writer is Writer.BRANCH_MERGE and decided.verdict is Resolution.FORWARD
        merged = record.merged_commit if merges else None
        commit = Commit(
            record.commit_id(decided.verdict),
            branch,
            commit_kind(head.commit_id, merged),
            self._clock.now_us(),
            parent=head.commit_id,
            merged_parent=merged,
            actor=RECOVERY_ACTOR,
            manifest_version=manifest.ref.version + 1,
        )
        lineage = commit_rows([commit], branch)
        staged = stage_publish(manifest, [*rows, *lineage], record.operation_id)
        hit("recovery.before_publish")
        self._tables.commit(staged)

    def _audit(self, decided: RecordDecision) -> Mapping[str, Any]:
        record = decided.record
        outcomes = [
            {
                "table_key": table.plan.key,
                "from_version": table.plan.expected,
                "to_version": _to_version(decided.verdict, table),
            }
            for table in decided.tables
            if decided.verdict is not Resolution.BACK or _was_moved(table)
        ]
        now = datetime.fromtimestamp(self._clock.now_us() / 1_000_000, tz=UTC)
        return {
            "graph_commit_id": record.commit_id(decided.verdict),
            "recovery_kind": _KINDS[decided.verdict],
            "recovery_for_actor": record.actor,
            "operation_id": record.operation_id,
            "sidecar_writer_kind": str(record.writer),
            "per_table_outcomes_json": json.dumps(outcomes),
            "created_at": now.replace(tzinfo=None),
        }


def _branch(decided: RecordDecision) -> str:
    """The branch that the commit of a resolution belongs to."""
    return MAIN if decided.verdict is Resolution.ORPHANED else decided.record.branch


def _was_moved(table: FoundTable) -> bool:
    """Whether a write moved the table; after its roll-back is published, its version tells."""
    return table.moved is not Moved.NOT or table.published > table.plan.expected


def _to_version(verdict: Resolution, table: FoundTable) -> int:
    if verdict is Resolution.BACK:
        return table.plan.expected
    return table.newest.version if verdict is Resolution.FORWARD else table.published
