"""Types of expressions: variables, properties, conditions, aggregates.

Owns the rules for values that are read. Where an expression stands decides what it may be: a
condition, a column, a sort key, the argument of an aggregate, or a value that a mutation writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from omnigraph.lang.query.check import search
from omnigraph.lang.query.check.calls import (
    check_calculation,
    check_call,
    check_case,
    check_list,
    check_minus,
)
from omnigraph.lang.query.check.comparison import (
    has_blob,
    how_to_compare,
    membership_problem,
    operand_problem,
    with_typed_nulls,
)
from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.names import (
    COMPARE_OTHER,
    describe,
    refuse_blob,
    report_unbound,
    resolve_field,
    resolve_property,
    resolve_system_field,
)
from omnigraph.lang.query.check.values import constant, is_literal
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    BOOL,
    FLOAT,
    INTEGER,
    TRUTH,
    Aggregate,
    AggregateFunction,
    Compare,
    Complement,
    CurrentTime,
    EntityType,
    Expression,
    Junction,
    NullCheck,
    NullValue,
    PropertyOf,
    WholeEntity,
)
from omnigraph.lang.syntax.source import Span
from omnigraph.model.types import PropertyType

Place = Literal["condition", "column", "order", "aggregate", "write"]


def check_expression(
    context: Context, scope: BindingScope, expression: ast.Expression, place: Place
) -> Expression | None:
    """The typed expression, or None after reporting what is wrong with it."""
    match expression:
        case ast.LiteralValue():
            if expression.kind == "boolean" and scope.fields is not None:
                return _boolean_in_mutation(context, scope.fields, expression)
            return constant(context, expression)
        case ast.NullLiteral():
            if scope.fields is not None and "null" in scope.fields:
                _refuse_literal(context, "null", expression.span)
                return None
            return NullValue(TRUTH)
        case ast.ListLiteral():
            return _list(context, scope, expression, place)
        case ast.Variable():
            return _variable(context, scope, expression, place)
        case ast.PropertyAccess():
            return _property(context, scope, expression, place)
        case ast.SystemField():
            return resolve_system_field(context, scope, expression)
        case ast.Comparison():
            return _comparison(context, scope, expression, place)
        case ast.AliasReference():
            _refuse_alias(context, expression)
            return None
        case ast.FieldReference():
            return resolve_field(context, scope, expression)
        case ast.Call():
            return _call(context, scope, expression, place)
        case _:
            return _operator(context, scope, expression, place)


def _boolean_in_mutation(
    context: Context, fields: Mapping[str, PropertyType], literal: ast.LiteralValue
) -> Expression | None:
    """``true`` could be the literal or a property of this name; it is not guessed which."""
    word = "true" if literal.value else "false"
    if word not in fields:
        return constant(context, literal)
    _refuse_literal(context, word, literal.span)
    return None


def _refuse_literal(context: Context, word: str, span: Span) -> None:
    context.report(
        "T68",
        f"`{word}` is a literal, and the type has a property of this name",
        span,
        remedy="Rename the property with `@rename_from`, or compare another one.",
    )


def check_condition(
    context: Context, scope: BindingScope, expression: ast.Expression, place: Place
) -> Expression | None:
    """A typed expression that is true, false or unknown."""
    found = check_expression(context, scope, expression, place)
    if found is None:
        return None
    kind = found.type
    if isinstance(kind, PropertyType) and kind.is_single and kind.scalar is BOOL.scalar:
        return found
    context.report(
        "T60",
        f"a condition is true or false, and this is {describe(kind)}",
        expression.span,
        remedy="Compare it with something.",
    )
    return None


def _operator(
    context: Context, scope: BindingScope, expression: ast.Expression, place: Place
) -> Expression | None:
    match expression:
        case ast.Logical():
            found = [check_condition(context, scope, i, place) for i in expression.operands]
            known = [item for item in found if item is not None]
            if len(known) < len(found):
                return None
            return Junction(expression.operator, tuple(known))
        case ast.Not():
            operand = check_condition(context, scope, expression.operand, place)
            return None if operand is None else Complement(operand)
        case ast.NullTest():
            return _null_test(context, scope, expression, place)
        case ast.Arithmetic():
            sides = _all(context, scope, (expression.left, expression.right), place)
            return None if sides is None else check_calculation(context, expression, *sides)
        case ast.Minus():
            operand = check_expression(context, scope, expression.operand, place)
            return None if operand is None else check_minus(context, expression, operand)
        case ast.Case():
            return _case(context, scope, expression, place)
        case _:
            raise AssertionError(f"{type(expression).__name__} is no operator")


def _all(
    context: Context, scope: BindingScope, written: Sequence[ast.Expression], place: Place
) -> list[Expression] | None:
    """All of several expressions, or None when one of them is wrong."""
    found = [check_expression(context, scope, item, place) for item in written]
    known = [item for item in found if item is not None]
    return known if len(known) == len(found) else None


def _refuse_alias(context: Context, expression: ast.AliasReference) -> None:
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
        if parameter.type.is_blob and place not in ("condition", "write"):
            refuse_blob(context, f"the parameter `${name}`", expression.span)
            return None
        return parameter
    if place == "write":
        if name not in context.unusable:
            context.report_unknown(
                "T14",
                f"`${name}` is not a parameter of this query",
                expression.span,
                name,
                context.parameters,
                remedy="Declare it in the head of the query.",
            )
        return None
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
    if place == "write":
        name = expression.property.text
        context.report(
            "T14",
            "a mutation has no variables but its parameters",
            expression.span,
            remedy=f"A property of what is changed is its bare name: `{name}`.",
        )
        return None
    found = resolve_property(context, scope, expression)
    if found is not None and found.type.is_blob and place != "condition":
        refuse_blob(context, f"`{found.property}`", expression.span)
        return None
    return found


def _list(
    context: Context, scope: BindingScope, written: ast.ListLiteral, place: Place
) -> Expression | None:
    if is_literal(written):
        return constant(context, written)
    items = _all(context, scope, written.items, place)
    return None if items is None else check_list(context, written, items)


# Calls


def _call(context: Context, scope: BindingScope, call: ast.Call, place: Place) -> Expression | None:
    kind = FUNCTIONS[call.function.text].kind
    if kind == "constant":
        return CurrentTime()
    if kind == "scalar":
        arguments = _all(context, scope, call.arguments, place)
        return None if arguments is None else check_call(context, call, arguments)
    if place == "write":
        context.report(
            "T64",
            f"`{call.function.text}` cannot stand in a mutation",
            call.span,
            remedy="Find the entities with a read query first.",
        )
        return None
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
    if function in ("count", "count_distinct"):
        return Aggregate(function, argument, replace(INTEGER, nullable=True))
    kind = argument.type
    is_number = isinstance(kind, PropertyType) and kind.is_numeric
    if function in ("sum", "avg"):
        if not is_number:
            _refuse_argument(context, function, "numbers", kind, written.span)
            return None
        return Aggregate(function, argument, replace(FLOAT, nullable=True))
    if isinstance(kind, EntityType) or not kind.is_single:
        _refuse_argument(context, function, "single values", kind, written.span)
        return None
    return Aggregate(function, argument, replace(kind, nullable=True))


def _refuse_argument(
    context: Context, function: str, takes: str, kind: PropertyType | EntityType, span: Span
) -> None:
    message = f"`{function}` takes {takes}, not {describe(kind)}"
    context.report("T8", message, span, remedy="Use `count` to count values of any type.")


# Conditions


def _null_test(
    context: Context, scope: BindingScope, written: ast.NullTest, place: Place
) -> NullCheck | None:
    operand = check_expression(context, scope, written.operand, place)
    if operand is None:
        return None
    kind = operand.type
    if isinstance(kind, EntityType) or kind.is_blob:
        context.report(
            "T7",
            f"{describe(kind)} has no null test",
            written.span,
            remedy="Test one of its properties." if isinstance(kind, EntityType) else COMPARE_OTHER,
        )
        return None
    return NullCheck(operand, written.negated)


def _case(
    context: Context, scope: BindingScope, written: ast.Case, place: Place
) -> Expression | None:
    conditions = [check_condition(context, scope, i.condition, place) for i in written.branches]
    results = [check_expression(context, scope, i.result, place) for i in written.branches]
    otherwise: Expression | None = NullValue(TRUTH)
    if written.otherwise is not None:
        otherwise = check_expression(context, scope, written.otherwise, place)
    pairs = [
        (condition, result)
        for condition, result in zip(conditions, results, strict=True)
        if condition is not None and result is not None
    ]
    if len(pairs) < len(conditions) or otherwise is None:
        return None
    return check_case(context, written, pairs, otherwise)


def _comparison(
    context: Context, scope: BindingScope, comparison: ast.Comparison, place: Place
) -> Compare | None:
    sides = _all(context, scope, (comparison.left, comparison.right), place)
    if sides is None:
        return None
    left, right = with_typed_nulls(comparison.operator, *sides)
    if comparison.operator == "in":
        problem = membership_problem(left, right)
        if problem is not None:
            remedy = "Write a list: `$variable.property in [1, 2]`."
            context.report("T7", problem, comparison.span, remedy=remedy)
            return None
        return Compare("contains", right, left)
    problem = operand_problem(comparison.operator, left, right)
    if problem is not None:
        code = "T11" if place == "write" and has_blob(left, right) else "T7"
        context.report(code, problem, comparison.span, remedy=how_to_compare(left, right))
        return None
    return Compare(comparison.operator, left, right)
