"""Names in expressions: properties of bound variables, and how wrong ones are reported.

Owns the messages about variables and properties that do not exist or cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    STRING,
    Constant,
    EntityType,
    Expression,
    ParameterValue,
    PropertyOf,
)
from omnigraph.lang.syntax.source import Span
from omnigraph.model.types import PropertyType

COMPARE_OTHER: Final = "Compare another property."
COMPARE_VECTORS: Final = "Ask how near two vectors are with `nearest`."


def resolve_property(
    context: Context, scope: BindingScope, expression: ast.PropertyAccess, unbound_code: str = "T6"
) -> PropertyOf | None:
    """A property of a bound variable, of whatever type."""
    variable, name = expression.variable.text, expression.property.text
    kind = scope.find(variable)
    if kind is None:
        if not scope.is_unknown(variable):
            report_unbound(context, scope, unbound_code, variable, expression.variable.span)
        return None
    types = context.schema.nodes if kind.kind == "node" else context.schema.edges
    properties = types[kind.name].properties
    if name not in properties:
        context.report_unknown(
            unbound_code,
            f"{kind.kind} type {kind} has no property `{name}`",
            expression.property.span,
            name,
            properties,
        )
        return None
    return PropertyOf(variable, name, properties[name].type)


def resolve_system_field(
    context: Context, scope: BindingScope, expression: ast.SystemField
) -> Expression | None:
    """``@id``, ``@src``, ``@dst`` or ``@type`` of a bound variable, or of what is written."""
    field = expression.name.text
    if expression.variable is None:
        variable, kind = "", scope.written
        if kind is None:
            context.report(
                "T6",
                f"`@{field}` needs a variable",
                expression.span,
                remedy=f"Write `$variable.@{field}`.",
            )
            return None
    else:
        variable = expression.variable.text
        kind = scope.find(variable)
        if kind is None:
            if not scope.is_unknown(variable):
                report_unbound(context, scope, "T6", variable, expression.variable.span)
            return None
    known = (*context.schema.type(kind.key).system_columns, "type")
    if field not in known:
        message = f"{kind.kind} type {kind} has no `@{field}`"
        context.report_unknown("T6", message, expression.name.span, field, known)
        return None
    if field == "type":
        return Constant(kind.name, STRING)
    return PropertyOf(variable, field, STRING)


def resolve_field(
    context: Context, scope: BindingScope, expression: ast.FieldReference
) -> PropertyOf | None:
    """A property of the entity that a mutation is about."""
    name = expression.name
    if scope.fields is None or scope.written is None:
        context.report(
            "T65",
            f"`{name}` is a property, and there is no entity yet that has it",
            expression.span,
            remedy="Give a literal, a parameter or a function of them.",
        )
        return None
    kind = scope.fields.get(name)
    if kind is None:
        report_unknown_field(context, scope.written, ast.Name(name, expression.span), scope.fields)
        return None
    return PropertyOf("", name, kind)


def report_unknown_field(
    context: Context, written: EntityType, name: ast.Name, fields: Mapping[str, PropertyType]
) -> None:
    """A mutation names a property that its type does not have."""
    remedy = None
    if name.text == "id":
        remedy = "The id follows from the key, or is made by the graph: it is never written."
    elif name.text in (*context.schema.type(written.key).endpoints, "source", "target"):
        remedy = "The ends of an edge are called `from` and `to`."
    message = f"{written.kind} type {written} has no property `{name.text}`"
    context.report_unknown("T11", message, name.span, name.text, fields, remedy=remedy)


def report_unbound(context: Context, scope: BindingScope, code: str, name: str, span: Span) -> None:
    if name in context.unusable:
        return
    if name in context.parameters:
        message = f"`${name}` is a parameter, which has no properties"
    elif name in scope.hidden:
        message = f"`${name}` is bound inside a `not` and cannot be seen outside it"
    elif name == ast.ANONYMOUS:
        message = "`$_` stands for something without a name and cannot be referred to"
    else:
        message = f"`${name}` is not bound"
    known = (f"${item}" for item in chain(scope.names(), context.parameters))
    context.report_unknown(
        code,
        message,
        span,
        f"${name}",
        known,
        remedy="Bind it in `match`, or declare it as a parameter.",
    )


def refuse_blob(context: Context, what: str, span: Span) -> None:
    context.report(
        "T24",
        f"{what} is a Blob, which a query cannot read as a value",
        span,
        remedy="Read the bytes with the blob API.",
    )


def describe(kind: PropertyType | EntityType) -> str:
    """A type in the words of a message."""
    if isinstance(kind, EntityType):
        return f"a whole {kind}"
    if kind.enum is not None:
        return "an enum"
    name = str(kind.required())
    return f"an {name}" if name.startswith("I") else f"a {name}"


def how_to_give(value: Expression, kind: PropertyType) -> str:
    """What to do about a parameter or ``now()`` that does not fit a property of this type."""
    if isinstance(value, ParameterValue):
        return f"Declare the parameter as {kind.required()}."
    return f"Give a {kind.required()}: `now()` is a DateTime."
