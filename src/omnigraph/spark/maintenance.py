"""Maintenance on executors: the files of large tables are rewritten by tasks.

What is rewritten, how it is published and what happens when a writer was faster is decided where it
always is; only the writing of files that nothing refers to yet is done elsewhere. Small tables stay
with the driver: a job would cost more than the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.errors import InvalidInput
from omnigraph.manifest.repository import Repository
from omnigraph.spark.shares import open_table
from omnigraph.storage.compaction import Piece, plan_pieces, rewrite_piece, rewrite_pieces
from omnigraph.storage.tables import PinnedTable, TableRef
from omnigraph.write.optimize import Rewrite

ENGINES: Final = ("local", "spark")
DRIVER_ROWS_MAX: Final = 1 << 20
"""Tables of fewer rows are one piece of work: nothing to divide."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    graph_uri: str
    ref: TableRef
    work: str


def rewriter(repository: Repository, engine: str) -> Rewrite:
    """What rewrites the files of a table, for an engine."""
    if engine not in ENGINES:
        raise InvalidInput(
            f"{engine!r} is not an engine of maintenance",
            remedy=f"Use one of {', '.join(ENGINES)}.",
        )
    if engine == "local":
        return rewrite_pieces

    def rewrite(table: PinnedTable) -> list[Piece]:
        if table.rows <= DRIVER_ROWS_MAX:
            return rewrite_pieces(table)
        from omnigraph.spark.engine import start_tasks

        uri = repository.location.uri
        specs = [RewriteTask(uri, table.ref, work) for work in plan_pieces(table)]
        return start_tasks().run("joining files", carry_out, specs)

    return rewrite


def carry_out(task: RewriteTask) -> Piece:
    """One piece, on an executor."""
    return rewrite_piece(open_table(task.graph_uri, task.ref), task.work)
