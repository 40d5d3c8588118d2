"""Conversions between stored values and Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.model.types import PropertyType


def stored_array(kind: PropertyType, values: Sequence[Any]) -> pa.Array:
    """Stored values as a column of the physical type; blobs: see ``blobs.blob_array``."""
    physical = kind.arrow_type()
    if kind.scalar.family not in ("date", "datetime"):
        return pa.array(values, type=physical)
    integers = pa.int32() if kind.scalar.family == "date" else pa.int64()
    if kind.is_list:
        integers = pa.list_(pa.field("item", integers))
    return pa.array(values, type=integers).cast(physical)


def as_integers(values: Any, family: str) -> Any:
    """Dates as days and instants as milliseconds; other columns as they are."""
    if family == "date":
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if family == "datetime" else values


def as_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
