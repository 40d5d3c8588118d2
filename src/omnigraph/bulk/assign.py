"""Bulk assignment of property values to existing entities, as one commit.

Values are keyed by id and run through a load in mode ``merge``: each bucket looks up its stored
rows, writes them with the new values and marks the replaced rows as deleted. Rows are read at the
snapshot that is committed on, so concurrent changes of other properties are kept and deleted
entities stay deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.staging.rows import with_hidden, write_rows
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

BYTES_AT_ONCE: Final = 128 << 20
"""Bytes of whole rows in memory while they are written: a bucket of rows with vectors may not
fit."""

ROWS_AT_ONCE_MIN: Final = 4_096
VALUE_BYTES: Final = 24
"""Estimated size of a value without fixed width."""


@dataclass(frozen=True, slots=True)
class AssignedProperties:
    """The properties to set on one type.

    ``expected``: properties that must still have the given values, for values computed from them;
    rows where they changed are skipped.
    """

    properties: tuple[str, ...]
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PropertyAssignment:
    """The properties to set, by type key, and the tables of ``id`` and values."""

    types: Mapping[str, AssignedProperties]
    parts: tuple[InputPart, ...]


def require_assignable(owner: NodeType, names: Sequence[str]) -> None:
    """Raise ``InvalidInput`` for unknown properties and those in ``@key`` or ``@unique``."""
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
    assigned: AssignedProperties,
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    """Write the rows in ``located`` with the values of the same id.

    Returns the new fragments, and a mask of the rows that were written.
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
    """A mask of the rows that have the expected values."""
    same = np.ones(rows.num_rows, dtype=bool)
    for name in names:
        equal = pc.equal(rows[name], given[name])
        both_null = pc.and_(rows[name].is_null(), given[name].is_null())
        same &= np.asarray(pc.fill_null(pc.or_kleene(equal, both_null), False))
    return same


def rows_at_once(schema: pa.Schema) -> int:
    """How many rows of a table are in memory at once."""
    width = 0
    for field in schema:
        fixed = pa.types.is_fixed_size_list(field.type)
        width += field.type.list_size * 4 if fixed else VALUE_BYTES
    return max(BYTES_AT_ONCE // max(width, 1), ROWS_AT_ONCE_MIN)
