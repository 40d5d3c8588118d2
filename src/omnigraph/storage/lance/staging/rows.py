"""Staged writes: files and a prepared transaction, never a new version.

Each function takes a ``PinnedTable`` and returns a ``StagedWrite`` for ``TableStore.commit``. The
transactions are built directly, because Lance's own builders either commit at once or do not detect
concurrent writers when staged. All of them are *strict*: they name every fragment of the pinned
version, so that any other write in between is a conflict.

* rows added, replaced or removed: an ``Update`` that lists every fragment. A replaced row is a
  deletion and an insertion under a new row id: if rows kept their ids, Lance would search the row
  ids of the whole table for their history;
* rows added to an empty table: ``Merge``, because an ``Update`` that lists no fragment is rebased;
* the whole table replaced: ``Overwrite``.

Index creation, compaction and restore are *not* refused by Lance in every case;
``TableStore.commit`` checks the version they committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph.errors import KeyConflict
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import blob_array, blob_values, is_blob_type
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.fingerprints import Fingerprints, fingerprints
from omnigraph.storage.lance.lookup import Located, locate
from omnigraph.storage.lance.row_addresses import addresses
from omnigraph.storage.lance.row_delta import rows_at
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, ROW_ID, PinnedTable, StagedWrite

HIDDEN_BLOB_BYTES_MAX = 64 << 20
"""Bytes of dropped blobs that one write copies: they are held in memory."""
_OFFSET_MASK = 0xFFFF_FFFF


def stage_insert(
    table: PinnedTable,
    rows: pa.Table,
    properties: Mapping[str, str],
    *,
    type_key: str,
    known_new: bool = False,
) -> StagedWrite:
    """Add rows whose ids must all be new, in the table and among themselves.

    ``known_new``: the caller has checked that at this version.
    """
    _require_distinct(rows, type_key)
    present = None if known_new else locate(table, rows["id"])
    if present is not None and len(present):
        raise KeyConflict(type_key, present.ids[0].as_py())
    return _stage(table, "insert", properties, written=rows)


def stage_upsert(
    table: PinnedTable, rows: pa.Table, properties: Mapping[str, str], *, type_key: str
) -> StagedWrite:
    """Replace the rows whose ids exist, add the others."""
    _require_distinct(rows, type_key)
    located = locate(table, rows["id"])
    return _stage(table, "upsert", properties, written=rows, replaced=located)


def stage_update(
    table: PinnedTable, rows: pa.Table, properties: Mapping[str, str], *, type_key: str
) -> StagedWrite:
    """Replace rows that must all exist."""
    _require_distinct(rows, type_key)
    located = locate(table, rows["id"])
    if len(located) != rows.num_rows:
        raise ValueError(f"{rows.num_rows - len(located)} rows to update do not exist")
    return _stage(table, "update", properties, written=rows, replaced=located)


def stage_delete(
    table: PinnedTable, ids: pa.Array | pa.ChunkedArray, properties: Mapping[str, str]
) -> StagedWrite:
    """Remove the rows of these ids (those that exist)."""
    return _stage(table, "delete", properties, removed=locate(table, ids))


def stage_change(
    table: PinnedTable,
    rows: pa.Table,
    deleted_ids: pa.Array | pa.ChunkedArray,
    properties: Mapping[str, str],
    *,
    type_key: str,
) -> StagedWrite:
    """Upsert some rows and delete others in one commit, as a merge of branches needs it.

    An id that is both written and deleted is replaced.
    """
    _require_distinct(rows, type_key)
    deleted = as_array(deleted_ids)
    written = pc.is_in(deleted, value_set=as_array(rows["id"]))
    return _stage(
        table,
        "change",
        properties,
        written=rows,
        replaced=locate(table, rows["id"]),
        removed=locate(table, deleted.filter(pc.invert(written))),
    )


def stage_by_row_ids(
    table: PinnedTable,
    rows: pa.Table | None,
    row_ids: pa.Array,
    removed: pa.Array,
    properties: Mapping[str, str],
    *,
    type_key: str,
    removed_ids: pa.Array | None = None,
) -> StagedWrite:
    """``stage_change`` by row ids, without lookups by id.

    ``row_ids`` holds the stored row that each row replaces (null: it is new); ``removed`` are row
    ids to delete, and ``removed_ids`` the ids of those rows, where known.
    """
    if rows is not None:
        _require_distinct(rows, type_key)
    return _stage(
        table,
        "delete" if rows is None else "change",
        properties,
        written=rows,
        replaced=_known(table, row_ids.drop_null()),
        removed=_known(table, removed, removed_ids),
    )


def stage_overwrite(
    table: PinnedTable, rows: pa.Table, properties: Mapping[str, str], *, type_key: str
) -> StagedWrite:
    """Replace all rows, possibly by none. Row ids restart and indexes are dropped."""
    _require_distinct(rows, type_key)
    fragments = write_rows(table, rows) if rows.num_rows else []
    return stage_replacement(table, fragments, rows.num_rows, properties)


def stage_replacement(
    table: PinnedTable, fragments: Sequence[Any], rows: int, properties: Mapping[str, str]
) -> StagedWrite:
    """Replace all rows by fragments that were written before, in this process or on executors."""
    operation = LanceOperation.Overwrite(table.dataset.lance_schema, list(fragments))
    return StagedWrite(
        table.ref,
        Transaction(table.ref.version, operation, transaction_properties=dict(properties)),
        "overwrite",
        rows_after=rows,
        rows_inserted=rows,
        rows_deleted=table.rows,
    )


def stage_layout(
    table: PinnedTable, parts: Sequence[pa.Table], schema: pa.Schema, properties: Mapping[str, str]
) -> StagedWrite:
    """Replace all rows and the schema. Each part becomes fragments with the columns that it has:
    the leading ones of the schema."""
    with translated(f"staging a new layout of {table.ref.path}"):
        fragments = [
            fragment
            for part in parts
            if part.num_rows
            for fragment in write_fragments(
                part, table.dataset, mode="overwrite", schema=part.schema
            )
        ]
    operation = LanceOperation.Overwrite(schema, fragments)
    transaction = Transaction(table.ref.version, operation, transaction_properties=dict(properties))
    rows = sum(part.num_rows for part in parts)
    return StagedWrite(table.ref, transaction, "overwrite", rows_after=rows)


def stage_restore(
    table: PinnedTable, version: int, rows_after: int, properties: Mapping[str, str]
) -> StagedWrite:
    """Restore the content of an older version as a new one. Lance never refuses this."""
    return StagedWrite(
        table.ref,
        Transaction(
            table.ref.version,
            LanceOperation.Restore(version),
            transaction_properties=dict(properties),
        ),
        "restore",
        rows_after=rows_after,
    )


def _stage(
    table: PinnedTable,
    kind: str,
    properties: Mapping[str, str],
    *,
    written: pa.Table | None = None,
    replaced: Located | None = None,
    removed: Located | None = None,
) -> StagedWrite:
    """Build one strict transaction out of written, replaced and removed rows."""
    taken = [x.addresses for x in (replaced, removed) if x is not None]
    changed, gone = delete_addresses(table, taken)
    count = 0 if written is None else written.num_rows
    updated = 0 if replaced is None else len(replaced)
    if written is not None and replaced is not None:
        written = with_hidden(table, written, replaced.addresses)
    return stage_fragments(
        table,
        kind,
        properties,
        new=write_rows(table, written) if written is not None and count else [],
        changed=changed,
        gone=gone,
        rows_inserted=count - updated,
        rows_updated=updated,
        rows_deleted=0 if removed is None else len(removed),
        removed=() if removed is None else fingerprints(removed.ids),
    )


def stage_fragments(
    table: PinnedTable,
    kind: str,
    properties: Mapping[str, str],
    *,
    new: Sequence[Any] = (),
    changed: Mapping[int, Any] | None = None,
    gone: Sequence[int] = (),
    rows_inserted: int = 0,
    rows_updated: int = 0,
    rows_deleted: int = 0,
    removed: Fingerprints = None,
) -> StagedWrite:
    """One strict transaction of fragments that were written before, here or on executors.

    ``changed`` are stored fragments with rows marked deleted, ``gone`` those left without any.
    """
    current = {**table.fragments, **(changed or {})}
    for fragment_id in gone:
        del current[fragment_id]
    if current or gone:
        operation: Any = LanceOperation.Update(
            removed_fragment_ids=list(gone),
            updated_fragments=list(current.values()),
            new_fragments=list(new),
            # For every index the rewritten rows are new: none covers them.
            fields_for_preserving_frag_bitmap=[f.id() for f in table.dataset.lance_schema.fields()],
        )
    else:
        operation = LanceOperation.Merge(list(new), table.dataset.lance_schema)
    return StagedWrite(
        table.ref,
        Transaction(table.ref.version, operation, transaction_properties=dict(properties)),
        kind,
        rows_after=table.rows + rows_inserted - rows_deleted,
        rows_inserted=rows_inserted,
        rows_updated=rows_updated,
        rows_deleted=rows_deleted,
        removed=removed,
    )


def delete_addresses(
    table: PinnedTable, addresses: Sequence[np.ndarray[Any, Any]]
) -> tuple[dict[int, Any], list[int]]:
    """The fragments without the rows at these addresses, and the ids of those left empty."""
    changed: dict[int, Any] = {}
    gone: list[int] = []
    if not addresses:
        return changed, gone
    every = np.concatenate(addresses)
    owners = every >> FRAGMENT_SHIFT
    for fragment_id in np.unique(owners).tolist():
        offsets = (every[owners == fragment_id] & _OFFSET_MASK).tolist()
        with translated(f"staging a change of {table.ref.path}"):
            left = table.dataset.get_fragment(fragment_id).delete_rows(offsets)
        if left is None:
            gone.append(fragment_id)
        else:
            changed[fragment_id] = left
    return changed, gone


def write_rows(table: PinnedTable, rows: pa.Table) -> list[Any]:
    """Write rows as unreferenced fragments beside the table's own."""
    schema = _written_schema(table, rows.column_names)
    return _write(table, rows.select(schema.names).cast(schema), schema)


def write_batches(
    table: PinnedTable, batches: Iterable[pa.Table], names: Collection[str]
) -> list[Any]:
    """``write_rows`` for batches; ``names`` are the columns they have."""
    schema = _written_schema(table, names)
    parts = (b for rows in batches for b in rows.select(schema.names).cast(schema).to_batches())
    return _write(table, pa.RecordBatchReader.from_batches(schema, parts), schema)


def _write(table: PinnedTable, rows: Any, schema: pa.Schema) -> list[Any]:
    with translated(f"staging rows for {table.ref.path}"):
        return list(
            write_fragments(
                rows,
                table.dataset,
                mode="append",
                schema=schema,
                # ``prepare`` has checked references against the graph's policy.
                allow_external_blob_outside_bases=True,
            )
        )


def _written_schema(table: PinnedTable, names: Collection[str]) -> pa.Schema:
    """The columns to write: the table's, and the hidden ones that the rows have."""
    given = [field for field in table.hidden if field.name in names]
    return pa.schema([*table.schema, *given], metadata=table.schema.metadata)


def with_hidden(table: PinnedTable, rows: pa.Table, replaced: np.ndarray[Any, Any]) -> pa.Table:
    """Rows extended by the hidden columns of the rows they replace, at these addresses.

    A dropped property may be restored. Hidden blobs are copied only up to a size limit.
    """
    if not table.hidden or not len(replaced):
        return rows
    names = [field.name for field in table.hidden]
    found = pa.concat_tables(rows_at(table, replaced, ["id", *names]))
    at = pc.index_in(rows["id"], value_set=as_array(found["id"]))
    for field in table.hidden:
        column: Any = found[field.name]
        if not is_blob_type(field.type):
            rows = rows.append_column(field, column.cast(field.type).take(at))
            continue
        descriptors = column.to_pylist()
        if sum(one["size"] for one in descriptors if one is not None) <= HIDDEN_BLOB_BYTES_MAX:
            row_ids = found[ROW_ID].to_pylist()
            values = blob_values(table, field.name, descriptors, row_ids)
            ordered = [None if one is None else values[one] for one in at.to_pylist()]
            rows = rows.append_column(field.name, blob_array(ordered))
    return rows


def stage_maintenance(
    table: PinnedTable,
    kind: str,
    transaction: Any,
    operation: Any,
    properties: Mapping[str, str],
) -> StagedWrite:
    """Stage a commit that changes the storage of rows, not the rows."""
    made = transaction(table.ref.version, operation, transaction_properties=dict(properties))
    return StagedWrite(table.ref, made, kind, rows_after=table.rows)


def _require_distinct(rows: pa.Table, type_key: str) -> None:
    """Refuse duplicate ids within a batch, which Lance would insert silently."""
    if pc.count_distinct(rows["id"]).as_py() == rows.num_rows:
        return
    counts = rows.group_by("id").aggregate([("id", "count")])
    twice = counts.filter(pc.greater(counts["id_count"], 1))
    raise KeyConflict(type_key, twice["id"][0].as_py())


def _known(table: PinnedTable, row_ids: pa.Array, ids: Any = None) -> Located | None:
    """The addresses of these row ids at this version."""
    if not len(row_ids):
        return None
    return Located(ids, row_ids.to_numpy(), addresses(table, row_ids))
