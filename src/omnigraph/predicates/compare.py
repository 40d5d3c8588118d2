"""Comparison of columns: which rows satisfy ``left operator right``.

Numbers compare by value whatever their widths, strings by their UTF-8 bytes. A comparison with null
is unknown, and unknown is not true. Operands of ``contains`` and ``starts_with`` are positional.
"""

from __future__ import annotations

import math
import operator as python_operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.model.types import PropertyType
from omnigraph.predicates.values import Literal, Mask, Values, values_of

Operand: TypeAlias = Literal | Values

_PYTHON: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": python_operator.eq,
    "!=": python_operator.ne,
    "<": python_operator.lt,
    "<=": python_operator.le,
    ">": python_operator.gt,
    ">=": python_operator.ge,
}
_ARROW: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(operator: ComparisonOperator, left: Operand, right: Operand, rows: int) -> Mask:
    """One truth value per row."""
    for side in (left, right):
        if isinstance(side, Literal) and side.value is None:
            return np.zeros(rows, dtype=bool)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return np.full(rows, compare_literals(operator, left, right))
    if operator == "contains":
        return _contains(left, right)
    if operator == "starts_with":
        return _match_text(left, right, _starts_with)
    if isinstance(left, Literal):
        left, right, operator = right, left, _MIRRORED[operator]  # type: ignore[assignment]
    assert isinstance(left, Values)
    if isinstance(right, Literal):
        found = _with_literal(operator, left, right)
    else:
        found = _columns(operator, left, right)
    return found


def compare_literals(operator: ComparisonOperator, left: Literal, right: Literal) -> bool:
    """The same for two single values, neither of them null."""
    first, second = left.value, right.value
    if operator == "contains":
        return second in first  # type: ignore[operator]
    if operator == "starts_with":
        return str(first).startswith(str(second))
    if isinstance(first, str):
        first, second = first.encode(), str(second).encode()
    return bool(_PYTHON[operator](first, second))


# Numbers, booleans, dates and instants


def _with_literal(operator: str, left: Values, right: Literal) -> Mask:
    if left.dictionary is not None:
        return _codes_with_literal(operator, left, str(right.value))
    if not left.is_numpy:
        return _arrow(_ARROW[operator], left.data, _scalar(left, right))
    found = _numbers_with_literal(operator, left.data, right.value)
    return found if left.valid is None else found & left.valid


def _numbers_with_literal(operator: str, data: Any, value: Any) -> Mask:
    if data.dtype == np.bool_:
        return np.asarray(_PYTHON[operator](data.view(np.int8), int(value)))
    if data.dtype == np.float32:
        with np.errstate(over="ignore"):
            return np.asarray(_PYTHON[operator](data, np.float32(value)))
    if data.dtype.kind == "f":
        return _floats_with_number(operator, data, value)
    return _integers_with_number(operator, data, value)


def _floats_with_number(operator: str, data: Any, value: int | float) -> Mask:
    """Compare 64-bit floats with a number that may be an integer without an exact float."""
    near = _nearest_float(value)
    if near == value:
        return np.asarray(_PYTHON[operator](data, near))
    if operator in ("=", "!="):
        return np.full(len(data), operator == "!=")
    above = near > value  # no float lies between the number and its nearest float
    if operator in ("<", "<="):
        return np.asarray(data < near if above else data <= near)
    return np.asarray(data >= near if above else data > near)


def _nearest_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _integers_with_number(operator: str, data: Any, value: int | float) -> Mask:
    if isinstance(value, float) and not value.is_integer():
        if operator in ("=", "!=") or not math.isfinite(value):
            truth = operator == "!=" or (value > 0) == (operator in ("<", "<="))
            return np.full(len(data), truth if operator != "=" else False)
        # 2.5: less or equal than 2, greater or equal than 3
        floor = math.floor(value)
        value, operator = (floor, "<=") if operator in ("<", "<=") else (floor + 1, ">=")
    value = int(value)
    limits = np.iinfo(data.dtype)
    if limits.min <= value <= limits.max:
        return np.asarray(_PYTHON[operator](data, data.dtype.type(value)))
    return np.full(len(data), bool(_PYTHON[operator](0, 1 if value > limits.max else -1)))


# Strings


def _codes_with_literal(operator: str, left: Values, text: str) -> Mask:
    assert left.dictionary is not None
    data = left.data
    if operator in ("=", "!="):
        place = left.dictionary.places.get(text, -2)
        found = data == place if operator == "=" else (data >= 0) & (data != place)
        return np.asarray(found)
    encoded = left.dictionary.encoded
    low, high = bisect_left(encoded, text.encode()), bisect_right(encoded, text.encode())
    bound = {"<": low, "<=": high, ">": high, ">=": low}[operator]
    found = data < bound if operator in ("<", "<=") else data >= bound
    return np.asarray(found & (data >= 0))


def _columns(operator: str, left: Values, right: Values) -> Mask:
    if left.is_numpy and right.is_numpy and left.dictionary is None and right.dictionary is None:
        first, second = _common(left.data, right.data)
        found = np.asarray(_PYTHON[operator](first, second))
        for side in (left, right):
            if side.valid is not None:
                found &= side.valid
        return found
    return _arrow(_ARROW[operator], left.to_arrow(), right.to_arrow())


def _common(left: Any, right: Any) -> tuple[Any, Any]:
    """Two number columns as types that numpy compares by value."""
    if left.dtype == np.bool_:
        return left.view(np.int8), right.view(np.int8)
    if left.dtype.kind != right.dtype.kind and "f" in (left.dtype.kind, right.dtype.kind):
        return left.astype(np.float64), right.astype(np.float64)
    return left, right


def _scalar(like: Values, literal: Literal) -> Any:
    return pa.scalar(literal.value, type=like.data.type)


def _arrow(function: str, left: Any, right: Any, **options: Any) -> Mask:
    return _mask(getattr(pc, function)(left, right, **options))


def _mask(found: Any) -> Mask:
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))


# Containment


def _contains(left: Operand, right: Operand) -> Mask:
    if left.type.is_list:
        return _has_item(left, right)
    return _match_text(left, right, _has_part)


def _starts_with(texts: Any, part: str) -> Any:
    return pc.starts_with(texts, pattern=part)


def _has_part(texts: Any, part: str) -> Any:
    return pc.match_substring(texts, pattern=part)


def _match_text(left: Operand, right: Operand, matches: Callable[[Any, str], Any]) -> Mask:
    if isinstance(left, Values) and isinstance(right, Literal):
        part = str(right.value)
        if left.dictionary is not None:  # once per distinct string; code -1 is null
            hits = np.append(_mask(matches(left.dictionary.array, part)), False)
            return np.asarray(hits[left.data])
        return _mask(matches(left.data, part))
    texts, parts = (_texts(side) for side in (left, right))
    starts = matches is _starts_with
    rows = len(left) if isinstance(left, Values) else len(right)  # type: ignore[arg-type]
    found = np.zeros(rows, dtype=bool)
    for at in range(rows):
        whole, piece = texts(at), parts(at)
        if whole is not None and piece is not None:
            found[at] = whole.startswith(piece) if starts else piece in whole
    return found


def _texts(side: Operand) -> Callable[[int], str | None]:
    if isinstance(side, Literal):
        value = str(side.value)
        return lambda at: value
    found = side.to_arrow().to_pylist()
    return lambda at: found[at]


def _has_item(left: Operand, right: Operand) -> Mask:
    if isinstance(left, Literal):
        assert isinstance(right, Values)
        assert isinstance(left.value, tuple)
        found = np.zeros(len(right), dtype=bool)
        for item in left.value:
            found |= _with_literal("=", right, Literal(item, left.type))
        return found
    lists = left.data
    parents = pc.list_parent_indices(lists).to_numpy()
    kind = _item_type(left)
    items = values_of(lists.flatten(), kind)
    if isinstance(right, Literal):
        hits = _with_literal("=", items, right)
    else:
        hits = _columns("=", items, right.take(parents))
    found = np.zeros(len(lists), dtype=bool)
    found[parents[hits]] = True
    return found


def _item_type(lists: Values) -> PropertyType:
    return replace(lists.type, is_list=False, nullable=True)
