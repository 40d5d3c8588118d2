"""Strict coercion of Arrow columns to a declared type, with an error for every bad row.

Integers must be in range, floats finite, dates valid, vectors of the right length. The fast path
casts whole columns; where a cast fails, values are converted one by one under the rules of
``omnigraph.model.types``, which also give the messages. Nulls pass: whether a value is required is
a constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidValue
from omnigraph.model.calendar import DAY_MS
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_array, stored_array

INSTANT: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})$"
)
"""Instants that Arrow parses with the same result as ``model.types``."""

DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


@dataclass(frozen=True, slots=True)
class CoercedColumn:
    """The coerced column, and the problems of rows by position; bad values are null.

    A Blob property has ``values`` instead of a column: storage decides how bytes are stored.
    """

    column: pa.Array | None = None
    values: list[Any] | None = None
    problems: dict[int, str] = field(default_factory=dict)


def relaxed(kind: PropertyType) -> PropertyType:
    """The type without its constraints: nulls are allowed, and any string for an enum."""
    return replace(kind, nullable=True, enum=None)


def coerce_column(column: Any, kind: PropertyType) -> CoercedColumn:
    """Coerce a column to the declared type, with the problem of every bad value."""
    values = _plain(as_array(column))
    fast = None if kind.is_blob else _cast(values, kind)
    return CoercedColumn(fast) if fast is not None else coerce_values(_as_json(values), kind)


def _cast(values: pa.Array, kind: PropertyType) -> pa.Array | None:
    """Cast the whole column; None when values must be converted one by one."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind.arrow_type())
    try:
        if kind.dimensions is not None:
            return _cast_vectors(values, kind)
        if kind.is_list:
            return _cast_lists(values, kind)
        return _cast_scalars(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None


def _cast_scalars(values: pa.Array, kind: PropertyType) -> pa.Array | None:
    given, target = values.type, kind.scalar.arrow_type()
    match kind.scalar.family:
        case "string":
            return values if pa.types.is_string(given) else None
        case "bool":
            return values if pa.types.is_boolean(given) else None
        case "integer":
            whole = pa.types.is_integer(given) or (pa.types.is_decimal(given) and given.scale == 0)
            return values.cast(target) if whole else None
        case "float":
            if not (pa.types.is_floating(given) or pa.types.is_integer(given)):
                return None
            cast = pc.cast(values, target, safe=False)
            return cast if pc.all(pc.is_finite(cast)).as_py() in (True, None) else None
        case "date" | "datetime":
            return _cast_times(values, given, kind.scalar.family, target)
        case "blob":
            return None
        case family:
            assert_never(family)


def _cast_times(values: pa.Array, given: Any, family: str, target: Any) -> pa.Array | None:
    if pa.types.is_string(given):
        pattern = DATE if family == "date" else INSTANT
        if pc.all(pc.match_substring_regex(values, pattern)).as_py() is False:
            return None
        if family == "date":
            return values.cast(pa.date32())
        return values.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).cast(target)
    if pa.types.is_integer(given):
        return values.cast(pa.int32() if family == "date" else pa.int64()).cast(target)
    if given == target:
        return values
    if family == "datetime" and pa.types.is_timestamp(given):
        return pc.cast(values, pa.timestamp("ms"), safe=False).cast(pa.int64()).cast(target)
    if family == "datetime" and pa.types.is_date32(given):
        days = values.cast(pa.int32()).cast(pa.int64())
        return pc.multiply_checked(days, DAY_MS).cast(target)
    return None


def _cast_lists(values: pa.Array, kind: PropertyType) -> pa.Array | None:
    if not _is_list(values.type):
        return None
    values = values.cast(pa.list_(values.type.value_type))
    items = _cast_scalars(values.flatten(), replace(kind, is_list=False))
    if items is None or items.null_count:
        return None
    offsets = _packed_offsets(values)
    made = pa.ListArray.from_arrays(offsets, items, mask=values.is_null())
    return made.cast(kind.arrow_type())


def _cast_vectors(values: pa.Array, kind: PropertyType) -> pa.Array | None:
    if not _is_list(values.type):
        return None
    values = values.cast(pa.list_(values.type.value_type))
    if pc.all(pc.equal(pc.list_value_length(values), kind.dimensions)).as_py() is False:
        return None
    items = _cast_scalars(values.flatten(), replace(kind, dimensions=None))
    if items is None or items.null_count:
        return None
    return pa.ListArray.from_arrays(_packed_offsets(values), items, mask=values.is_null()).cast(
        kind.arrow_type()
    )


def _packed_offsets(values: pa.Array) -> pa.Array:
    """The offsets of a flattened list column, in which null rows are empty."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _is_list(kind: Any) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def coerce_values(values: Sequence[Any], kind: PropertyType) -> CoercedColumn:
    """Convert values one by one, with the problem of every bad value."""
    accept = relaxed(kind).accept
    found: list[Any] = []
    problems: dict[int, str] = {}
    for at, value in enumerate(values):
        try:
            owned = kind.is_blob and isinstance(value, bytes)
            found.append(value if owned else accept(value))
        except InvalidValue as problem:
            found.append(None)
            problems[at] = problem.message
    if kind.is_blob:
        return CoercedColumn(values=found, problems=problems)
    return CoercedColumn(stored_array(kind, found), problems=problems)


def _as_json(values: pa.Array) -> list[Any]:
    """Python values in the forms that ``accept`` takes: times as integers."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    elif pa.types.is_date64(values.type):
        values = values.cast(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def _plain(values: pa.Array) -> pa.Array:
    """Decode dictionaries and cast other string types to ``string``."""
    if isinstance(values.type, pa.DictionaryType):
        values = values.cast(values.type.value_type)
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        values = values.cast(pa.string())
    return values
