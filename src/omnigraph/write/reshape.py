"""A type before and after a change of its schema: its columns, and its rows in the new shape.

Properties are followed by identity. Pure functions; storage carries the changes of columns out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from omnigraph.schema import EdgeType, NodeType, Property
from omnigraph.schema.members import renamed_values
from omnigraph.storage.arrow_schema import column_field
from omnigraph.storage.columns import ColumnChange, hidden_name, with_names
from omnigraph.storage.older import OlderRows
from omnigraph.write.rows import column_array

if TYPE_CHECKING:
    import pyarrow as pa

EntityType = NodeType | EdgeType


def column_changes(
    before: EntityType, after: EntityType, stored: Collection[str], *, hard: bool = False
) -> list[ColumnChange]:
    """What becomes of the columns of a table; ``stored`` are all it has, hidden ones too."""
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
                fill = OlderRows(item, after, before)
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
    """Whether stored values have another form afterwards."""
    return old.type.scalar != new.type.scalar


def reshaped(rows: pa.Table, before: EntityType, after: EntityType) -> pa.Table:
    """Rows of the old shape as rows of the new one; other columns, such as row ids, stay."""
    import pyarrow as pa

    names = {item.property_id: name for name, item in before.properties.items()}
    columns: dict[str, Any] = {
        name: rows[name] for name in rows.column_names if name not in before.properties
    }
    for name, item in after.properties.items():
        old = names.get(item.property_id)
        if old is None:
            older = OlderRows(item, after, before)
            if older.gives_values:
                columns[name] = older.values(rows)
            else:
                columns[name] = column_array(item.type, [None] * rows.num_rows)
        elif old in rows.column_names:
            mapped = tuple(renamed_values(before.properties[old], item).items())
            found = with_names(rows[old], mapped)
            wider = is_wider(before.properties[old], item)
            columns[name] = found.cast(item.type.arrow_type()) if wider else found
    return pa.table(columns)


def columns_for(before: EntityType, after: EntityType) -> list[str]:
    """The stored columns that the new shape needs: those of the system, and what it is made of."""
    wanted = {item.property_id for item in after.properties.values()}
    read = set().union(
        *(OlderRows(item, after, before).reads() for item in after.properties.values())
    )
    return [
        column.name
        for column in before.columns()
        if column.property_id is None or column.property_id in wanted or column.name in read
    ]


def _hidden_field(item: Property) -> pa.Field:
    field = column_field(item.name, item.type, item.property_id)
    return field.with_name(hidden_name(item.property_id)).with_nullable(True)
