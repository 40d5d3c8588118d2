"""Schema changes of one type: the column changes of its table, and its rows in the new schema.

Properties are matched by identity. Pure functions; ``storage/lance/staging/columns.py`` stages the
column changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType, Property
from omnigraph.lang.schema.change.members import renamed_values
from omnigraph.lang.schema.change.plan import WIDENINGS
from omnigraph.model.types import PropertyType
from omnigraph.prepare.entity_rows import column_array
from omnigraph.storage.lance.arrow_schema import column_field
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.staging.columns import ColumnChange, hidden_name, with_names

EntityType = NodeType | EdgeType


def column_changes(
    before: EntityType, after: EntityType, stored: Collection[str], *, hard: bool = False
) -> list[ColumnChange]:
    """The column changes of a table; ``stored`` are all its columns, hidden ones included."""
    olds = {item.property_id: item for item in before.properties.values()}
    changes = []
    for item in after.properties.values():
        old = olds.pop(item.property_id, None)
        field = column_field(item.name, item.type, item.property_id)
        if old is None:
            hidden = hidden_name(item.property_id)
            if hidden in stored:
                changes.append(ColumnChange(hidden, field))
            else:
                fill = PropertyBackfill(item, after, before)
                changes.append(ColumnChange(None, field, fill if fill.gives_values else None))
        elif is_wider(old, item) or renamed_values(old, item):
            mapped = tuple(renamed_values(old, item).items())
            changes.append(ColumnChange(old.name, field, cast=True, mapped=mapped))
        elif old.name != item.name or (item.type.nullable and not old.type.nullable):
            changes.append(ColumnChange(old.name, field))
    for old in olds.values():
        changes.append(ColumnChange(old.name, None if hard else _hidden_field(old)))
    return changes


def is_wider(old: Property, new: Property) -> bool:
    """Whether the scalar type differs, so that stored values have to be cast."""
    return old.type.scalar != new.type.scalar


@dataclass(frozen=True, slots=True)
class Misfit:
    """A stored value that another type cannot represent, and the value's own type."""

    value: Any
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Reshaped:
    """Rows in another schema, and by column and position the values that did not fit."""

    rows: pa.Table
    misfits: Mapping[str, Mapping[int, Misfit]] = field(default_factory=dict)


def reshaped(rows: pa.Table, before: EntityType, after: EntityType) -> pa.Table:
    """Rows of the old schema as rows of the new one; other columns, such as row ids, stay."""
    found = fitted(rows, before, after)
    assert not any(found.misfits.values()), "a schema change only widens types"
    return found.rows


def fitted(rows: pa.Table, before: EntityType, after: EntityType) -> Reshaped:
    """Like ``reshaped``, between any two schemas of a type: values that do not fit become null."""
    names = {item.property_id: name for name, item in before.properties.items()}
    columns: dict[str, Any] = {
        name: rows[name] for name in rows.column_names if name not in before.properties
    }
    misfits: dict[str, Mapping[int, Misfit]] = {}
    for name, item in after.properties.items():
        old = names.get(item.property_id)
        if old is None:
            older = PropertyBackfill(item, after, before)
            if older.gives_values:
                columns[name] = older.values(rows)
            else:
                columns[name] = column_array(item.type, [None] * rows.num_rows)
        elif old in rows.column_names:
            was = before.properties[old]
            found = with_names(rows[old], tuple(renamed_values(was, item).items()))
            if is_wider(was, item):
                found, misfits[name] = _cast(found, was.type, item.type)
            columns[name] = found
    return Reshaped(pa.table(columns), misfits)


def _cast(column: Any, was: PropertyType, kind: PropertyType) -> tuple[Any, Mapping[int, Misfit]]:
    """Numbers cast to another number type, exactly; a number that does not fit becomes null."""
    if (was.scalar.name, kind.scalar.name) in WIDENINGS:
        return column.cast(kind.arrow_type()), {}
    values = column.to_pylist()
    wrong = {at: Misfit(v, was) for at, v in enumerate(values) if not _holds(kind, v)}
    kept = [None if at in wrong else value for at, value in enumerate(values)]
    return pa.array(kept, kind.arrow_type()), wrong


def _holds(kind: PropertyType, value: Any) -> bool:
    """Whether a number type represents this number, or all numbers of a list, exactly."""
    if value is None:
        return True
    if isinstance(value, list):
        return all(_holds(kind, one) for one in value)
    if kind.scalar.family == "float":
        if math.isnan(value) or kind.scalar.name != "F32":
            return True
        within = bool(abs(value) <= np.finfo(np.float32).max)
        return within and float(np.float32(value)) == value
    physical = kind.arrow_type()
    limits = np.iinfo((physical.value_type if kind.is_list else physical).to_pandas_dtype())
    return bool(limits.min <= value <= limits.max)


def columns_for(before: EntityType, after: EntityType) -> list[str]:
    """The stored columns that the new schema needs: system columns, and the sources of its own."""
    wanted = {item.property_id for item in after.properties.values()}
    read = set().union(
        *(PropertyBackfill(item, after, before).reads() for item in after.properties.values())
    )
    return [
        column.name
        for column in before.columns()
        if column.property_id is None or column.property_id in wanted or column.name in read
    ]


def _hidden_field(item: Property) -> pa.Field:
    field = column_field(item.name, item.type, item.property_id)
    return field.with_name(hidden_name(item.property_id)).with_nullable(True)
