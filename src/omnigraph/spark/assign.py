"""Assigning values to properties of entities that exist, at any size, as one commit.

Values come by id, in parts as those of a load, and go the way of a merge: what is stored is found
bucket by bucket and written again, and the rows it replaces are marked as deleted. Entities that
were removed in the meantime stay removed; what others changed in the meantime stays changed,
because rows are read at the very state that the commit is made on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.constraints.spelling import as_array
from omnigraph.errors import InvalidInput
from omnigraph.schema import NodeType
from omnigraph.spark.parts import Part
from omnigraph.storage.blobs import complete_rows
from omnigraph.storage.places import ADDRESS
from omnigraph.storage.staging import with_hidden, write_rows
from omnigraph.storage.tables import ROW_ID, PinnedTable
from omnigraph.syntax import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_AT_ONCE: Final = 128 << 20
"""Whole rows that are held while they are written: a bucket has many more than fit into memory
where they carry vectors."""

ROWS_AT_ONCE_MIN: Final = 4_096
VALUE_BYTES: Final = 24
"""What a value of no fixed width is thought to take."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which properties are set, and where their values are: tables of ``id`` and properties."""

    properties: tuple[str, ...]
    parts: tuple[Part, ...]


def require_assignable(owner: NodeType, names: Sequence[str]) -> None:
    """Refuse properties that do not exist, and those that identify an entity."""
    fixed = {name for columns in (owner.key_properties, *owner.unique) for name in columns}
    for name in names:
        if name not in owner.properties:
            hint = did_you_mean(name, owner.properties)
            raise InvalidInput(
                f"{owner.name} has no property {name!r}" + (f"; {hint}" if hint else ""),
                remedy="Add the property to the schema first.",
                details={"type_key": owner.key, "property": name},
            )
        if name in fixed:
            raise InvalidInput(
                f"{owner.name}.{name} identifies a node and cannot be computed",
                remedy="Choose a property that is neither in @key nor in @unique.",
                details={"type_key": owner.key, "property": name},
            )


def write_assigned(
    source: PinnedTable,
    target: PinnedTable,
    located: pa.Table,
    values: pa.Table,
    names: Sequence[str],
) -> list[Any]:
    """Write the located rows with other values, by id; returns the files that hold them."""
    import pyarrow.compute as pc

    written: list[Any] = []
    step = _rows_at_once(source.schema)
    for start in range(0, located.num_rows, step):
        chosen = located.slice(start, step)
        rows = complete_rows(source, chosen[ROW_ID].to_pylist())
        order = pc.index_in(rows["id"], value_set=as_array(values["id"]))
        for name in names:
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, values[name].take(order))
        rows = with_hidden(source, rows, chosen[ADDRESS].to_numpy())
        written += write_rows(target, rows)
    return written


def _rows_at_once(schema: pa.Schema) -> int:
    import pyarrow as pa

    width = 0
    for field in schema:
        fixed = pa.types.is_fixed_size_list(field.type)
        width += field.type.list_size * 4 if fixed else VALUE_BYTES
    return max(BYTES_AT_ONCE // max(width, 1), ROWS_AT_ONCE_MIN)
