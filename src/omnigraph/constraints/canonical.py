"""Canonical spellings of whole columns, from which ids and uniqueness are computed.

The result is that of ``spell`` in ``omnigraph.model.types`` for each value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidValue
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_array, as_integers

SHOWN_CHARS_MAX: Final = 40


def spell_column(column: pa.ChunkedArray | pa.Array, kind: PropertyType) -> pa.Array:
    """The spelling of every value; null stays null."""
    values = as_array(column)
    match kind.scalar.family:
        case "string":
            return values
        case "float":
            spell = kind.scalar.spell
            spelled = [None if value is None else spell(value) for value in values.to_pylist()]
            return pa.array(spelled, type=pa.string())
        case "bool" | "integer" | "date" | "datetime":
            return as_integers(values, kind.scalar.family).cast(pa.string())
        case "blob":
            raise InvalidValue("a Blob has no canonical spelling")
        case family:
            assert_never(family)


def derive_ids(node: NodeType, rows: pa.Table) -> pa.Array:
    """The ids that the key of ``node`` gives to stored rows; null where a member is null."""
    spelled = [spell_column(rows[name], node.properties[name].type) for name in node.key_properties]
    if len(spelled) == 1:
        return spelled[0]
    members = zip(*(column.to_pylist() for column in spelled), strict=True)
    return pa.array([_composite(values) for values in members], type=pa.string())


def _composite(values: Sequence[str | None]) -> str | None:
    if None in values:
        return None
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def tuple_keys(owner: NodeType | EdgeType, columns: Sequence[str], rows: pa.Table) -> pa.Array:
    """One key per row, equal exactly for equal tuples; null when a member is null."""
    spelled = []
    for name in columns:
        declared = owner.properties.get(name)
        column = rows[name]
        spelled.append(spell_column(column, declared.type) if declared else as_array(column))
    if len(spelled) == 1:
        return spelled[0]
    parts = []
    for column in spelled:  # the length in front keeps ("a", "bc") apart from ("ab", "c")
        parts += [pc.binary_length(column).cast(pa.string()), column]
    return pc.binary_join_element_wise(*parts, ":")


def shown_value(owner: NodeType | EdgeType, rows: pa.Table, name: str, at: int) -> str:
    """One value for a message, truncated if long; empty for null."""
    column = rows[name].slice(at, 1)
    if column.null_count:
        return ""
    declared = owner.properties.get(name)
    if declared is not None and not declared.type.is_list:
        column = as_integers(column, declared.type.scalar.family)
    value = column[0].as_py()
    if declared is not None and declared.type.scalar.family in ("date", "datetime"):
        value = declared.type.produce(value)
    return shortened(repr(value))


def shortened(text: str) -> str:
    """The string, truncated if long."""
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"
