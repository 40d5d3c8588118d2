"""Literals: their types, and whether one fits a property.

Owns the static type of every literal, the rule which scalar types go together, and the difference
between comparing (by value, any number with any number) and storing (strict).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Final, TypeGuard

from omnigraph.errors import InvalidValue
from omnigraph.lang.query.check.context import Context
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import BOOL, FLOAT, INTEGER, STRING, Constant
from omnigraph.lang.syntax.source import Span
from omnigraph.model.calendar import parse_date, parse_instant
from omnigraph.model.types import SCALARS, PropertyType

I64_MIN: Final = -(2**63)
I64_MAX: Final = 2**63 - 1
U64_MAX: Final = 2**64 - 1

_UNSIGNED: Final = PropertyType(SCALARS["U64"])
_DATE: Final = PropertyType(SCALARS["Date"])
_INSTANT: Final = PropertyType(SCALARS["DateTime"])
_WRITE: Final[Mapping[str, str]] = {
    "string": "Write a text in double quotes.",
    "bool": "Write `true` or `false`.",
    "integer": "Write a whole number in the range of the type.",
    "float": "Write a number such as `2.5`.",
    "date": 'Write `date("2024-02-29")`.',
    "datetime": 'Write `datetime("2024-02-29T12:00:00Z")`, with `Z` or an offset.',
    "blob": 'Write `"base64:…"` or a URI.',
}


def is_literal(expression: ast.Expression) -> TypeGuard[ast.LiteralValue | ast.ListLiteral]:
    """Whether an expression is a literal, or a list of nothing else."""
    if isinstance(expression, ast.ListLiteral):
        return all(isinstance(i, ast.LiteralValue | ast.ListLiteral) for i in expression.items)
    return isinstance(expression, ast.LiteralValue)


def compatible(left: PropertyType, right: PropertyType) -> bool:
    """Whether two types hold values that can be compared with each other."""
    if left.is_list != right.is_list or left.dimensions != right.dimensions:
        return False
    return left.scalar is right.scalar or (left.scalar.numeric and right.scalar.numeric)


def item_type(kind: PropertyType) -> PropertyType:
    """The type of one item of a list; any other type is its own item."""
    return replace(kind, is_list=False) if kind.is_list else kind


def constant(context: Context, literal: ast.LiteralValue | ast.ListLiteral) -> Constant | None:
    """A literal with its own type, or None after reporting why it has none."""
    if isinstance(literal, ast.ListLiteral):
        return _list(context, literal)
    value = literal.value
    if literal.kind == "integer":
        assert isinstance(value, int)
        if not I64_MIN <= value <= U64_MAX:
            context.report(
                "T38",
                "this number does not fit any whole-number type",
                literal.span,
                remedy="Write it with a decimal point, as an F64.",
            )
            return None
        return Constant(value, INTEGER if value <= I64_MAX else _UNSIGNED)
    if literal.kind == "date" or literal.kind == "datetime":
        return _time(context, literal)
    if isinstance(value, float) and not isfinite(value):
        context.report(
            "T38",
            "this number does not fit a 64-bit float",
            literal.span,
            remedy="Write a number below 1.8e308.",
        )
        return None
    kinds = {"string": STRING, "decimal": FLOAT, "boolean": BOOL}
    return Constant(value, kinds[literal.kind])


def _time(context: Context, literal: ast.LiteralValue) -> Constant | None:
    is_date = literal.kind == "date"
    text = str(literal.value)
    stored = parse_date(text) if is_date else parse_instant(text)
    if stored is None:
        context.report(
            "T38",
            f"`{text[:40]}` is not a {'date' if is_date else 'point in time'}",
            literal.span,
            remedy=_WRITE[literal.kind],
        )
        return None
    return Constant(stored, _DATE if is_date else _INSTANT)


def _list(context: Context, literal: ast.ListLiteral) -> Constant | None:
    items: list[Constant] = []
    for item in literal.items:
        if isinstance(item, ast.ListLiteral):
            context.report(
                "T35", "a list cannot hold a list", item.span, remedy="Write one flat list."
            )
            return None
        assert isinstance(item, ast.LiteralValue)
        found = constant(context, item)
        if found is None:
            return None
        if items and not compatible(items[0].type, found.type):
            context.report(
                "T35",
                f"this list mixes {items[0].type} and {found.type}",
                item.span,
                remedy="Give all items of a list one type.",
            )
            return None
        items.append(found)
    return _together(items)


def _together(items: list[Constant]) -> Constant:
    """Items as one list: of the first one's type, or of the number type that holds them all."""
    values = tuple(item.value for item in items if not isinstance(item.value, tuple))
    kind = items[0].type if items else STRING
    if any(item.type is FLOAT for item in items):
        kind, values = FLOAT, tuple(float(value) for value in values)
    elif any(item.type is _UNSIGNED for item in items):
        kind = _UNSIGNED
    return Constant(values, replace(kind, is_list=True))


def check_membership(context: Context, value: Constant, kind: PropertyType, span: Span) -> bool:
    """Whether a string is a member of the enum it is compared with or stored in."""
    if kind.enum is None or not isinstance(value.value, str) or value.value in kind.enum:
        return True
    message = f'"{value.value[:40]}" is not a member of this enum'
    context.report_unknown("T3", message, span, value.value, kind.enum)
    return False


def stored_constant(
    context: Context,
    literal: ast.LiteralValue | ast.ListLiteral,
    kind: PropertyType,
    where: str,
) -> Constant | None:
    """A literal as it will be stored in a property of this type; ``where`` names the property."""
    found = constant(context, literal)
    if found is None:
        return None
    if not _storable(found, kind):
        context.report(
            "T3",
            f"{where} is {kind.required()}, not {_shape(found)}",
            literal.span,
            remedy=how_to_write(kind),
        )
        return None
    if not check_membership(context, found, kind, literal.span):
        return None
    value = found.value
    try:
        stored = kind.accept(list(value) if isinstance(value, tuple) else value)
    except InvalidValue as problem:
        message = f"{where} cannot hold this: {problem.message}"
        context.report("T3", message, literal.span, remedy=how_to_write(kind))
        return None
    return Constant(tuple(stored) if isinstance(stored, list) else stored, kind.required())


def _storable(value: Constant, kind: PropertyType) -> bool:
    """Whether a literal of this type may be stored in a property of that type at all."""
    if kind.is_blob:
        return value.type.is_plain_string
    if value.value == () and kind.is_list:
        return True
    if (kind.is_list or kind.is_vector) != value.type.is_list:
        return False
    if kind.scalar.family == "integer":
        return value.type.scalar.family == "integer"
    return value.type.scalar is kind.scalar or (value.type.scalar.numeric and kind.scalar.numeric)


def _shape(value: Constant) -> str:
    if not isinstance(value.value, tuple):
        return str(value.type)
    return f"{value.type} of {len(value.value)} items" if value.value else "an empty list"


def how_to_write(kind: PropertyType) -> str:
    """How a literal of a type is written."""
    if kind.dimensions is not None:
        return f"Write a list of {kind.dimensions} numbers."
    if kind.is_list:
        return f"Write a list of {kind.scalar} values: `[…]`."
    return _WRITE[kind.scalar.family]
