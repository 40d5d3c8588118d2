"""Which two values can be compared, and what to do about two that cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from omnigraph.lang.query.check.names import COMPARE_OTHER, COMPARE_VECTORS, describe
from omnigraph.lang.query.check.unify import adapted
from omnigraph.lang.query.check.values import compatible, how_to_write, item_type
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    STRING,
    Constant,
    EntityType,
    Expression,
    NullValue,
)
from omnigraph.model.types import PropertyType


def has_blob(*sides: Expression) -> bool:
    return any(isinstance(side.type, PropertyType) and side.type.is_blob for side in sides)


def with_typed_nulls(
    operator: str, left: Expression, right: Expression
) -> tuple[Expression, Expression]:
    """``null`` takes the type that the other side asks for."""
    kinds = left.type, right.type
    if isinstance(left, NullValue) and isinstance(right, NullValue):
        kinds = (replace(STRING, is_list=operator == "in"),) * 2
    first, second = kinds
    if isinstance(right, NullValue) and isinstance(first, PropertyType):
        wanted = first if operator != "contains" else item_type(first)
        right = adapted(right, replace(wanted, is_list=operator == "in"))
    if isinstance(left, NullValue) and isinstance(second, PropertyType):
        left = adapted(left, item_type(second) if operator == "in" else second)
    return left, right


def membership_problem(item: Expression, items: Expression) -> str | None:
    """What is wrong with ``item in items``, or None."""
    kind, found = items.type, item.type
    if isinstance(kind, EntityType) or not kind.is_list:
        return f"`in` takes a list on its right, not {describe(kind)}"
    if isinstance(items, Constant) and items.value == ():
        return None
    if isinstance(found, EntityType) or not compatible(item_type(kind), found):
        return f"{describe(kind)} cannot contain {describe(found)}"
    return None


def operand_problem(
    operator: ast.ComparisonOperator, left: Expression, right: Expression
) -> str | None:
    """What is wrong with comparing these two, or None."""
    kinds = left.type, right.type
    for kind in kinds:
        if isinstance(kind, EntityType):
            return f"a whole {kind} cannot be compared"
        if kind.is_blob or kind.is_vector:
            return f"{describe(kind)} cannot be compared"
    first, second = cast(tuple[PropertyType, PropertyType], kinds)
    if operator == "contains" and first.is_list:
        if isinstance(left, Constant) and left.value == ():
            return None
        if second.is_list or not compatible(item_type(first), second):
            return f"{describe(first)} cannot contain {describe(second)}"
        return None
    if operator in ("contains", "starts_with"):
        if first.is_string and second.is_string:
            return None
        return f"`{operator}` takes two strings, not {describe(first)} and {describe(second)}"
    if first.is_list or second.is_list:
        return f"a list cannot be compared with `{operator}`"
    if not compatible(first, second):
        return f"{describe(first)} cannot be compared with {describe(second)}"
    return None


def how_to_compare(left: Expression, right: Expression) -> str:
    """A remedy for the mistake that a person most likely made."""
    for one, other in ((left, right), (right, left)):
        kind = one.type
        if isinstance(kind, EntityType):
            return "Compare a property, such as the key: `$variable.property`."
        if kind.is_blob:
            return COMPARE_OTHER
        if kind.is_vector:
            return COMPARE_VECTORS
        if kind.is_list:
            return "Ask for one item: `$variable.list contains value`."
        if isinstance(one, Constant) and isinstance(other.type, PropertyType):
            return how_to_write(other.type)
    return "Compare two values of one type."
