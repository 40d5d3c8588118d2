"""Arithmetic and functions by brute force: one value at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from omnigraph.errors import CalculationFailed
from omnigraph.lang.query.typed_expressions import (
    Calculation,
    Expression,
    FunctionCall,
    ListOf,
    Opposite,
)
from omnigraph.model.calendar import DAY_MS, format_date, format_instant, parse_date
from omnigraph.model.floats import round_single
from omnigraph.model.types import PropertyType

_LIMITS: Final = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}


def value_of(expression: Expression, values: Sequence[Any]) -> Any:
    """The value of an operator or a function whose operands have these values."""
    kind = expression.type
    assert isinstance(kind, PropertyType)
    if isinstance(expression, FunctionCall) and expression.function in _SKIPPING_NULLS:
        known = [value for value in values if value is not None]
        return _SKIPPING_NULLS[expression.function](known) if known else None
    if None in values:
        return None
    match expression:
        case ListOf():
            return list(values)
        case Opposite():
            return fitting(kind, -values[0])
        case Calculation():
            return fitting(kind, _calculated(expression.operator, *values))
        case FunctionCall():
            return _called(expression, values)
        case _:
            raise AssertionError(expression)


def fitting(kind: PropertyType, value: Any) -> Any:
    """The value as one of a number type, or the error of a value that is none."""
    if kind.scalar.family == "integer":
        low, high = _LIMITS[kind.scalar.name]
        if not low <= value <= high:
            raise CalculationFailed("out of range")
        return value
    found = round_single(value) if kind.scalar.name == "F32" else float(value)
    if not math.isfinite(found):
        raise CalculationFailed("not finite")
    return found


def _calculated(operator: str, left: Any, right: Any) -> Any:
    if operator in "/%" and not right:
        raise CalculationFailed("by zero")
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
    if isinstance(left, float):
        return math.fmod(left, right)
    return abs(left) % abs(right) * (1 if left >= 0 else -1)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


_SKIPPING_NULLS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "coalesce": lambda values: values[0],
    "least": lambda values: min(values, key=_bytes),
    "greatest": lambda values: max(values, key=_bytes),
}


def _called(call: FunctionCall, values: Sequence[Any]) -> Any:
    first = values[0]
    kind = call.arguments[0].type
    assert isinstance(kind, PropertyType)
    match call.function:
        case "lower":
            return first.lower()
        case "upper":
            return first.upper()
        case "trim":
            return first.strip()
        case "length" | "size":
            return len(first)
        case "substring":
            start = max(0, values[1])
            return first[start:] if len(values) < 3 else first[start : start + max(0, values[2])]
        case "concat":
            return "".join(values)
        case "contains":
            return values[1] in first
        case "starts_with":
            return first.startswith(values[1])
        case "ends_with":
            return first.endswith(values[1])
        case "replace":
            return first.replace(values[1], values[2]) if values[1] else first
        case "abs":
            return fitting(call.type, abs(first))
        case "round":
            return _rounded(call, first)
        case "floor":
            return float(math.floor(first)) if isinstance(first, float) else first
        case "ceil":
            return float(math.ceil(first)) if isinstance(first, float) else first
        case "item":
            return first[values[1]] if 0 <= values[1] < len(first) else None
        case "to_float":
            return float(first)
        case "to_string":
            return _shown(kind, first)
        case "date_part":
            days = first if kind.scalar.family == "date" else first // DAY_MS
            parts = format_date(days).split("-")
            return int(parts[["year", "month", "day"].index(values[1])])
        case "to_date":
            return first // DAY_MS if kind.scalar.family == "datetime" else parse_date(first)
    raise AssertionError(call)


def _rounded(call: FunctionCall, value: Any) -> Any:
    if isinstance(value, int):
        return value
    return float(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def _shown(kind: PropertyType, value: Any) -> str:
    if kind.scalar.family == "date":
        return format_date(value)
    if kind.scalar.family == "datetime":
        return format_instant(value)
    return kind.scalar.spell(value)
