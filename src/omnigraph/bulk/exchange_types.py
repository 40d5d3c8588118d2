"""Arrow types for exports and Spark, where the stored type is not portable."""

from __future__ import annotations

import pyarrow as pa


def exchange_type(kind: pa.DataType) -> pa.DataType:
    """The portable type for a stored column: timestamps instead of ``date64``."""
    if pa.types.is_date64(kind):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(exchange_type(kind.value_type))
    return kind


def to_exchange(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column cast to its portable type."""
    target = exchange_type(column.type)
    if target == column.type:
        return column
    if pa.types.is_list(target):
        if pa.types.is_timestamp(target.value_type):
            return column.cast(pa.list_(pa.int64())).cast(target)
        return column.cast(target)
    return column.cast(pa.int64()).cast(target)


def spark_field(field: pa.Field) -> pa.Field:
    """A field in a type that Spark supports."""
    kind = exchange_type(field.type)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", "UTC")
    elif pa.types.is_unsigned_integer(kind):
        if kind.bit_width == 64:
            kind = pa.decimal128(20, 0)
        else:
            kind = pa.int64()
    return pa.field(field.name, kind, nullable=True)
