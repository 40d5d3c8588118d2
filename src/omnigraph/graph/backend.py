"""The interface between the handle and its backends: one small protocol per capability.

``LocalBackend`` implements it in this process; a backend over HTTP implements the same. Arguments
are plain values and the request values of :mod:`omnigraph.model.requests`, results are the public
result types. An argument must not be an object of the local process, except for the callback of
progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from omnigraph.catalog.branches.registry import Branch
    from omnigraph.catalog.branches.tags import Tag
    from omnigraph.catalog.migrations.upgrade import UpgradeReport
    from omnigraph.catalog.rows import Commit
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.engine.engine import ReadOptions
    from omnigraph.engine.plan.explain import Explanation
    from omnigraph.engine.prepared_query import PreparedQuery
    from omnigraph.engine.result import Result
    from omnigraph.evolution.apply import SchemaResult
    from omnigraph.history.blame import Blame
    from omnigraph.history.entity import EntityHistory
    from omnigraph.history.feed import ChangesPage, FeedPage
    from omnigraph.ingest.load import LoadResult, Progress
    from omnigraph.lang.query.parameters import Parameters
    from omnigraph.lang.schema import AcceptedSchema, SchemaPlan
    from omnigraph.maintenance.backup import CopyReport
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.entity_purge import PurgeReport
    from omnigraph.maintenance.fsck import CheckReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import Optimized
    from omnigraph.maintenance.repair import Repaired
    from omnigraph.merge.merge import MergeResult
    from omnigraph.model.requests import (
        AnalysisRequest,
        ChangeFilter,
        CommitFilter,
        CommitOptions,
        EmbedRequest,
        ExportRequest,
        FeedPosition,
        LoadRequest,
        MergeDecisions,
        MergeRequest,
        PageSize,
        RestoreRequest,
        SchemaRequest,
        StateRef,
        StreamRequest,
    )
    from omnigraph.mutation.batch import Batch
    from omnigraph.mutation.mutation import MutationResult
    from omnigraph.snapshots.blobs import Blob
    from omnigraph.snapshots.diff import Diff
    from omnigraph.spark.analytics.analysis import Analysis
    from omnigraph.spark.embedding.backfill import EmbedResult
    from omnigraph.transaction.recovery.graph_recovery import PendingWrite, RecoveryReport


class ReadBackend(Protocol):
    """Reading one state, and comparing two."""

    def query(
        self,
        text: str,
        name: str | None,
        params: Parameters | None,
        state: StateRef,
        options: ReadOptions | None,
    ) -> Result: ...

    def prepare(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> PreparedQuery: ...

    def explain(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> Explanation: ...

    def snapshot(self, state: StateRef) -> SnapshotPins: ...

    def schema(self, state: StateRef) -> AcceptedSchema: ...

    def entity(self, type_key: str, id: str, state: StateRef) -> dict[str, Any]: ...

    def blob(
        self, entity: str, type_name: str, id: str, property: str, state: StateRef
    ) -> Blob: ...

    def export(self, state: StateRef, types: Sequence[str] | None) -> Iterator[bytes]: ...

    def diff(self, old: str, new: str, filter: ChangeFilter) -> Diff: ...


class WriteBackend(Protocol):
    """Write queries, batches and loads."""

    def write(self, branch: str, commit: CommitOptions) -> AbstractContextManager[Batch]: ...

    def mutate(
        self,
        query: str,
        name: str | None,
        params: Mapping[str, Any] | None,
        branch: str,
        commit: CommitOptions,
    ) -> MutationResult: ...

    def load(
        self,
        request: LoadRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None,
    ) -> LoadResult: ...


class MergeBackend(Protocol):
    """Merging, reverting and cherry-picking commits, restoring and resetting."""

    def merge(self, request: MergeRequest, commit: CommitOptions) -> MergeResult: ...

    def revert(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None: ...

    def cherry_pick(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None: ...

    def restore(self, request: RestoreRequest, commit: CommitOptions) -> Commit | None: ...

    def reset(self, target: str, branch: str, commit: CommitOptions) -> Commit | None: ...


class SchemaBackend(Protocol):
    """Changing the schema of a branch."""

    def plan(self, request: SchemaRequest) -> SchemaPlan: ...

    def apply(self, request: SchemaRequest, commit: CommitOptions) -> SchemaResult: ...


class BranchBackend(Protocol):
    """The branches of a graph."""

    def names(self) -> list[str]: ...

    def create(
        self, name: str, from_: str, actor: str | None, idempotency_key: str | None
    ) -> Branch: ...

    def delete(self, name: str, *, force: bool, idempotency_key: str | None) -> None: ...

    def protect(self, name: str, *, protected: bool, merges_only: bool) -> None: ...

    def is_protected(self, name: str) -> bool: ...


class TagBackend(Protocol):
    """The tags of a graph."""

    def all(self) -> list[Tag]: ...

    def create(
        self,
        name: str,
        target: str,
        *,
        force: bool,
        actor: str | None,
        message: str | None,
        idempotency_key: str | None,
    ) -> Tag: ...

    def delete(self, name: str, idempotency_key: str | None) -> Tag: ...


class HistoryBackend(Protocol):
    """Commits, changes, and histories of entities."""

    def log(self, branch: str, filter: CommitFilter, after: str | None) -> Iterator[Commit]: ...

    def ancestry(self, branch: str) -> Iterator[tuple[Commit, tuple[str, ...]]]: ...

    def commit(self, commit_id: str) -> Commit: ...

    def commit_changes(
        self, commit_id: str, filter: ChangeFilter, size: PageSize, page_token: str | None
    ) -> ChangesPage: ...

    def changes(
        self,
        branch: str,
        position: FeedPosition,
        filter: ChangeFilter,
        size: PageSize,
        commits_max: int | None,
    ) -> FeedPage: ...

    def baseline(self, branch: str, filter: ChangeFilter) -> Iterator[bytes]: ...

    def entity(self, type: str, id: str, branch: str) -> EntityHistory: ...

    def blame(self, type: str, id: str, branch: str) -> list[Blame]: ...


class MaintenanceBackend(Protocol):
    """Checks, indexes, compaction, cleanup, repair, copies and recovery."""

    @property
    def recovered_at_open(self) -> RecoveryReport: ...

    def check(self, *, quick: bool) -> CheckReport: ...

    def upgrade(self, *, apply: bool) -> UpgradeReport: ...

    def relocate(self) -> int: ...

    def indexes(self, branch: str) -> list[IndexReport]: ...

    def build_indexes(self, branch: str, engine: str) -> list[IndexReport]: ...

    def drop_indexes(
        self, type_key: str, property: str | None, branch: str
    ) -> list[IndexReport]: ...

    def optimize(self, branch: str, engine: str) -> list[Optimized]: ...

    def tend(self, branch: str, rows_written: Mapping[str, int]) -> list[str]: ...

    def cleanup(
        self, keep: int | None, older_than: timedelta | None, *, confirm: bool
    ) -> CleanupReport: ...

    def purge(
        self, kind: str, type_name: str, id: str, *, confirm: bool, actor: str | None
    ) -> PurgeReport: ...

    def hold(self, target: str) -> AbstractContextManager[SnapshotPins]: ...

    def repair(
        self, branch: str, *, confirm: bool, force: bool, restore: bool, actor: str | None
    ) -> list[Repaired]: ...

    def recover(self, *, set_aside: bool) -> RecoveryReport: ...

    def pending_writes(self) -> list[PendingWrite]: ...

    def recoveries(self) -> list[dict[str, Any]]: ...

    def backup(self, target: str) -> CopyReport: ...

    def clone(self, target: str) -> CopyReport: ...


class BulkBackend(Protocol):
    """Work on whole graphs, which runs on Spark when it is large."""

    def analyze(
        self,
        request: AnalysisRequest,
        state: StateRef,
        progress: Callable[[Progress], None] | None,
    ) -> Analysis: ...

    def embed(
        self,
        request: EmbedRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None,
    ) -> EmbedResult: ...

    def export(self, request: ExportRequest) -> dict[str, int]: ...

    def stream(
        self,
        frame: Any,
        split: str | Callable[[Any], Mapping[str, Any]],
        request: StreamRequest,
        commit: CommitOptions,
    ) -> Any: ...


class Backend(Protocol):
    """Everything that a ``Graph`` needs. Thread-safe, and can be pickled."""

    @property
    def uri(self) -> str: ...

    @property
    def reads(self) -> ReadBackend: ...

    @property
    def writes(self) -> WriteBackend: ...

    @property
    def merges(self) -> MergeBackend: ...

    @property
    def schemas(self) -> SchemaBackend: ...

    @property
    def branches(self) -> BranchBackend: ...

    @property
    def tags(self) -> TagBackend: ...

    @property
    def history(self) -> HistoryBackend: ...

    @property
    def maintenance(self) -> MaintenanceBackend: ...

    @property
    def bulk(self) -> BulkBackend: ...
