"""Maintenance: checks, indexes, compaction, cleanup, repair, copies, recovery.

Only a purge and a forced repair add commits and change the content of a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.migrations.upgrade import UpgradeReport, upgrade
from omnigraph.catalog.references import resolve
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import InvalidInput
from omnigraph.evolution.purge_dropped import finish_purges
from omnigraph.local.context import GraphContext
from omnigraph.maintenance.backup import CopyReport, backup, clone
from omnigraph.maintenance.cleanup import CleanupReport, cleanup
from omnigraph.maintenance.entity_purge import EntityPurge, PurgeReport, finish_entity_purges
from omnigraph.maintenance.fsck import CheckReport, check_graph
from omnigraph.maintenance.indexes import IndexReport, drop_indexes, list_indexes, update_indexes
from omnigraph.maintenance.optimize import Optimized, optimize
from omnigraph.maintenance.original.clone import clone_original
from omnigraph.maintenance.original.upgrade import check_original
from omnigraph.maintenance.purge_plan import PurgedEntity
from omnigraph.maintenance.repair import Repaired, repair
from omnigraph.maintenance.retention import RetentionPolicy
from omnigraph.model import outcome
from omnigraph.spark.maintenance import index_builder, rewriter
from omnigraph.storage.lance.files.relocation import relocate
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.reader_leases import reader_lease
from omnigraph.transaction.recovery.graph_recovery import (
    GraphRecovery,
    PendingWrite,
    RecoveryReport,
)


class LocalMaintenance:
    """The methods of ``graph.maintenance``.

    ``recovered_at_open`` reports the recovery that opening the graph has run.
    """

    def __init__(self, context: GraphContext, recovered_at_open: RecoveryReport) -> None:
        self._context = context
        self._repository = context.repository
        self._transaction = context.transaction
        self.recovered_at_open = recovered_at_open

    def check(self, *, quick: bool) -> CheckReport:
        return check_graph(self._repository, quick=quick)

    def upgrade(self, *, apply: bool) -> UpgradeReport:
        if not apply:
            is_original = self._repository.main.current().is_original
            return (check_original if is_original else upgrade)(self._repository)
        with self._context.writing():
            outcome.works_in_steps()
            return upgrade(self._repository, apply=True)

    def relocate(self) -> int:
        with self._context.writing():
            outcome.works_in_steps()
            return relocate(self._repository.objects)

    def indexes(self, branch: str) -> list[IndexReport]:
        with self._context.reading(branch) as found:
            return list_indexes(self._repository, found)

    def build_indexes(self, branch: str, engine: str) -> list[IndexReport]:
        with self._context.writing(), self._context.reading(branch) as found:
            build = index_builder(self._repository, engine)
            return update_indexes(self._repository, self._transaction, found, build)

    def drop_indexes(self, type_key: str, property: str | None, branch: str) -> list[IndexReport]:
        with self._context.writing(), self._context.reading(branch) as found:
            return drop_indexes(self._repository, self._transaction, found, type_key, property)

    def optimize(self, branch: str, engine: str) -> list[Optimized]:
        with self._context.writing(), self._context.reading(branch) as found:
            rewrite = rewriter(self._repository, engine)
            return optimize(self._repository, self._transaction, found, rewrite)

    def tend(self, branch: str, rows_written: Mapping[str, int]) -> list[str]:
        with self._context.writing(branch):
            return self._context.run_upkeep(branch, rows_written)

    def cleanup(
        self, keep: int | None, older_than: timedelta | None, *, confirm: bool
    ) -> CleanupReport:
        seconds = None if older_than is None else int(older_than.total_seconds())
        policy = RetentionPolicy(keep, seconds)
        if not confirm:
            return cleanup(self._repository, self._transaction, policy, confirm=False)
        with self._context.writing():
            outcome.works_in_steps()
            return cleanup(self._repository, self._transaction, policy, confirm=True)

    def purge(
        self, kind: str, type_name: str, id: str, *, confirm: bool, actor: str | None
    ) -> PurgeReport:
        if kind not in ("node", "edge"):
            raise InvalidInput(f"{kind!r} is neither node nor edge", remedy="Use node or edge.")
        purge = EntityPurge(
            self._repository, self._transaction, PurgedEntity(kind, type_name, id), actor
        )
        if not confirm:
            return purge.preview()
        with self._context.writing():
            outcome.works_in_steps()
            try:
                return purge.run()
            finally:
                self._context.reader.drop_caches()

    @contextmanager
    def hold(self, target: str) -> Iterator[SnapshotPins]:
        self._transaction.require_writable()
        with self._context.checking_deletion(target):
            pinned = resolve(self._repository, target)
        with reader_lease(self._repository, pinned) as snapshot:
            yield snapshot

    def repair(
        self, branch: str, *, confirm: bool, force: bool, restore: bool, actor: str | None
    ) -> list[Repaired]:
        if confirm:
            with self._context.writing():
                return self._repair(branch, True, force, restore, actor)
        return self._repair(branch, False, force, restore, actor)

    def _repair(
        self, branch: str, confirm: bool, force: bool, restore: bool, actor: str | None
    ) -> list[Repaired]:
        with self._context.reading(branch) as found:
            return repair(
                self._repository,
                self._transaction,
                found,
                confirm=confirm,
                force=force,
                restore=restore,
                actor=self._transaction.actor_of(actor),
            )

    def recover(self, *, set_aside: bool) -> RecoveryReport:
        with self._context.writing():
            outcome.works_in_steps()
            return recover(self._context, set_aside=set_aside)

    def pending_writes(self) -> list[PendingWrite]:
        return _operator(self._context).pending()

    def recoveries(self) -> list[dict[str, Any]]:
        return _operator(self._context).finished()

    def backup(self, target: str) -> CopyReport:
        with outcome.noting_outcome():
            outcome.works_in_steps()
            return backup(self._repository, parse_location(target))

    def clone(self, target: str) -> CopyReport:
        with outcome.noting_outcome():
            outcome.works_in_steps()
            copy = clone_original if self._repository.main.current().is_original else clone
            return copy(self._repository, parse_location(target))


def recover(context: GraphContext, *, set_aside: bool = False) -> RecoveryReport:
    """Resolve the unfinished writes and purges of dead processes, on every branch."""
    recovered = _operator(context).recover(set_aside=set_aside)
    finish_purges(context.repository, MAIN_BRANCH)
    finish_entity_purges(context.repository)
    return recovered


def _operator(context: GraphContext) -> GraphRecovery:
    return GraphRecovery(context.repository, context.transaction.recovery)
