"""Content keys of edges, to find equal edges of one type.

Two edges are equal when they have the same endpoints and equal values of every property; an absent
value is null, and null equals null. Values are compared by their canonical spelling, lists by
items and order, Blobs by a digest of their bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.canonical import spell_column
from omnigraph.lang.schema import EdgeType
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_array, as_integers
from omnigraph.storage.lance.blobs import is_blob_type

_NULL: Final = "-"
"""Stands in a content key for the length of a null value."""


def content_columns(edge: EdgeType) -> tuple[str, ...]:
    """The columns that form the content of an edge: endpoints and properties."""
    return tuple(column.name for column in edge.columns() if column.name != "id")


def spelled_columns(edge: EdgeType, rows: pa.Table) -> dict[str, pa.Array]:
    """The spelling of every value of every content column; null stays null."""
    return {
        column.name: _spelled(rows[column.name], column.type)
        for column in edge.columns()
        if column.name != "id"
    }


def content_keys(edge: EdgeType, rows: pa.Table) -> pa.Array:
    """One key per row, equal exactly for equal edges."""
    parts: list[Any] = []
    for column in spelled_columns(edge, rows).values():
        # The length in front keeps ("a", "bc") apart from ("ab", "c").
        lengths = pc.binary_length(column).cast(pa.string())
        parts += [pc.fill_null(lengths, _NULL), pc.fill_null(column, "")]
    return as_array(pc.binary_join_element_wise(*parts, ":"))


def content_numbers(
    edge: EdgeType, ends: np.ndarray[Any, Any], parts: Sequence[pa.Table]
) -> np.ndarray[Any, Any]:
    """One number per row of all parts that is equal exactly for equal edges.

    ``ends`` has one number per row and pair of ends. Nothing is spelled where values of the type
    are equal exactly when their spellings are.
    """
    numbers = _encoded(pa.array(ends))
    for name, declared in edge.properties.items():
        columns = [_comparable(part[name], declared.type) for part in parts]
        values = _encoded(pa.concat_arrays([c.cast(columns[0].type) for c in columns]))
        numbers = _encoded(pa.array(numbers * (values.max(initial=0) + 1) + values))
    return numbers


def _encoded(values: pa.Array) -> np.ndarray[Any, Any]:
    """Distinct values numbered from zero on; null is a value."""
    codes = values.dictionary_encode(null_encoding="encode").indices
    found: np.ndarray[Any, Any] = codes.to_numpy().astype(np.int64)
    return found


def _comparable(column: Any, kind: PropertyType) -> pa.Array:
    if kind.is_single and kind.scalar.family != "float":
        return as_integers(as_array(column), kind.scalar.family)
    return _spelled(column, kind)


def _spelled(column: Any, kind: PropertyType) -> pa.Array:
    values = as_array(column)
    if is_blob_type(values.type):
        return pa.array([_blob(item) for item in values.storage.to_pylist()], pa.string())
    if kind.is_single:
        return spell_column(values, kind)
    lengths = pc.list_value_length(values).to_pylist()
    items = iter(spell_column(values.flatten(), kind).to_pylist())
    found = [None if n is None else json.dumps([next(items) for _ in range(n)]) for n in lengths]
    return pa.array(found, pa.string())


def _blob(item: dict[str, Any] | None) -> str | None:
    if item is None:
        return None
    if item["data"] is None:
        return f"uri:{item['uri']}"
    return hashlib.sha256(item["data"]).hexdigest()
