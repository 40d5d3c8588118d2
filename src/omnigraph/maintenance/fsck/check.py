"""Checks a whole graph, branch by branch; a table version that branches share is checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.catalog.branches.concurrent_deletion import is_live
from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import GraphMoved, OmnigraphError
from omnigraph.lang.schema import AcceptedSchema, EdgeType
from omnigraph.maintenance.fsck.findings import Damage, FsckFinding
from omnigraph.maintenance.fsck.lineage import (
    check_history,
    check_lineage,
    check_merges,
    check_records,
    check_registry,
    check_schema,
)
from omnigraph.maintenance.fsck.rows import check_ends, check_indexes, check_rows
from omnigraph.maintenance.fsck.tables import TableCheck
from omnigraph.storage.lance.files.table_files import Tables, group_by_table
from omnigraph.storage.lance.tables import PinnedTable, TableRef
from omnigraph.transaction.recovery.pending import PendingRecords


@dataclass(slots=True)
class CheckReport:
    """The number of checked branches, tables and rows, and all findings."""

    findings: list[FsckFinding] = field(default_factory=list)
    branches: int = 0
    tables: int = 0
    rows: int = 0

    @property
    def healthy(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "branches": self.branches,
            "tables": self.tables,
            "rows": self.rows,
            "findings": [finding.to_json() for finding in self.findings],
        }


def check_graph(repository: Repository, *, quick: bool = False) -> CheckReport:
    """Check everything; ``quick`` follows references and reads no rows."""
    tables, _ = group_by_table(repository.objects.list())
    report = CheckReport()
    main = repository.main.current()
    report.findings += check_registry(repository, main, tables)
    run = _GraphCheck(repository, report, tables, main, quick=quick)
    for branch in all_branches(main).values():
        known = len(report.findings)
        run.check(branch)
        if len(report.findings) > known and not is_live(repository, branch):
            del report.findings[known:]  # the branch was deleted concurrently
    return report


@dataclass(slots=True)
class _GraphCheck:
    """The state of a check across branches."""

    repository: Repository
    report: CheckReport
    tables: Tables
    main: ManifestState
    quick: bool
    seen: dict[TableRef, list[FsckFinding]] = field(default_factory=dict)
    merges: set[str] = field(default_factory=set)
    """Merges whose attribution was checked."""

    def check(self, branch: Branch) -> None:
        self.report.branches += 1
        repository = self.repository
        lease_s = repository.settings.limits.lease_s
        records = PendingRecords(repository.objects, repository.clock, lease_s)
        self.report.findings += check_records(records, branch)
        try:
            state = self.repository.manifest(branch).current()
            problems = list(check_lineage(branch, state))
            problems += check_history(branch, state, self.main, self.tables)
            problems += check_merges(self.repository, branch, state, self.merges)
            digests = _digests(state)
        except OmnigraphError as problem:
            moved = isinstance(problem, GraphMoved)
            damage = Damage.READS_ELSEWHERE if moved else Damage.MANIFEST_UNREADABLE
            self.report.findings.append(
                FsckFinding(branch.name, damage, branch.name, problem.message)
            )
            return
        self.report.findings += problems
        if any(problem.damage is Damage.HEAD_DANGLING for problem in problems):
            return  # without a head there is nothing to follow
        schema, problems = check_schema(branch, state)
        self.report.findings += problems
        opened: dict[str, PinnedTable] = {}
        for key, pin in state.pins.items():
            stored = self.tables.get(pin.ref.path, {})
            check = TableCheck(self.repository, branch, pin, stored, digests)
            found, table = self._table(check, records, schema)
            self.report.findings += found
            if table is not None:
                opened[key] = table
        if schema is not None and not self.quick:
            self.report.findings += self._ends(branch, state, schema, opened)

    def _table(
        self, check: TableCheck, records: PendingRecords, schema: AcceptedSchema | None
    ) -> tuple[list[FsckFinding], PinnedTable | None]:
        """Check one type; a version that another branch shares is read and reported once."""
        table, found = check.open()
        if table is None:
            return found, None
        found += check.drift(records)
        if check.pin.ref in self.seen:
            return found, None if self.seen[check.pin.ref] else table
        self.report.tables += 1
        self.report.rows += table.rows
        damaged = list(check.files(table))
        owner = None
        if schema is not None and check.pin.key in {kind.key for kind in schema.types()}:
            owner = schema.type(check.pin.key)
        if not damaged and not self.quick and owner is not None:
            damaged += check_rows(check, table, owner)
        unreadable = any(d.damage in _UNREADABLE for d in damaged)
        if not unreadable and not self.quick:
            damaged += check_indexes(check, table)
        self.seen[check.pin.ref] = damaged if unreadable else []
        return [*found, *damaged], None if unreadable else table

    def _ends(
        self,
        branch: Branch,
        state: ManifestState,
        schema: AcceptedSchema,
        opened: dict[str, PinnedTable],
    ) -> Iterator[FsckFinding]:
        nodes: dict[str, pa.Array] = {
            key: table.scan(["id"])["id"].combine_chunks()
            for key, table in opened.items()
            if key.startswith("node:")
        }
        for key, table in opened.items():
            if key.startswith("edge:") and key in {kind.key for kind in schema.types()}:
                owner = schema.type(key)
                assert isinstance(owner, EdgeType)
                check = TableCheck(self.repository, branch, state.pins[key], {}, {})
                yield from check_ends(check, table, owner, nodes)


_UNREADABLE = frozenset(
    {
        Damage.FILE_MISSING,
        Damage.FILE_SIZE,
        Damage.FILE_DIGEST,
        Damage.DELETIONS_DAMAGED,
        Damage.ROWS_UNREADABLE,
    }
)


def _digests(state: ManifestState) -> dict[str, int]:
    """All recorded digests of a branch, by file name."""
    rows = [row for track in state.timeline.types.values() for row in track.rows]
    pins = state.timeline.read_pins(rows) if rows else {}
    return {name: crc for pin in pins.values() for name, crc in (pin.digests or ())}
