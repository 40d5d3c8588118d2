"""Finds stored rows by id or value: few by an index, many by one scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.tables import PinnedTable

ID_LOOKUP_MAX = 2_000  # more ids than this are found by one scan of the id column
LOOKUP_ALWAYS_MAX = 16  # up to this many values are looked up by index, however small the table is
LOOKUP_SHARE = 64  # more values are looked up only if the table has this many rows per value
_UNREADABLE = -(2**63)  # the only 64-bit integer that SQL text cannot express


@dataclass(frozen=True, slots=True)
class Located:
    """The row ids and addresses of given ids: parallel arrays, in storage order."""

    ids: pa.ChunkedArray
    row_ids: np.ndarray[Any, Any]
    addresses: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.row_ids)


def locate(table: PinnedTable, ids: pa.ChunkedArray | pa.Array) -> Located:
    """Find the stored rows of these ids (those that exist)."""
    if len(ids) == 0 or table.rows == 0:
        return _located(table.schema.field("id").type)
    condition = lookup_filter(table, "id", as_array(ids))
    found = table.scan(["id"], condition, with_row_id=True, with_row_address=True)
    if condition is None:
        found = found.filter(pc.is_in(found["id"], value_set=as_array(ids)))
    return Located(found["id"], found["_rowid"].to_numpy(), found["_rowaddr"].to_numpy())


def membership(column: str, ids: pa.ChunkedArray | pa.Array) -> str | None:
    """A filter that an index can serve; None when there are so many ids that a scan is cheaper."""
    if len(ids) > ID_LOOKUP_MAX:
        return None
    return f"`{column}` IN ({', '.join(_text(i) for i in ids.to_pylist())})"


def value_filter(column: str, values: pa.Array) -> str | None:
    """``membership`` for values of any type; None when a scan is cheaper or SQL is not exact."""
    if len(values) > ID_LOOKUP_MAX or not len(values):
        return None
    if not pa.types.is_string(values.type) and not pa.types.is_integer(values.type):
        return None
    members = [literal(values.type, value) for value in values.to_pylist()]
    if None in members:
        return None
    return f"`{column}` IN ({', '.join(map(str, members))})"


def lookup_filter(table: PinnedTable, column: str, values: pa.Array) -> str | None:
    """``value_filter`` where it is cheaper than a scan of the column; None otherwise."""
    if len(values) > LOOKUP_ALWAYS_MAX and len(values) * LOOKUP_SHARE > table.rows:
        return None
    return value_filter(column, values)


def _located(id_type: pa.DataType) -> Located:
    nothing = np.empty(0, dtype=np.uint64)
    return Located(pa.chunked_array([], type=id_type), nothing, nothing)


def literal(kind: pa.DataType, value: object) -> str | None:
    """A value as a SQL literal that compares exactly with a column; None when there is none.

    The SQL parser refuses an integer that the column cannot hold, and parses the digits of the
    smallest one without their sign, which overflows.
    """
    if pa.types.is_string(kind) and isinstance(value, str):
        return _text(value)
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return "true" if value else "false"
    if pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool):
        signed = pa.types.is_signed_integer(kind)
        low, bits = (1 << kind.bit_width - 1, kind.bit_width - 1) if signed else (0, kind.bit_width)
        if -low <= value < 1 << bits and value != _UNREADABLE:
            return str(value)
    return None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
