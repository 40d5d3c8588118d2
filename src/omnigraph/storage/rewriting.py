"""Rewriting a fork so that it needs nothing of the table it came from, nor any dropped column.

Every file is written anew below the fork, rows in their order, under the row ids and stamps they
have. Afterwards everything else of the table can be deleted without anybody missing it. Works only
on forks that nobody refers to yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.storage.columns import commit_unpublished
from omnigraph.storage.compaction import Piece, drop_deleted, stage_pieces
from omnigraph.storage.indexing import stage_drop_indexes, stored_indexes
from omnigraph.storage.lance_errors import translated
from omnigraph.storage.staging import write_rows
from omnigraph.storage.tables import PinnedTable, TableStore


def rewrite_fork(
    store: TableStore, table: PinnedTable, properties: Mapping[str, str]
) -> PinnedTable:
    """The fork with files of its own only, without indexes, which upkeep builds again."""
    dropped = stage_drop_indexes(table, stored_indexes(table), properties)
    if dropped is not None:
        table = commit_unpublished(store, dropped)
    # First what has deleted rows: only Lance can tell the stamps of those that are left.
    compacted = stage_pieces(table, drop_deleted(table), properties)
    if compacted is not None:
        table = commit_unpublished(store, compacted)
    pieces = [_copied(table, fragment) for fragment in table.fragments.values()]
    copied = stage_pieces(table, pieces, properties)
    return table if copied is None else commit_unpublished(store, copied)


def _copied(table: PinnedTable, fragment: Any) -> Piece:
    """One fragment without deleted rows, written again as it is."""
    names = [field.name for field in table.dataset.schema]
    with translated(f"rewriting {table.ref.path}"):
        rows = table.dataset.get_fragment(fragment.id).to_table(columns=names)
        (written,) = write_rows(table, rows)
    kept = replace(
        written,
        row_id_meta=fragment.row_id_meta,
        created_at_version_meta=fragment.created_at_version_meta,
        last_updated_at_version_meta=fragment.last_updated_at_version_meta,
    )
    return Piece((fragment,), (kept,))
