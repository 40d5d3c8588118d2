"""The content of edges: when two edges of one type are equal.

Two edges are equal when they have the same ends and every property has the same value; an absent
value is null, and null equals null. Values are compared by their canonical spelling, lists by
items and order, Blobs by a digest of their bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.canonical import spell_column
from omnigraph.lang.schema import EdgeType
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import is_blob_type

_NULL: Final = "-"
"""Stands for the length of a value that is null; a length never looks like it."""


def content_columns(edge: EdgeType) -> tuple[str, ...]:
    """What the content of an edge consists of: its ends and its properties."""
    return tuple(column.name for column in edge.columns() if column.name != "id")


def spelled_columns(edge: EdgeType, rows: pa.Table) -> dict[str, pa.Array]:
    """The spelling of every value of every content column; null stays null."""
    return {
        column.name: _spelled(rows[column.name], column.type)
        for column in edge.columns()
        if column.name != "id"
    }


def content_keys(edge: EdgeType, rows: pa.Table) -> pa.Array:
    """One text per row that is equal exactly for equal edges."""
    parts: list[Any] = []
    for column in spelled_columns(edge, rows).values():
        # The length in front keeps ("a", "bc") apart from ("ab", "c").
        lengths = pc.binary_length(column).cast(pa.string())
        parts += [pc.fill_null(lengths, _NULL), pc.fill_null(column, "")]
    return as_array(pc.binary_join_element_wise(*parts, ":"))


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
