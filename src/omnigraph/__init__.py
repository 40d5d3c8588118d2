"""Omnigraph: a graph lakehouse in Python.

A typed property graph whose every node and edge type is a Lance dataset, versioned as one thing.
Everything public is named here; every other module is private, except ``omnigraph.errors`` and, for
Spark, ``omnigraph.spark.session`` and ``omnigraph.spark.source``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph import errors

if TYPE_CHECKING:
    from omnigraph.catalog.branches.registry import Branch
    from omnigraph.catalog.branches.tags import Tag
    from omnigraph.catalog.migrations.upgrade import (
        BranchUpgrade,
        Conversion,
        ResolvedRecord,
        UpgradeReport,
    )
    from omnigraph.catalog.rows import Commit, TablePin
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.engine.engine import ReadOptions
    from omnigraph.engine.limits import Limits
    from omnigraph.engine.plan.explain import Explanation
    from omnigraph.engine.prepared_query import PreparedQuery
    from omnigraph.engine.result import Result
    from omnigraph.evolution.apply import SchemaResult
    from omnigraph.graph.branches import Branches
    from omnigraph.graph.connect import init, open, upgrade
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.history import History
    from omnigraph.graph.maintenance import Maintenance
    from omnigraph.graph.spark import SparkJobs
    from omnigraph.graph.tags import Tags
    from omnigraph.graph.views import BranchView, SnapshotView
    from omnigraph.history.blame import Blame, MergedChange
    from omnigraph.history.commit_changes import ChangeBlock
    from omnigraph.history.entity import EntityEvent, EntityHistory, HistoryPage
    from omnigraph.history.feed import ChangesPage, FeedPage
    from omnigraph.ingest.load import LoadMode, LoadResult, LoadSource, Progress
    from omnigraph.ingest.sources import LoadFormat
    from omnigraph.lang.query.parameters import Parameters
    from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, SchemaPlan, SchemaStep
    from omnigraph.lang.syntax.diagnostics import SourceError
    from omnigraph.maintenance.backup import CopyReport
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.entity_purge import PurgeReport
    from omnigraph.maintenance.fsck import CheckReport, FsckFinding
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import Optimized
    from omnigraph.maintenance.repair import Repaired
    from omnigraph.merge.conflicts import MergeConflict
    from omnigraph.merge.merge import MergeOutcome, MergeResult
    from omnigraph.merge.three_way import MergeLevel, MergeStrategy
    from omnigraph.mutation.batch import Batch
    from omnigraph.mutation.mutation import MutationResult
    from omnigraph.settings import (
        CacheSettings,
        CliSettings,
        Durability,
        EmbedSettings,
        LimitSettings,
        ServerSettings,
        Settings,
        SparkSettings,
        StorageSettings,
    )
    from omnigraph.snapshots.blobs import Blob, BlobSelector
    from omnigraph.snapshots.diff import Diff, DiffPage, DiffStats, EntityChange
    from omnigraph.snapshots.schema_changes import SchemaDifference
    from omnigraph.spark.analytics.analysis import Analysis
    from omnigraph.spark.embedding.backfill import EmbedResult
    from omnigraph.transaction.recovery.graph_recovery import PendingWrite, RecoveryReport

__version__ = "0.1.0"
__all__ = [
    "AcceptedSchema",
    "Analysis",
    "Batch",
    "Blame",
    "Blob",
    "BlobSelector",
    "Branch",
    "BranchUpgrade",
    "BranchView",
    "Branches",
    "CacheSettings",
    "ChangeBlock",
    "ChangesPage",
    "CheckReport",
    "CleanupReport",
    "CliSettings",
    "Commit",
    "Conversion",
    "CopyReport",
    "Diff",
    "DiffPage",
    "DiffStats",
    "Durability",
    "EdgeType",
    "EmbedResult",
    "EmbedSettings",
    "EntityChange",
    "EntityEvent",
    "EntityHistory",
    "Explanation",
    "FeedPage",
    "FsckFinding",
    "Graph",
    "History",
    "HistoryPage",
    "IndexReport",
    "LimitSettings",
    "Limits",
    "LoadFormat",
    "LoadMode",
    "LoadResult",
    "LoadSource",
    "Maintenance",
    "MergeConflict",
    "MergeLevel",
    "MergeOutcome",
    "MergeResult",
    "MergeStrategy",
    "MergedChange",
    "MutationResult",
    "NodeType",
    "Optimized",
    "Parameters",
    "PendingWrite",
    "PreparedQuery",
    "Progress",
    "PurgeReport",
    "ReadOptions",
    "RecoveryReport",
    "Repaired",
    "ResolvedRecord",
    "Result",
    "SchemaDifference",
    "SchemaPlan",
    "SchemaResult",
    "SchemaStep",
    "ServerSettings",
    "Settings",
    "SnapshotPins",
    "SnapshotView",
    "SourceError",
    "SparkJobs",
    "SparkSettings",
    "StorageSettings",
    "TablePin",
    "Tag",
    "Tags",
    "UpgradeReport",
    "__version__",
    "errors",
    "init",
    "open",
    "upgrade",
]

# Loaded on first use (PEP 562), so that `import omnigraph` stays light: ADR 25.
_EXPORTS = {
    "omnigraph.catalog.branches.registry": ("Branch",),
    "omnigraph.catalog.branches.tags": ("Tag",),
    "omnigraph.catalog.migrations.upgrade": (
        "BranchUpgrade",
        "Conversion",
        "ResolvedRecord",
        "UpgradeReport",
    ),
    "omnigraph.catalog.rows": (
        "Commit",
        "TablePin",
    ),
    "omnigraph.catalog.snapshot": ("SnapshotPins",),
    "omnigraph.engine.engine": ("ReadOptions",),
    "omnigraph.engine.limits": ("Limits",),
    "omnigraph.engine.plan.explain": ("Explanation",),
    "omnigraph.engine.prepared_query": ("PreparedQuery",),
    "omnigraph.engine.result": ("Result",),
    "omnigraph.evolution.apply": ("SchemaResult",),
    "omnigraph.graph.branches": ("Branches",),
    "omnigraph.graph.connect": (
        "init",
        "open",
        "upgrade",
    ),
    "omnigraph.graph.graph": ("Graph",),
    "omnigraph.graph.history": ("History",),
    "omnigraph.graph.maintenance": ("Maintenance",),
    "omnigraph.graph.spark": ("SparkJobs",),
    "omnigraph.graph.tags": ("Tags",),
    "omnigraph.graph.views": (
        "BranchView",
        "SnapshotView",
    ),
    "omnigraph.history.blame": (
        "Blame",
        "MergedChange",
    ),
    "omnigraph.history.commit_changes": ("ChangeBlock",),
    "omnigraph.history.entity": (
        "EntityEvent",
        "EntityHistory",
        "HistoryPage",
    ),
    "omnigraph.history.feed": (
        "ChangesPage",
        "FeedPage",
    ),
    "omnigraph.ingest.load": (
        "LoadMode",
        "LoadResult",
        "LoadSource",
        "Progress",
    ),
    "omnigraph.ingest.sources": ("LoadFormat",),
    "omnigraph.lang.query.parameters": ("Parameters",),
    "omnigraph.lang.schema": (
        "AcceptedSchema",
        "EdgeType",
        "NodeType",
        "SchemaPlan",
        "SchemaStep",
    ),
    "omnigraph.lang.syntax.diagnostics": ("SourceError",),
    "omnigraph.maintenance.backup": ("CopyReport",),
    "omnigraph.maintenance.cleanup": ("CleanupReport",),
    "omnigraph.maintenance.entity_purge": ("PurgeReport",),
    "omnigraph.maintenance.fsck": (
        "CheckReport",
        "FsckFinding",
    ),
    "omnigraph.maintenance.indexes": ("IndexReport",),
    "omnigraph.maintenance.optimize": ("Optimized",),
    "omnigraph.maintenance.repair": ("Repaired",),
    "omnigraph.merge.conflicts": ("MergeConflict",),
    "omnigraph.merge.merge": (
        "MergeOutcome",
        "MergeResult",
    ),
    "omnigraph.merge.three_way": (
        "MergeLevel",
        "MergeStrategy",
    ),
    "omnigraph.mutation.batch": ("Batch",),
    "omnigraph.mutation.mutation": ("MutationResult",),
    "omnigraph.settings": (
        "CacheSettings",
        "CliSettings",
        "Durability",
        "EmbedSettings",
        "LimitSettings",
        "ServerSettings",
        "Settings",
        "SparkSettings",
        "StorageSettings",
    ),
    "omnigraph.snapshots.blobs": (
        "Blob",
        "BlobSelector",
    ),
    "omnigraph.snapshots.diff": (
        "Diff",
        "DiffPage",
        "DiffStats",
        "EntityChange",
    ),
    "omnigraph.snapshots.schema_changes": ("SchemaDifference",),
    "omnigraph.spark.analytics.analysis": ("Analysis",),
    "omnigraph.spark.embedding.backfill": ("EmbedResult",),
    "omnigraph.transaction.recovery.graph_recovery": (
        "PendingWrite",
        "RecoveryReport",
    ),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
