"""Maintenance on executors: tasks compact large tables, fill columns and build indexes.

Planning, publishing and conflicts are those of maintenance in process; only the writing of files
that no version refers to yet runs on executors. Small tables are handled by the driver, because a
job would cost more than the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput
from omnigraph.maintenance.optimize import Rewrite
from omnigraph.spark import engine_choice
from omnigraph.spark.session.installed import is_available
from omnigraph.storage.lance.staging.columns import (
    ColumnChange,
    Fill,
    FilledColumns,
    fill_fragments,
    fill_in_process,
)
from omnigraph.storage.lance.staging.compaction import (
    Piece,
    plan_pieces,
    rewrite_piece,
    rewrite_pieces,
)
from omnigraph.storage.lance.staging.indexes import (
    Build,
    IndexSpec,
    build_in_process,
    build_part,
    join_parts,
)
from omnigraph.storage.lance.tables import PinnedTable, TableRef

ENGINES: Final = ("local", "spark")
DRIVER_ROWS_MAX: Final = 1 << 20
"""Tables of at most this many rows are handled by the driver."""

AUTO_INDEX_ROWS_MIN: Final = 50_000_000
"""Building an index of this many rows takes the driver about as long as starting Spark."""

AUTO_FILL_ROWS_MIN: Final = 10_000_000
"""Lower than for indexes: column values are often computed row by row."""

DIVIDED_KINDS: Final = ("BTREE", "INVERTED")
"""Index kinds that are built in parts and merged. A vector index is trained on all rows, so it is
built by the driver."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    graph: GraphStorage
    ref: TableRef
    work: str


@dataclass(frozen=True, slots=True)
class IndexTask:
    graph: GraphStorage
    ref: TableRef
    spec: IndexSpec
    fragment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FillTask:
    graph: GraphStorage
    ref: TableRef
    changes: tuple[ColumnChange, ...]
    fragment_ids: tuple[int, ...]


def index_builder(repository: Repository, engine: str) -> Build:
    """The function that builds an index of a table with this engine."""
    _require_known(engine, (*ENGINES, "auto"))

    def build(table: PinnedTable, spec: IndexSpec, fragment_ids: Sequence[int]) -> Any:
        rows = sum(table.fragments[number].physical_rows for number in fragment_ids)
        if _runs_on_driver(engine, rows, AUTO_INDEX_ROWS_MIN) or spec.kind not in DIVIDED_KINDS:
            return build_in_process(table, spec, fragment_ids)
        graph = GraphStorage.of(repository)
        groups = fragment_groups(table, DRIVER_ROWS_MAX, fragment_ids)
        specs = [IndexTask(graph, table.ref, spec, group) for group in groups]
        tasks = engine_choice.start_tasks(repository)
        return join_parts(table, tasks.run("building indexes", build_index_part, specs))

    return build


def build_index_part(task: IndexTask) -> Any:
    """Build the index of some fragments (task)."""
    return build_part(task.graph.table(task.ref), task.spec, task.fragment_ids)


def column_filler(repository: Repository, engine: str) -> Fill:
    """The function that fills columns of a table with this engine."""
    _require_known(engine, (*ENGINES, "auto"))

    def fill(table: PinnedTable, changes: Sequence[ColumnChange]) -> FilledColumns:
        if _runs_on_driver(engine, table.rows, AUTO_FILL_ROWS_MIN):
            return fill_in_process(table, changes)
        graph = GraphStorage.of(repository)
        groups = fragment_groups(table, DRIVER_ROWS_MAX)
        specs = [FillTask(graph, table.ref, tuple(changes), group) for group in groups]
        tasks = engine_choice.start_tasks(repository)
        parts = tasks.run("filling columns", fill_columns, specs)
        fragments = tuple(fragment for part in parts for fragment in part.fragments)
        return FilledColumns(fragments, parts[0].columns)

    return fill


def fill_columns(task: FillTask) -> FilledColumns:
    """Fill columns of some fragments (task)."""
    return fill_fragments(task.graph.table(task.ref), task.changes, task.fragment_ids)


def rewriter(repository: Repository, engine: str) -> Rewrite:
    """The function that compacts a table with this engine."""
    _require_known(engine, ENGINES)
    if engine == "local":
        return rewrite_pieces

    def rewrite(table: PinnedTable) -> list[Piece]:
        if table.rows <= DRIVER_ROWS_MAX:
            return rewrite_pieces(table)
        graph = GraphStorage.of(repository)
        specs = [RewriteTask(graph, table.ref, work) for work in plan_pieces(table)]
        return engine_choice.start_tasks(repository).run("compacting files", rewrite_files, specs)

    return rewrite


def rewrite_files(task: RewriteTask) -> Piece:
    """Compact some fragments (task)."""
    return rewrite_piece(task.graph.table(task.ref), task.work)


def _runs_on_driver(engine: str, rows: int, auto_min: int) -> bool:
    if engine == "auto":
        return rows < auto_min or not is_available()
    return engine == "local" or rows <= DRIVER_ROWS_MAX


def _require_known(engine: str, engines: Sequence[str]) -> None:
    if engine not in engines:
        raise InvalidInput(
            f"{engine!r} is not a maintenance engine",
            remedy=f"Use one of {', '.join(engines)}.",
        )
