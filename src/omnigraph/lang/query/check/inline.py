"""Types of the equalities written inside a binding: ``$v: T { property: value }``.

Owns the rules for one such pair and what it means: equality, or membership where the property is a
list.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.expression import check_expression
from omnigraph.lang.query.check.names import COMPARE_OTHER, COMPARE_VECTORS, describe, how_to_give
from omnigraph.lang.query.check.values import (
    check_membership,
    compatible,
    constant,
    how_to_write,
    is_literal,
    item_type,
)
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    Compare,
    EntityType,
    Expression,
    NullValue,
    PropertyOf,
)
from omnigraph.lang.schema import NodeType
from omnigraph.model.types import PropertyType


def check_inline(
    context: Context,
    scope: BindingScope,
    variable: str,
    node: NodeType,
    item: ast.PropertyValue,
) -> Compare | None:
    """The condition an inline equality stands for, or None after reporting."""
    name = item.name.text
    declared = node.properties.get(name)
    if declared is None:
        message = f"node type {node.name} has no property `{name}`"
        context.report_unknown("T2", message, item.name.span, name, node.properties)
        return None
    value = _value(context, scope, name, declared.type, item.value)
    if value is None:
        return None
    operator: ast.ComparisonOperator = "contains" if declared.type.is_list else "="
    return Compare(operator, PropertyOf(variable, name, declared.type), value)


def _value(
    context: Context,
    scope: BindingScope,
    name: str,
    kind: PropertyType,
    written: ast.Expression,
) -> Expression | None:
    if is_literal(written):
        return _literal(context, name, kind, written)
    value: Expression | None
    if isinstance(written, ast.NullLiteral):
        return NullValue(replace(item_type(kind), nullable=True))
    if isinstance(written, ast.Variable):
        value = context.parameters.get(written.name)
        if value is None and written.name in context.unusable:
            return None
        if value is None:
            context.report_unknown(
                "T3",
                f"`${written.name}` is not a parameter",
                written.span,
                written.name,
                context.parameters,
                remedy="Declare it as one, or compare two properties in a clause of its own.",
            )
            return None
    else:
        value = check_expression(context, scope, written, "condition")
        if value is None:
            return None
    item = item_type(kind)
    remedy = how_to_give(value, item)
    if kind.is_blob or kind.is_vector:
        message = f"`{name}` is {kind.required()}, which cannot be compared"
        remedy = COMPARE_OTHER if kind.is_blob else COMPARE_VECTORS
    elif isinstance(value.type, EntityType) or not compatible(item, value.type):
        what = f"an item of `{name}`" if kind.is_list else f"`{name}`"
        message = f"{what} is {item.required()}, and this is {describe(value.type)}"
    else:
        return value
    context.report("T7", message, written.span, remedy=remedy)
    return None


def _literal(
    context: Context,
    name: str,
    kind: PropertyType,
    written: ast.LiteralValue | ast.ListLiteral,
) -> Expression | None:
    if kind.is_blob:
        message = f"`{name}` is a Blob, which cannot be compared"
        context.report("T3", message, written.span, remedy=COMPARE_OTHER)
        return None
    value = constant(context, written)
    if value is None:
        return None
    if kind.is_vector:
        length = len(value.value) if isinstance(value.value, tuple) else None
        if length != kind.dimensions or not value.type.scalar.numeric:
            message = f"`{name}` is {kind.required()}, and this is {describe(value.type)}"
            context.report("T3", message, written.span, remedy=COMPARE_VECTORS)
        else:
            message = f"`{name}` is {kind.required()}, which cannot be compared"
            context.report("T7", message, written.span, remedy=COMPARE_VECTORS)
        return None
    if value.type.is_list:
        context.report(
            "T3",
            f"`{name}` cannot be matched with a list",
            written.span,
            remedy="Give one value; a list property then has to contain it.",
        )
        return None
    item = item_type(kind)
    if not compatible(item, value.type):
        context.report(
            "T3",
            f"`{name}` is {kind.required()}, not {value.type}",
            written.span,
            remedy=how_to_write(item),
        )
        return None
    return value if check_membership(context, value, kind, written.span) else None
