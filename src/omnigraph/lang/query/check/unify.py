"""One type for several expressions: literals and ``null`` take the type of what stands beside them.

Owns when a literal fits another type, and which type a group of values has together. Nothing is
widened: two properties of different number types have no type together until one is cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from omnigraph.lang.query.typed_expressions import (
    FLOAT,
    Calculation,
    Constant,
    EntityType,
    Expression,
    NullValue,
)
from omnigraph.model.floats import round_single
from omnigraph.model.types import PropertyType

Unified: TypeAlias = tuple[tuple[Expression, ...], PropertyType]

_LIMITS = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}


def adapted(expression: Expression, kind: PropertyType) -> Expression:
    """A literal or ``null`` as a value of a type, if it is one; everything else as it is."""
    if isinstance(expression, NullValue):
        return NullValue(replace(kind, nullable=True))
    if isinstance(expression, Calculation) and _is_literal(expression):
        sides = adapted(expression.left, kind), adapted(expression.right, kind)
        if all(same_type(side.type, kind) for side in sides):
            return Calculation(expression.operator, *sides, kind.required())
        return expression
    if not isinstance(expression, Constant) or not (expression.type.is_numeric and kind.is_numeric):
        return expression
    value = expression.value
    assert isinstance(value, int | float)
    if kind.scalar.family == "float":
        number = round_single(float(value)) if kind.scalar.name == "F32" else float(value)
        exact = not isinstance(value, int) or int(number) == value
        return Constant(number, kind.required()) if exact else expression
    low, high = _LIMITS[kind.scalar.name]
    if isinstance(value, int) and low <= value <= high:
        return Constant(value, kind.required())
    return expression


def _is_literal(expression: Expression) -> bool:
    """Whether an expression is made of literals alone, so that its type is open."""
    if isinstance(expression, Calculation):
        return _is_literal(expression.left) and _is_literal(expression.right)
    return isinstance(expression, (Constant, NullValue))


def unified(expressions: Sequence[Expression]) -> Unified | None:
    """The expressions as values of one type, and this type; None when they have none."""
    known = [item for item in expressions if not isinstance(item, NullValue)]
    kinds = [item.type for item in known]
    if not kinds or any(isinstance(kind, EntityType) for kind in kinds):
        return None
    target = _target(known)
    found = tuple(adapted(item, target) for item in expressions)
    for item in found:
        if not same_type(item.type, target):
            return None
    nullable = any(isinstance(item.type, PropertyType) and item.type.nullable for item in found)
    return found, replace(target, nullable=nullable)


def _target(known: Sequence[Expression]) -> PropertyType:
    """The type that decides: of the first value that is no literal, else of the literals."""
    for item in known:
        if not _is_literal(item):
            return _plain(item.type)
    kinds = [_plain(item.type) for item in known]
    if any(kind.scalar is FLOAT.scalar and kind.is_single for kind in kinds):
        return next(kind for kind in kinds if kind.scalar is FLOAT.scalar)
    return next((kind for kind in kinds if kind.scalar.name == "U64"), kinds[0])


def _plain(kind: PropertyType | EntityType) -> PropertyType:
    """The type of a value that a property of a type holds: of an enum, a String."""
    assert isinstance(kind, PropertyType)
    return replace(kind, nullable=False, enum=None)


def same_type(left: PropertyType | EntityType, right: PropertyType) -> bool:
    """Whether two types hold the same values, apart from nulls and members of enums."""
    return (
        isinstance(left, PropertyType)
        and left.scalar is right.scalar
        and left.is_list == right.is_list
        and left.dimensions == right.dimensions
    )
