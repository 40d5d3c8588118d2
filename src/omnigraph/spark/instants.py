"""Instants for the outside: tables keep them in a type that other programs read as days."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def outside_type(kind: pa.DataType) -> pa.DataType:
    """The type in which other programs find the same values as in a column of a table."""
    import pyarrow as pa

    if pa.types.is_date64(kind):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(outside_type(kind.value_type))
    return kind


def for_outside(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in that type."""
    import pyarrow as pa

    wanted = outside_type(column.type)
    if wanted == column.type:
        return column
    if pa.types.is_list(wanted):
        if pa.types.is_timestamp(wanted.value_type):
            return column.cast(pa.list_(pa.int64())).cast(wanted)
        return column.cast(wanted)
    return column.cast(pa.int64()).cast(wanted)
