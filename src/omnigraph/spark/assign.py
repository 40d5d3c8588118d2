"""Assigning values to properties of entities that exist, at any size, as one commit.

Values come by id, in parts as those of a load, and go the way of a merge: what is stored is found
bucket by bucket and written again, and the rows it replaces are marked as deleted. Entities that
were removed in the meantime stay removed; what others changed in the meantime stays changed,
because rows are read at the very state that the commit is made on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.spark.load.parts import Part
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.staging.rows import with_hidden, write_rows
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

BYTES_AT_ONCE: Final = 128 << 20
"""Whole rows that are held while they are written: a bucket has many more than fit into memory
where they carry vectors."""

ROWS_AT_ONCE_MIN: Final = 4_096
VALUE_BYTES: Final = 24
"""What a value of no fixed width is thought to take."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What is set of one type: ``properties``, where ``expected`` ones still have their values.

    A value that was computed from another is of no use once that one has changed.
    """

    properties: tuple[str, ...]
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is set, by type key, and where the values are: tables of ``id`` and properties."""

    types: Mapping[str, Assigned]
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
    assigned: Assigned,
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    """Write the located rows with other values, by id.

    Returns the files that hold them, and which of the rows were written.
    """
    written: list[Any] = []
    masks: list[np.ndarray[Any, Any]] = [np.zeros(0, dtype=bool)]
    step = rows_at_once(source.schema)
    for start in range(0, located.num_rows, step):
        chosen = located.slice(start, step)
        rows = complete_rows(source, chosen[ROW_ID].to_pylist())
        given = values.take(pc.index_in(rows["id"], value_set=as_array(values["id"])))
        masks.append(_unchanged(rows, given, assigned.expected))
        keep = pa.array(masks[-1])
        rows, given, chosen = rows.filter(keep), given.filter(keep), chosen.filter(keep)
        if not rows.num_rows:
            continue
        for name in assigned.properties:
            rows = rows.set_column(rows.column_names.index(name), name, given[name])
        written += write_rows(target, with_hidden(source, rows, chosen[ADDRESS].to_numpy()))
    return written, np.concatenate(masks)


def _unchanged(rows: pa.Table, given: pa.Table, names: Sequence[str]) -> np.ndarray[Any, Any]:
    """Which rows have the values that were expected."""
    same = np.ones(rows.num_rows, dtype=bool)
    for name in names:
        equal = pc.equal(rows[name], given[name])
        both_null = pc.and_(rows[name].is_null(), given[name].is_null())
        same &= np.asarray(pc.fill_null(pc.or_kleene(equal, both_null), False))
    return same


def rows_at_once(schema: pa.Schema) -> int:
    """Rows of a table that fit into memory together."""
    width = 0
    for field in schema:
        fixed = pa.types.is_fixed_size_list(field.type)
        width += field.type.list_size * 4 if fixed else VALUE_BYTES
    return max(BYTES_AT_ONCE // max(width, 1), ROWS_AT_ONCE_MIN)
