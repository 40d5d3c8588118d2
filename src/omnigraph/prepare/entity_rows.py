"""Rows of single entities: given values to stored values, and stored values to Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInput, InvalidValue
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.model.python_values import JSON_SCALARS, plain_value
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_array, stored_array
from omnigraph.storage.lance.blobs import blob_array

Row = dict[str, Any]
"""An entity as stored values by column."""


def accept_row(owner: NodeType | EdgeType, values: Mapping[str, Any]) -> Row:
    """Given values as a stored row: omitted properties get defaults, unknown ones are errors."""
    row: Row = dict.fromkeys(owner.properties)
    for name, value in values.items():
        declared = owner.properties.get(name)
        if value is not None or declared is None or declared.default is None:
            row[name] = accept_value(owner, name, value)
    complete_row(owner, row)
    return row


def accept_given(owner: NodeType | EdgeType, values: Mapping[str, Any]) -> Row:
    """The given values alone, as stored values.

    A null for a property with a default is replaced by the default, so that repeating an upsert
    changes nothing.
    """
    row: Row = {}
    for name, value in values.items():
        declared = owner.properties.get(name)
        if value is None and declared is not None and declared.default is not None:
            row[name] = declared.default_stored
        else:
            row[name] = accept_value(owner, name, value)
    for name in owner.key_properties:
        row.setdefault(name, owner.properties[name].default_stored)
    return row


def complete_row(owner: NodeType | EdgeType, row: Row) -> None:
    """Set the defaults of properties without a value; raise when a required one stays null."""
    for name, declared in owner.properties.items():
        if row[name] is None:
            row[name] = declared.default_stored
            if row[name] is None and not declared.type.nullable:
                raise InvalidValue(
                    f"{owner.name}.{name} is required",
                    details={"type_key": owner.key, "property": name},
                )


def with_defaults(
    owner: NodeType | EdgeType, rows: pa.Table, given: Callable[[str], Any] | None = None
) -> pa.Table:
    """Rows in which nulls are replaced by defaults.

    ``given`` returns a mask for a property: only the nulls that it marks are replaced. Nulls of
    keys always are.
    """
    for at, name in enumerate(rows.column_names):
        declared = owner.properties.get(name)
        if declared is None or declared.default is None or not rows[name].null_count:
            continue
        default = column_array(declared.type, [declared.default_stored])[0]
        column = rows[name]
        filled = pc.fill_null(column, default)
        if given is not None and name not in owner.key_properties:
            filled = pc.if_else(pa.array(given(name)), filled, column)
        rows = rows.set_column(at, name, filled)
    return rows


def accept_value(owner: NodeType | EdgeType, name: str, value: Any) -> Any:
    """A given value as a stored value; raises an error that names the property."""
    declared = owner.properties.get(name)
    if declared is None:
        hint = did_you_mean(name, owner.properties)
        raise InvalidInput(
            f"{owner.name} has no property {name}" + (f"; {hint}" if hint else ""),
            remedy="Pass id= beside the values." if name == "id" else None,
            details={"type_key": owner.key, "property": name},
        )
    try:
        return _accept(declared.type, value)
    except InvalidValue as problem:
        raise InvalidValue(
            f"{owner.name}.{name}: {problem.message}",
            remedy=problem.remedy,
            details={"type_key": owner.key, "property": name},
        ) from None


def _accept(kind: PropertyType, value: Any) -> Any:
    if type(value) in JSON_SCALARS:
        return kind.accept(value)
    if kind.is_blob and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    value = plain_value(value)
    return kind.accept(list(value) if isinstance(value, tuple) else value)


def rows_to_arrow(owner: NodeType | EdgeType, rows: Sequence[Row]) -> pa.Table:
    """Stored rows as a table in the column order of the type."""
    columns = {
        column.name: column_array(column.type, [row.get(column.name) for row in rows])
        for column in owner.columns()
    }
    return pa.table(columns)


def column_array(kind: PropertyType, values: Sequence[Any]) -> pa.Array:
    """Stored values of one property as a column of its physical type."""
    return blob_array(values) if kind.is_blob else stored_array(kind, values)


def replace_at(column: Any, positions: Sequence[int], given: pa.Array) -> pa.Array:
    """A column with other values at some positions."""
    order = np.arange(len(column))
    order[list(positions)] = len(column) + np.arange(len(positions))
    return pa.concat_arrays([as_array(column).cast(given.type), given]).take(pa.array(order))
