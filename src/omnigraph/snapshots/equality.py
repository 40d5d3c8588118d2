"""Equality of stored values, column by column.

Null differs from the empty string; lists are compared by items and order, blobs by content, floats
by their bits: a NaN equals itself, and 0.0 differs from -0.0, which an export spells differently.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.lang.schema.change.members import renamed_values
from omnigraph.predicates.values import Mask
from omnigraph.storage.lance.blobs import blob_values, is_blob_type
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.staging.columns import with_names
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

BLOB_BATCH_ROWS: Final = 64
"""The number of rows whose blobs are in memory at a time: blobs may be large."""


def same_rows(left: pa.Table, right: pa.Table, columns: list[tuple[str, str]]) -> Mask:
    """Which rows, in the same order on both sides, have equal values in all columns.

    ``columns`` are pairs of names, because a property may have different names on both sides.
    """
    same = np.ones(left.num_rows, dtype=bool)
    for old, new in columns:
        same &= same_values(left[old].combine_chunks(), right[new].combine_chunks())
    return same


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """Element-wise equality; null equals null."""
    if left.type != right.type and not (_is_list(left.type) and _is_list(right.type)):
        left, right = _of_one_type(left, right)
    some_left = np.asarray(pc.is_valid(left))
    some_right = np.asarray(pc.is_valid(right))
    same = some_left == some_right
    both = some_left & some_right
    if not both.any():
        return np.asarray(same)
    if not both.all():
        chosen = pa.array(both)
        left, right = left.filter(chosen), right.filter(chosen)
    same[both] = _same(left, right)
    return np.asarray(same)


def _of_one_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two columns cast to the wider of their types."""
    wider = max((left.type, right.type), key=_width)
    if {left.type, right.type} == {pa.uint64(), pa.int64()}:
        wider = pa.decimal128(20)
    return left.cast(wider), right.cast(wider)


def _same(left: pa.Array, right: pa.Array) -> Mask:
    """Element-wise equality of arrays without nulls."""
    kind = left.type
    if _is_list(kind):
        return _same_lists(left, right)
    if pa.types.is_floating(kind):
        bits = np.dtype(f"u{kind.bit_width // 8}")
        sides = [
            np.ascontiguousarray(side.to_numpy(zero_copy_only=False)) for side in (left, right)
        ]
        return np.asarray(sides[0].view(bits) == sides[1].view(bits))
    return np.asarray(pc.equal(left, right))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = np.asarray(pc.list_value_length(left)).astype(np.int64)
    same = lengths == np.asarray(pc.list_value_length(right))
    chosen = pa.array(same)
    lengths = lengths[same]
    items = same_values(left.filter(chosen).flatten(), right.filter(chosen).flatten())
    wrong = np.concatenate(([0], np.cumsum(~items)))
    ends = np.cumsum(lengths)
    same[same] = wrong[ends] == wrong[ends - lengths]
    return np.asarray(same)


def comparable(table: PinnedTable, rows: pa.Table) -> pa.Table:
    """The rows with blobs replaced by digests of their content."""
    for field in table.schema:
        if field.name in rows.column_names and is_blob_type(field.type):
            digests = pa.array(_digests(table, rows, field.name), pa.string())
            where = rows.column_names.index(field.name)
            rows = rows.set_column(where, field.name, digests)
    return rows


def _digests(table: PinnedTable, rows: pa.Table, name: str) -> list[str | None]:
    descriptors, row_ids = rows[name].to_pylist(), rows[ROW_ID].to_pylist()
    found: list[str | None] = []
    for start in range(0, len(descriptors), BLOB_BATCH_ROWS):
        part = slice(start, start + BLOB_BATCH_ROWS)
        values = blob_values(table, name, descriptors[part], row_ids[part])
        found += [_digest(value) for value in values]
    return found


def _digest(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return f"{len(value)}:{hashlib.sha256(value).hexdigest()}"


def compared_images(
    owner: NodeType | EdgeType, table: PinnedTable, rows: pa.Table, named_by: NodeType | EdgeType
) -> list[dict[str, Any]]:
    """Rows as mappings that are equal exactly when the stored values are equal.

    For comparison only. Properties have the names they have in ``named_by``; others, and the id,
    are left out. Numbers compare across numeric types.
    """
    names = {item.property_id: name for name, item in owner.properties.items()}
    rows = comparable(table, rows)
    columns = {}
    for column in named_by.columns():
        if column.name == "id":
            continue
        name = column.name if column.property_id is None else names.get(column.property_id)
        if name is None:  # added after these rows were written
            older = PropertyBackfill(named_by.properties[column.name], named_by, owner)
            columns[column.name] = _distinguishable(older.values(rows))
            continue
        values: Any = rows[name].combine_chunks()
        if column.property_id is not None:
            renamed = renamed_values(owner.properties[name], named_by.properties[column.name])
            values = with_names(values, tuple(renamed.items()))
        columns[column.name] = _distinguishable(values)
    return [{name: values[at] for name, values in columns.items()} for at in range(rows.num_rows)]


def _width(kind: pa.DataType) -> int:
    """The width of a type in bits; the wider of two types holds the values of both."""
    try:
        return int(kind.bit_width)
    except ValueError:  # strings have no width
        return 0


def _distinguishable(array: pa.Array) -> list[Any]:
    """Python values that compare exactly: floats as 64-bit patterns, and instants as milliseconds,
    which Arrow would truncate to days."""
    kind = array.type
    if pa.types.is_date64(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_list(kind) and pa.types.is_date64(kind.value_type):
        return list(array.cast(pa.list_(pa.int64())).to_pylist())
    if pa.types.is_floating(kind):
        array = array.cast(pa.float64())
        numbers = np.ascontiguousarray(array.fill_null(0).to_numpy(zero_copy_only=False))
        found = numbers.view(np.dtype("u8")).tolist()
        return [b if v else None for b, v in zip(found, np.asarray(array.is_valid()), strict=True)]
    if pa.types.is_nested(kind) and pa.types.is_floating(kind.value_type):
        return [None if item is None else np.array(item).tobytes() for item in array.to_pylist()]
    return list(array.to_pylist())


def same_stored(stored: pa.Array, given: pa.Array) -> Mask:
    """Element-wise equality of stored and given values."""
    if not is_blob_type(given.type):
        return same_values(stored.cast(given.type), given)
    both = zip(stored.storage.to_pylist(), given.storage.to_pylist(), strict=True)
    return np.array([old == new for old, new in both], dtype=bool)
