"""Types of expressions: variables, properties, comparisons, aggregates.

Owns the rules for values that are read. Where an expression stands decides what it may be: a
condition, a column, a sort key or the argument of an aggregate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from omnigraph.lang.query.check import search
from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.names import (
    COMPARE_OTHER,
    COMPARE_VECTORS,
    describe,
    refuse_blob,
    report_unbound,
    resolve_property,
)
from omnigraph.lang.query.check.values import compatible, constant, how_to_write, item_type
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.expression import COMPARE_NULL
from omnigraph.lang.query.typed_expressions import (
    FLOAT,
    INTEGER,
    Aggregate,
    AggregateFunction,
    Compare,
    Constant,
    CurrentTime,
    EntityType,
    Expression,
    PropertyOf,
    WholeEntity,
)
from omnigraph.lang.syntax.source import Span
from omnigraph.model.types import PropertyType

Place = Literal["condition", "column", "order", "aggregate"]


def check_expression(
    context: Context, scope: BindingScope, expression: ast.Expression, place: Place
) -> Expression | None:
    """The typed expression, or None after reporting what is wrong with it."""
    match expression:
        case ast.LiteralValue() | ast.ListLiteral():
            return constant(context, expression)
        case ast.Variable():
            return _variable(context, scope, expression, place)
        case ast.PropertyAccess():
            return _property(context, scope, expression, place)
        case ast.Comparison():
            return _comparison(context, scope, expression)
        case ast.AliasReference():
            _refuse_alias(context, expression)
            return None
        case ast.Call():
            return _call(context, scope, expression, place)
        case ast.FieldReference():
            raise AssertionError("fields are checked by mutations")


def _refuse_alias(context: Context, expression: ast.AliasReference) -> None:
    if expression.name == "null":
        message = "there is no `null` literal"
        context.report("T36", message, expression.span, remedy=COMPARE_NULL)
        return
    context.report(
        "T36",
        f"`{expression.name}` is a bare name, which only `order` can use, for a column",
        expression.span,
        remedy=f'A property is `$variable.{expression.name}`, a text is `"{expression.name}"`.',
    )


# Variables and properties


def _variable(
    context: Context, scope: BindingScope, expression: ast.Variable, place: Place
) -> Expression | None:
    name = expression.name
    parameter = context.parameters.get(name)
    if parameter is not None:
        if parameter.type.is_blob and place != "condition":
            refuse_blob(context, f"the parameter `${name}`", expression.span)
            return None
        return parameter
    kind = scope.find(name)
    if kind is None:
        if not scope.is_unknown(name):
            report_unbound(context, scope, "T34", name, expression.span)
        return None
    if kind.kind == "edge":
        context.report(
            "T23",
            f"the edge `${name}` cannot be used as a value",
            expression.span,
            remedy=f"Use one of its properties: `${name}.property`.",
        )
        return None
    return WholeEntity(name, kind)


def _property(
    context: Context, scope: BindingScope, expression: ast.PropertyAccess, place: Place
) -> PropertyOf | None:
    found = resolve_property(context, scope, expression)
    if found is not None and found.type.is_blob and place != "condition":
        refuse_blob(context, f"`{found.property}`", expression.span)
        return None
    return found


# Calls


def _call(context: Context, scope: BindingScope, call: ast.Call, place: Place) -> Expression | None:
    kind = FUNCTIONS[call.function.text].kind
    if kind == "constant":
        return CurrentTime()
    if kind == "aggregate":
        return _aggregate(context, scope, call, place)
    if kind == "text":
        return search.check_text(context, scope, call)
    if kind == "rank":
        return search.check_rank(context, scope, call)
    if place == "condition" or place == "aggregate":
        context.report(
            "T36",
            f"`{call.function.text}` ranks whole results and cannot stand here",
            call.span,
            remedy="Use it in `order`.",
        )
        return None
    return search.check_fusion(context, scope, call)


def _aggregate(
    context: Context, scope: BindingScope, call: ast.Call, place: Place
) -> Aggregate | None:
    function = cast(AggregateFunction, call.function.text)
    if place != "column":
        where = "inside another aggregate" if place == "aggregate" else "here"
        context.report(
            "T36",
            f"the aggregate `{function}` cannot stand {where}",
            call.span,
            remedy="Use it in `return`, give it an alias, and order by the alias.",
        )
        return None
    written = call.arguments[0]
    argument = check_expression(context, scope, written, "aggregate")
    if argument is None:
        return None
    if function == "count":
        return Aggregate(function, argument, replace(INTEGER, nullable=True))
    kind = argument.type
    is_number = isinstance(kind, PropertyType) and kind.is_numeric
    if function in ("sum", "avg"):
        if not is_number:
            _refuse_argument(context, function, "numbers", kind, written.span)
            return None
        return Aggregate(function, argument, replace(FLOAT, nullable=True))
    if not (is_number or (isinstance(kind, PropertyType) and kind.is_string)):
        _refuse_argument(context, function, "numbers or strings", kind, written.span)
        return None
    assert isinstance(kind, PropertyType)
    return Aggregate(function, argument, replace(kind, nullable=True))


def _refuse_argument(
    context: Context, function: str, takes: str, kind: PropertyType | EntityType, span: Span
) -> None:
    message = f"`{function}` takes {takes}, not {describe(kind)}"
    context.report("T8", message, span, remedy="Use `count` to count values of any type.")


# Comparisons


def _comparison(
    context: Context, scope: BindingScope, comparison: ast.Comparison
) -> Compare | None:
    left = check_expression(context, scope, comparison.left, "condition")
    right = check_expression(context, scope, comparison.right, "condition")
    if left is None or right is None:
        return None
    problem = _operand_problem(comparison.operator, left, right)
    if problem is not None:
        context.report("T7", problem, comparison.span, remedy=_how_to_compare(left, right))
        return None
    return Compare(comparison.operator, left, right)


def _operand_problem(
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


def _how_to_compare(left: Expression, right: Expression) -> str:
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
