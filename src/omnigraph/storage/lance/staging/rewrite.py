"""Rewrites a fork so that it shares no file with its source table and has no dropped column.

Every file is rewritten below the fork, with row order, row ids and version stamps unchanged.
Afterwards the rest of the table can be deleted. Only for forks that nothing refers to yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from omnigraph.storage.lance.blobs import blob_array, blob_values, is_blob_type
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.staging.columns import commit_unpublished
from omnigraph.storage.lance.staging.compaction import BATCH_ROWS, Piece, drop_deleted, stage_pieces
from omnigraph.storage.lance.staging.indexes import stage_drop_indexes, stored_indexes
from omnigraph.storage.lance.staging.rows import write_batches
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable, TableStore

BLOB_ROWS: Final = 64
"""Rows held at once of a table with blobs, which may be large."""


def rewrite_fork(
    store: TableStore, table: PinnedTable, properties: Mapping[str, str]
) -> PinnedTable:
    """The fork with its own files only, and without indexes, which upkeep rebuilds."""
    dropped = stage_drop_indexes(table, stored_indexes(table), properties)
    if dropped is not None:
        table = commit_unpublished(store, dropped)
    # Fragments with deleted rows first: only Lance can compute the stamps of the remaining rows.
    compacted = stage_pieces(table, drop_deleted(table), properties)
    if compacted is not None:
        table = commit_unpublished(store, compacted)
    pieces = [_copied(table, fragment) for fragment in table.fragments.values()]
    copied = stage_pieces(table, pieces, properties)
    return table if copied is None else commit_unpublished(store, copied)


def _copied(table: PinnedTable, fragment: Any) -> Piece:
    """A copy of one fragment, which has no deleted rows."""
    names = table.dataset.schema.names
    with translated(f"rewriting {table.ref.path}"):
        (written,) = write_batches(table, _rows(table, fragment.id), names)
    kept = replace(
        written,
        row_id_meta=fragment.row_id_meta,
        created_at_version_meta=fragment.created_at_version_meta,
        last_updated_at_version_meta=fragment.last_updated_at_version_meta,
    )
    return Piece(table.ref.dataset_path, (fragment,), (kept,))


def _rows(table: PinnedTable, fragment_id: int) -> Iterator[pa.Table]:
    """The rows of a fragment in batches, with blobs as values."""
    schema = table.dataset.schema
    fragment = table.dataset.get_fragment(fragment_id)
    size = BLOB_ROWS if any(is_blob_type(field.type) for field in schema) else BATCH_ROWS
    for batch in fragment.to_batches(columns=schema.names, batch_size=size, with_row_id=True):
        columns = {}
        for field in schema:
            column: Any = batch[field.name]
            if is_blob_type(field.type):
                row_ids = batch[ROW_ID].to_pylist()
                column = blob_array(blob_values(table, field.name, column.to_pylist(), row_ids))
            columns[field.name] = column
        yield pa.table(columns)
