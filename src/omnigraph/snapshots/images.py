"""Entities as JSON values, for entity look-ups and the images of changes.

The forms are those of an export, so that values can be loaded again: times are ISO 8601 strings,
managed blobs ``base64:…`` strings, and references are given as their URI.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.blobs import blob_values
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable


def images(owner: NodeType | EdgeType, table: PinnedTable, rows: pa.Table) -> list[dict[str, Any]]:
    """Scanned rows, which include row ids, as one mapping per entity."""
    columns = {}
    for column in owner.columns():
        if column.name in rows.column_names:
            values = _values(table, rows, column.name, column.type)
            columns[column.name] = [column.type.export(value) for value in values]
    return [{name: column[at] for name, column in columns.items()} for at in range(rows.num_rows)]


def _values(table: PinnedTable, rows: pa.Table, name: str, kind: PropertyType) -> list[Any]:
    column: Any = rows[name]
    if kind.is_blob:
        return blob_values(table, name, column.to_pylist(), rows[ROW_ID].to_pylist())
    family = kind.scalar.family
    if family in ("date", "datetime"):
        item = pa.int32() if family == "date" else pa.int64()
        column = column.cast(pa.list_(item) if kind.is_list else item)
    found: list[Any] = column.to_pylist()
    return found
