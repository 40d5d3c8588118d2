"""The scalar functions on columns. Null in an argument gives null, unless a function says else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CalculationFailed
from omnigraph.lang.query.typed_expressions import FunctionCall
from omnigraph.model.calendar import DAY_MS, parse_date, parse_instant
from omnigraph.predicates.calendar import (
    MONTHS,
    PARTS,
    UNITS,
    added,
    difference,
    part_of,
    truncated,
)
from omnigraph.predicates.compare import Operand, compare
from omnigraph.predicates.values import Literal, StringDictionary, Values, column_values, repeated

Arguments: TypeAlias = Sequence[Operand]

I64_LIMIT: Final = 2.0**63
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")
_FLOAT: Final = re.compile(r"\s*[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?\s*")


def call_function(call: FunctionCall, arguments: Arguments, rows: int) -> Values:
    """The values of a call for each row."""
    if call.function in _COMPARED:
        return _compared(call, arguments, rows)
    if call.function in _WORDS:
        words = _of_dictionary(call, arguments[0])
        if words is not None:
            return words
    columns = [_array(item, rows) for item in arguments]
    try:
        found = _FUNCTIONS[call.function](call, columns, arguments)
    except pa.ArrowInvalid as problem:
        raise _failed(call, str(problem).splitlines()[0]) from None
    declared = call.type.arrow_type()
    return column_values(found if found.type == declared else found.cast(declared), call.type)


def _array(operand: Operand, rows: int) -> pa.Array:
    column = repeated(operand, rows) if isinstance(operand, Literal) else operand
    found = column.to_arrow()
    return found.cast(pa.string()) if pa.types.is_large_string(found.type) else found


def _failed(call: FunctionCall, problem: str) -> CalculationFailed:
    return CalculationFailed(f"`{call.function}`: {problem}")


def _literal(arguments: Arguments, place: int) -> Any:
    """The value of an argument that is the same in all rows; the checker allows no other."""
    found = arguments[place]
    assert isinstance(found, Literal)
    return found.value


def _each(
    call: FunctionCall, columns: Sequence[pa.Array], function: Callable[..., Any]
) -> pa.Array:
    """Apply a Python function to the values of each row."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    found = [None if None in row else function(*row) for row in rows]
    return pa.array(found, type=call.type.arrow_type())


# Texts


def _of_dictionary(call: FunctionCall, argument: Operand) -> Values | None:
    """The function on each distinct string, where a column is a dictionary."""
    if isinstance(argument, Literal) or argument.dictionary is None:
        return None
    made = _WORDS[call.function](argument.dictionary.array)
    words = made.unique()
    words = words.take(pc.sort_indices(words))
    places = pc.index_in(made, value_set=words).to_numpy(zero_copy_only=False)
    codes = np.append(places, -1).astype(np.int32)[argument.data]
    return Values(call.type, codes, None, StringDictionary(words.cast(pa.string())))


def _lower(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return _WORDS[call.function](columns[0])


def _compared(call: FunctionCall, arguments: Arguments, rows: int) -> Values:
    left, right = arguments
    if isinstance(left, Literal) and isinstance(right, Literal):
        left = repeated(left, rows)
    mask = compare(_COMPARED[call.function], left, right, rows)
    valid = np.ones(rows, dtype=bool)
    for side in (left, right):
        if isinstance(side, Literal):
            valid &= side.value is not None
        elif (known := side.is_valid()) is not None:
            valid &= known
    return Values(call.type, mask, valid)


def _length(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return pc.utf8_length(columns[0])


def _substring(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    if all(isinstance(i, Literal) and i.value is not None for i in arguments[1:]):
        start = max(0, _literal(arguments, 1))
        stop = start + max(0, _literal(arguments, 2)) if len(arguments) > 2 else None
        return pc.utf8_slice_codeunits(columns[0], start=start, stop=stop)
    return _each(call, columns, _part)


def _part(text: str, start: int, length: int | None = None) -> str:
    start = max(0, start)
    return text[start:] if length is None else text[start : start + max(0, length)]


def _replace(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return _each(call, columns, lambda text, old, new: text.replace(old, new) if old else text)


def _split(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return _each(call, columns, lambda text, by: text.split(by) if by else [text])


def _concat(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return pc.binary_join_element_wise(*columns, "")


def _ends_with(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    end = arguments[1]
    if isinstance(end, Literal) and end.value is not None:
        return pc.ends_with(columns[0], pattern=str(end.value))
    return _each(call, columns, lambda text, part: text.endswith(part))


def _matches(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    pattern = _literal(arguments, 1)
    if pattern is None:
        return pa.nulls(len(columns[0]), pa.bool_())
    return pc.match_substring_regex(columns[0], pattern=pattern)


# Any type


def _coalesce(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    declared = call.type.arrow_type()
    return pc.coalesce(*(item.cast(declared) for item in columns))


def _extreme(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    function = pc.min_element_wise if call.function == "least" else pc.max_element_wise
    if call.type.scalar.family == "bool":
        columns = [column.cast(pa.int8()) for column in columns]
    return function(*columns, skip_nulls=True)


def _to_string(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    kind = arguments[0].type
    if kind.is_string or kind.scalar.family == "integer":
        return columns[0].cast(pa.string())
    scalar = kind.scalar
    is_time = scalar.family in ("date", "datetime")
    values = (arguments[0] if isinstance(arguments[0], Values) else None) or repeated(
        _as_literal(arguments[0]), len(columns[0])
    )
    shown = scalar.produce if is_time else scalar.spell
    return pa.array([None if v is None else shown(v) for v in values.to_list()], type=pa.string())


def _as_literal(operand: Operand) -> Literal:
    assert isinstance(operand, Literal)
    return operand


# Numbers


def _abs(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return pc.abs_checked(columns[0])


def _round(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    digits = _literal(arguments, 1) if len(arguments) > 1 else 0
    if digits is None:
        return pa.nulls(len(columns[0]), columns[0].type)
    if not -300 <= digits <= 300:
        raise _failed(call, f"{digits} digits are not between -300 and 300")
    if call.type.scalar.family == "integer":
        return _each(call, columns[:1], lambda value: _round_whole(value, -digits))
    made = pc.round(columns[0], ndigits=digits, round_mode="half_towards_infinity")
    # What is too large for an exact step is a whole number already.
    return pc.if_else(pc.is_finite(made), made, columns[0])


def _round_whole(value: int, places: int) -> int:
    if places <= 0:
        return value
    unit: int = 10**places
    rounded = (abs(value) + unit // 2) // unit * unit
    return rounded if value >= 0 else -rounded


def _floor(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    if call.type.scalar.family == "integer":
        return columns[0]
    return (pc.floor if call.function == "floor" else pc.ceil)(columns[0])


def _to_int(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    column = columns[0]
    if pa.types.is_string(column.type):
        return _each(call, columns, lambda text: _whole(call, text))
    if pa.types.is_floating(column.type):
        known = column.drop_null().to_numpy(zero_copy_only=False)
        if not ((known >= -I64_LIMIT) & (known < I64_LIMIT)).all():
            raise _failed(call, "the number does not fit I64")
        return pc.trunc(column.cast(pa.float64())).cast(pa.int64())
    return column.cast(pa.int64())


def _whole(call: FunctionCall, text: str) -> int:
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise _failed(call, f'"{text[:40]}" is not a whole number of 64 bits')
    return int(text)


def _to_float(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    if pa.types.is_string(columns[0].type):
        return _each(call, columns, lambda text: _float(call, text))
    return columns[0].cast(pa.float64(), safe=False)


def _float(call: FunctionCall, text: str) -> float:
    value = float(text) if _FLOAT.fullmatch(text) else np.inf
    if not np.isfinite(value):
        raise _failed(call, f'"{text[:40]}" is not a finite number')
    return float(value)


# Times


def _to_date(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    column = columns[0]
    if pa.types.is_string(column.type):
        days = pa.array([_time(call, parse_date, t) for t in column.to_pylist()], type=pa.int32())
        return days.view(pa.date32())
    if pa.types.is_date64(column.type):
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        found = column.view(pa.int64()).fill_null(0).to_numpy() // DAY_MS
        if not (np.abs(found) < 2**31).all():
            raise _failed(call, "the instant is on no day that a Date can hold")
        return pa.array(found.astype(np.int32), mask=~valid).view(pa.date32())
    return column


def _to_datetime(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    column = columns[0]
    if pa.types.is_string(column.type):
        texts = column.to_pylist()
        return pa.array([_time(call, parse_instant, t) for t in texts], pa.int64()).view(
            pa.date64()
        )
    if pa.types.is_date32(column.type):
        days = column.view(pa.int32()).cast(pa.int64())
        return pc.multiply_checked(days, DAY_MS).view(pa.date64())
    return column


def _time(call: FunctionCall, parse: Callable[[str], int | None], text: str | None) -> int | None:
    if text is None:
        return None
    found = parse(text)
    if found is None:
        raise _failed(call, f'"{text[:40]}" is not a {call.type.scalar}')
    return found


def _date_part(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    part = _unit(call, arguments, 1, PARTS)
    return pa.nulls(len(columns[0]), pa.int64()) if part is None else part_of(part, columns[0])


def _date_trunc(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    unit = _unit(call, arguments, 1, (*MONTHS, *UNITS))
    column = columns[0]
    return pa.nulls(len(column), column.type) if unit is None else truncated(unit, column)


def _add(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    unit = _unit(call, arguments, 2, (*MONTHS, *UNITS))
    column, amounts, _ = columns
    return pa.nulls(len(column), column.type) if unit is None else added(unit, column, amounts)


def _between(call: FunctionCall, columns: Sequence[pa.Array], arguments: Arguments) -> pa.Array:
    unit = _unit(call, arguments, 2, (*MONTHS, *UNITS))
    start, end, _ = columns
    return pa.nulls(len(start), pa.int64()) if unit is None else difference(unit, start, end)


def _unit(call: FunctionCall, arguments: Arguments, place: int, known: Sequence[str]) -> str | None:
    """A unit of time, which a Date must be able to hold; None for null."""
    unit = _literal(arguments, place)
    if unit is None:
        return None
    is_date = call.function in ("add", "date_trunc") and call.type.scalar.family == "date"
    usable = [name for name in known if not is_date or name not in ("hour", "minute", "second")]
    if unit not in usable:
        raise _failed(call, f'"{unit[:40]}" is not one of {", ".join(usable)}')
    return str(unit)


# Lists


def _size(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    return pc.list_value_length(columns[0])


def _item(call: FunctionCall, columns: Sequence[pa.Array], _: Arguments) -> pa.Array:
    lists, index = columns
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    sizes = np.diff(lists.offsets.to_numpy())
    places = index.cast(pa.int64(), safe=False).fill_null(-1).to_numpy()
    valid = lists.is_valid().to_numpy(zero_copy_only=False)
    valid = valid & (places >= 0) & (places < sizes)
    wanted = pa.array(np.where(valid, starts + places, 0), mask=~valid)
    return lists.values.take(wanted)


_COMPARED: Final[Mapping[str, Any]] = {"contains": "contains", "starts_with": "starts_with"}
_WORDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
}
_FUNCTIONS: Final[
    Mapping[str, Callable[[FunctionCall, Sequence[pa.Array], Arguments], pa.Array]]
] = {
    **dict.fromkeys(_WORDS, _lower),
    "length": _length,
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "concat": _concat,
    "ends_with": _ends_with,
    "matches": _matches,
    "coalesce": _coalesce,
    "least": _extreme,
    "greatest": _extreme,
    "to_string": _to_string,
    "abs": _abs,
    "round": _round,
    "floor": _floor,
    "ceil": _floor,
    "to_int": _to_int,
    "to_float": _to_float,
    "to_date": _to_date,
    "to_datetime": _to_datetime,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "add": _add,
    "between": _between,
    "size": _size,
    "item": _item,
}
