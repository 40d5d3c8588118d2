"""Maintenance and bulk work under a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from omnigraph.enforcement.guard import AccessGuard
from omnigraph.model.requests import (
    AnalysisRequest,
    CommitOptions,
    EmbedRequest,
    ExportRequest,
    StateRef,
    StreamRequest,
)
from omnigraph.policy.access import AccessScope, PolicyAction

if TYPE_CHECKING:
    from omnigraph.catalog.migrations.upgrade import UpgradeReport
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.ingest.load import Progress
    from omnigraph.local.bulk import LocalBulk
    from omnigraph.local.maintenance import LocalMaintenance
    from omnigraph.maintenance.backup import CopyReport
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.entity_purge import PurgeReport
    from omnigraph.maintenance.fsck import CheckReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import Optimized
    from omnigraph.maintenance.repair import Repaired
    from omnigraph.spark.analytics.analysis import Analysis
    from omnigraph.spark.embedding.backfill import EmbedResult
    from omnigraph.transaction.recovery.graph_recovery import PendingWrite, RecoveryReport


class GovernedMaintenance:
    """``MaintenanceBackend`` for one actor: what changes or copies files needs ``admin``."""

    def __init__(self, inner: LocalMaintenance, guard: AccessGuard) -> None:
        self._backend = inner
        self._guard = guard

    @property
    def recovered_at_open(self) -> RecoveryReport:
        self._guard.require(PolicyAction.READ)
        return self._backend.recovered_at_open

    @property
    def _inner(self) -> LocalMaintenance:
        """The backend, for those who may maintain the graph."""
        self._guard.require(PolicyAction.ADMIN)
        return self._backend

    def check(self, *, quick: bool) -> CheckReport:
        return self._inner.check(quick=quick)

    def upgrade(self, *, apply: bool) -> UpgradeReport:
        return self._inner.upgrade(apply=apply)

    def relocate(self) -> int:
        return self._inner.relocate()

    def indexes(self, branch: str) -> list[IndexReport]:
        self._guard.require(PolicyAction.READ, AccessScope(branch))
        return self._backend.indexes(branch)

    def build_indexes(self, branch: str, engine: str) -> list[IndexReport]:
        return self._inner.build_indexes(branch, engine)

    def drop_indexes(self, type_key: str, property: str | None, branch: str) -> list[IndexReport]:
        return self._inner.drop_indexes(type_key, property, branch)

    def optimize(self, branch: str, engine: str) -> list[Optimized]:
        return self._inner.optimize(branch, engine)

    def tend(self, branch: str, rows_written: Mapping[str, int]) -> list[str]:
        self._guard.require(PolicyAction.CHANGE, AccessScope(branch))  # it follows a write
        return self._backend.tend(branch, rows_written)

    def cleanup(
        self, keep: int | None, older_than: timedelta | None, *, confirm: bool
    ) -> CleanupReport:
        return self._inner.cleanup(keep, older_than, confirm=confirm)

    def purge(
        self, kind: str, type_name: str, id: str, *, confirm: bool, actor: str | None
    ) -> PurgeReport:
        author = self._guard.author(actor)
        return self._inner.purge(kind, type_name, id, confirm=confirm, actor=author)

    def hold(self, target: str) -> AbstractContextManager[SnapshotPins]:
        state = self._guard.state(PolicyAction.READ, StateRef(at=target))
        return self._backend.hold(str(state.at))

    def repair(
        self, branch: str, *, confirm: bool, force: bool, restore: bool, actor: str | None
    ) -> list[Repaired]:
        author = self._guard.author(actor)
        return self._inner.repair(
            branch, confirm=confirm, force=force, restore=restore, actor=author
        )

    def recover(self, *, set_aside: bool) -> RecoveryReport:
        return self._inner.recover(set_aside=set_aside)

    def pending_writes(self) -> list[PendingWrite]:
        return self._inner.pending_writes()

    def recoveries(self) -> list[dict[str, Any]]:
        return self._inner.recoveries()

    def backup(self, target: str) -> CopyReport:
        return self._inner.backup(target)

    def clone(self, target: str) -> CopyReport:
        return self._inner.clone(target)


class GovernedBulk:
    """``BulkBackend`` for one actor."""

    def __init__(self, inner: LocalBulk, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def analyze(
        self,
        request: AnalysisRequest,
        state: StateRef,
        progress: Callable[[Progress], None] | None,
    ) -> Analysis:
        types: list[str] | None = None
        if request.nodes is not None and request.edges is not None:
            types = [*request.nodes, *request.edges]
        fixed = self._guard.state(PolicyAction.READ, state, types)
        if fixed.at is None and not self._may_write(fixed):
            # The result of an analysis of a commit cannot be written back.
            branch = "main" if fixed.branch is None else fixed.branch
            fixed = StateRef(at=self._guard.states.snapshot(StateRef(branch)).commit_id)
        return self._inner.analyze(request, fixed, progress)

    def embed(
        self,
        request: EmbedRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None,
    ) -> EmbedResult:
        self._guard.state(PolicyAction.READ, StateRef(request.branch), request.types)
        allowed = self._guard.commit(commit, request.branch)
        return self._inner.embed(request, allowed, progress)

    def export(self, request: ExportRequest) -> dict[str, int]:
        self._guard.state(PolicyAction.EXPORT, request.state, request.types)
        return self._inner.export(request)

    def stream(
        self,
        frame: Any,
        split: str | Callable[[Any], Mapping[str, Any]],
        request: StreamRequest,
        commit: CommitOptions,
    ) -> Any:
        allowed = self._guard.commit(commit, request.branch)
        return self._inner.stream(frame, split, request, allowed)

    def _may_write(self, state: StateRef) -> bool:
        guard = self._guard
        branch = "main" if state.branch is None else state.branch
        scope = AccessScope(branch)
        decision = guard.evaluator.decide(guard.actor, PolicyAction.CHANGE, scope)
        return decision.allowed and not guard.denied_types(PolicyAction.CHANGE, StateRef(branch))
