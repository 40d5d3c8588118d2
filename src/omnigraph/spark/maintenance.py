"""Maintenance on executors: files of large tables, columns and indexes are written by tasks.

What is written, how it is published and what happens when a writer was faster is decided where it
always is; only the writing of files that nothing refers to yet is done elsewhere. Small tables stay
with the driver: a job would cost more than the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput
from omnigraph.maintenance.optimize import Rewrite
from omnigraph.spark import engine as spark_engine
from omnigraph.spark.load.partitions import fragment_groups, open_table
from omnigraph.spark.session.installed import is_available
from omnigraph.storage.lance.staging.columns import (
    ColumnChange,
    Fill,
    Filled,
    fill_fragments,
    fill_here,
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
    build_here,
    build_part,
    join_parts,
)
from omnigraph.storage.lance.tables import PinnedTable, TableRef

ENGINES: Final = ("local", "spark")
DRIVER_ROWS_MAX: Final = 1 << 20
"""Tables of fewer rows are one piece of work: nothing to divide."""

AUTO_INDEX_ROWS_MIN: Final = 50_000_000
"""An index of so many rows takes the driver about as long as starting Spark takes."""

AUTO_FILL_ROWS_MIN: Final = 10_000_000
"""Values of a column are often computed row by row."""

DIVIDED_KINDS: Final = ("BTREE", "INVERTED")
"""What is built part by part and joined. A vector index is trained on all rows first: it is built
by the driver."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    graph_uri: str
    ref: TableRef
    work: str


@dataclass(frozen=True, slots=True)
class IndexTask:
    graph_uri: str
    ref: TableRef
    spec: IndexSpec
    fragment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FillTask:
    graph_uri: str
    ref: TableRef
    wanted: tuple[ColumnChange, ...]
    fragment_ids: tuple[int, ...]


def index_builder(repository: Repository, engine: str) -> Build:
    """What builds the indexes of a table, for an engine."""
    _require_known(engine, (*ENGINES, "auto"))

    def build(table: PinnedTable, spec: IndexSpec, fragment_ids: Sequence[int]) -> Any:
        rows = sum(table.fragments[number].physical_rows for number in fragment_ids)
        if _stays_here(engine, rows, AUTO_INDEX_ROWS_MIN) or spec.kind not in DIVIDED_KINDS:
            return build_here(table, spec, fragment_ids)
        uri = repository.location.uri
        groups = fragment_groups(table, DRIVER_ROWS_MAX, fragment_ids)
        specs = [IndexTask(uri, table.ref, spec, group) for group in groups]
        return join_parts(
            table, spark_engine.start_tasks().run("building indexes", build_index_part, specs)
        )

    return build


def build_index_part(task: IndexTask) -> Any:
    """Some fragments, on an executor."""
    return build_part(open_table(task.graph_uri, task.ref), task.spec, task.fragment_ids)


def column_filler(repository: Repository, engine: str) -> Fill:
    """What writes the values of columns of a table, for an engine."""
    _require_known(engine, (*ENGINES, "auto"))

    def fill(table: PinnedTable, wanted: Sequence[ColumnChange]) -> Filled:
        if _stays_here(engine, table.rows, AUTO_FILL_ROWS_MIN):
            return fill_here(table, wanted)
        uri = repository.location.uri
        groups = fragment_groups(table, DRIVER_ROWS_MAX)
        specs = [FillTask(uri, table.ref, tuple(wanted), group) for group in groups]
        parts = spark_engine.start_tasks().run("filling columns", fill_columns, specs)
        fragments = tuple(fragment for part in parts for fragment in part.fragments)
        return Filled(fragments, parts[0].columns)

    return fill


def fill_columns(task: FillTask) -> Filled:
    """Some fragments, on an executor."""
    return fill_fragments(open_table(task.graph_uri, task.ref), task.wanted, task.fragment_ids)


def rewriter(repository: Repository, engine: str) -> Rewrite:
    """What rewrites the files of a table, for an engine."""
    _require_known(engine, ENGINES)
    if engine == "local":
        return rewrite_pieces

    def rewrite(table: PinnedTable) -> list[Piece]:
        if table.rows <= DRIVER_ROWS_MAX:
            return rewrite_pieces(table)
        uri = repository.location.uri
        specs = [RewriteTask(uri, table.ref, work) for work in plan_pieces(table)]
        return spark_engine.start_tasks().run("joining files", carry_out, specs)

    return rewrite


def carry_out(task: RewriteTask) -> Piece:
    """One piece, on an executor."""
    return rewrite_piece(open_table(task.graph_uri, task.ref), task.work)


def _stays_here(engine: str, rows: int, auto_min: int) -> bool:
    if engine == "auto":
        return rows < auto_min or not is_available()
    return engine == "local" or rows <= DRIVER_ROWS_MAX


def _require_known(engine: str, engines: Sequence[str]) -> None:
    if engine not in engines:
        raise InvalidInput(
            f"{engine!r} is not an engine of maintenance",
            remedy=f"Use one of {', '.join(engines)}.",
        )
