"""Types for the outside: what a table keeps in a form that other programs do not read alike."""

from __future__ import annotations

import pyarrow as pa


def outside_type(kind: pa.DataType) -> pa.DataType:
    """The type in which other programs find the same values as in a column of a table."""
    if pa.types.is_date64(kind):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(outside_type(kind.value_type))
    return kind


def for_outside(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in that type."""
    wanted = outside_type(column.type)
    if wanted == column.type:
        return column
    if pa.types.is_list(wanted):
        if pa.types.is_timestamp(wanted.value_type):
            return column.cast(pa.list_(pa.int64())).cast(wanted)
        return column.cast(wanted)
    return column.cast(pa.int64()).cast(wanted)


def readable(field: pa.Field) -> pa.Field:
    """A field in a type that Spark has."""
    kind = outside_type(field.type)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", "UTC")
    elif pa.types.is_unsigned_integer(kind):
        if kind.bit_width == 64:
            kind = pa.decimal128(20, 0)
        else:
            kind = pa.int64()
    return pa.field(field.name, kind, nullable=True)
