"""Types of function calls and of operators on values: arithmetic, ``case``, lists.

Owns what each function takes and answers, from the table of functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omnigraph.lang.query.check.context import Context
from omnigraph.lang.query.check.names import describe
from omnigraph.lang.query.check.unify import adapted, unified
from omnigraph.lang.query.functions import FUNCTIONS, Function, Takes
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    INTEGER,
    STRING,
    Calculation,
    CaseBranch,
    Conditional,
    EntityType,
    Expression,
    FunctionCall,
    ListOf,
    NullValue,
    Opposite,
    is_constant,
)
from omnigraph.lang.syntax.source import Span
from omnigraph.model.types import SCALARS, PropertyType

_TAKES: Final = {
    "text": "a text",
    "number": "a number",
    "whole": "a whole number",
    "time": "a Date or a DateTime",
    "list": "a list",
    "single": "a single value",
}
_CASTS: Final = {
    "to_int": ("string", "integer", "float"),
    "to_float": ("string", "integer", "float"),
    "to_date": ("string", "date", "datetime"),
    "to_datetime": ("string", "date", "datetime"),
}
"""What can be cast. Everything has a text."""
_KNOWN_BEFORE: Final = {
    "matches": 1,
    "round": 1,
    "date_part": 1,
    "date_trunc": 1,
    "add": 2,
    "between": 2,
}
"""Arguments that must be known before anything is read."""


def check_call(
    context: Context, call: ast.Call, arguments: Sequence[Expression]
) -> FunctionCall | None:
    """A call of a scalar function whose arguments are typed."""
    function = FUNCTIONS[call.function.text]
    found = tuple(arguments)
    if function.takes_types[0] == "same":
        together = unified(found)
        if together is None or (not together[1].is_single and function.name != "coalesce"):
            _refuse_different(context, function.name, found, call.span)
            return None
        return FunctionCall(function.name, together[0], _result(function, together[1], found))
    typed = []
    for at, argument in enumerate(found):
        takes = function.takes_types[min(at, len(function.takes_types) - 1)]
        fitting = _fitting(takes, argument)
        if fitting is None or not _can_cast(function, fitting):
            what = f"`{function.name}` takes {_TAKES[takes]}"
            problem = f"{what}, not {describe(argument.type)}"
            span = call.arguments[at].span
            context.report("T62", problem, span, remedy=f"It is `{function.signature}`.")
            return None
        typed.append(fitting)
    place = _KNOWN_BEFORE.get(function.name)
    if place is not None and len(typed) > place and not is_constant(typed[place]):
        context.report(
            "T62",
            f"`{function.name}` needs a literal or a parameter as its `"
            f"{function.arguments[place]}`",
            call.arguments[place].span,
            remedy="Write the value, or declare a parameter.",
        )
        return None
    if function.name == "between":
        together = unified(typed[:2])
        if together is None:
            _refuse_different(context, function.name, typed[:2], call.span)
            return None
        typed = [*together[0], typed[2]]
    first = typed[0].type
    assert isinstance(first, PropertyType)
    return FunctionCall(function.name, tuple(typed), _result(function, first, typed))


def _fitting(takes: Takes, argument: Expression) -> Expression | None:
    """The argument, if it is of a type that is taken."""
    if isinstance(argument, NullValue):
        kinds = {"text": STRING, "whole": INTEGER, "number": INTEGER, "single": STRING}
        kinds["time"] = PropertyType(SCALARS["Date"])
        kinds["list"] = replace(STRING, is_list=True)
        return adapted(argument, kinds[takes])
    kind = argument.type
    if isinstance(kind, EntityType):
        return None
    fits = {
        "text": kind.is_string,
        "number": kind.is_numeric,
        "whole": kind.is_single and kind.scalar.family == "integer",
        "time": kind.is_single and kind.scalar.family in ("date", "datetime"),
        "list": kind.is_list,
        "single": kind.is_single,
    }
    return argument if fits[takes] else None


def _can_cast(function: Function, argument: Expression) -> bool:
    families = _CASTS.get(function.name)
    if families is None:
        return True
    return isinstance(argument.type, PropertyType) and argument.type.scalar.family in families


def _result(
    function: Function, first: PropertyType, arguments: Sequence[Expression]
) -> PropertyType:
    nulls = [isinstance(i.type, PropertyType) and i.type.nullable for i in arguments]
    nullable = all(nulls) if function.takes_types[0] == "same" else any(nulls)
    if function.result == "the argument's":
        return replace(first, nullable=nullable, enum=None)
    if function.result == "the item's":
        return replace(first, is_list=False, nullable=True)
    if function.result.startswith("["):
        return PropertyType(SCALARS[function.result[1:-1]], nullable=nullable, is_list=True)
    return PropertyType(SCALARS[function.result], nullable=nullable)


def _refuse_different(
    context: Context, what: str, found: Sequence[Expression], span: Span, code: str = "T62"
) -> None:
    kinds = list(dict.fromkeys(describe(item.type) for item in found))
    context.report(
        code,
        f"`{what}` needs values of one type, not {' and '.join(kinds)}",
        span,
        remedy="Cast some of them, for example with `to_float` or `to_string`.",
    )


# Operators


def check_calculation(
    context: Context, written: ast.Arithmetic, left: Expression, right: Expression
) -> Calculation | None:
    """Arithmetic on two numbers of one type."""
    together = unified((left, right))
    kinds = [item.type for item in (left, right) if not isinstance(item, NullValue)]
    problem, remedy = None, "Cast one of them: `to_int(…)` or `to_float(…)`."
    wrong = [kind for kind in kinds if isinstance(kind, EntityType) or not kind.is_numeric]
    if wrong or not kinds:
        shown = describe(wrong[0]) if wrong else "`null`"
        problem = f"`{written.operator}` takes numbers, not {shown}"
        remedy = "Texts are joined with `concat`." if wrong else "Give one of the sides a value."
    elif together is None:
        shown = f"{describe(kinds[0])} and {describe(kinds[-1])}"
        problem = f"`{written.operator}` takes two numbers of one type, not {shown}"
    elif written.operator == "/" and together[1].scalar.family == "integer":
        problem = "whole numbers are not divided: it is not said what becomes of the remainder"
        remedy = "Write `to_float(a) / to_float(b)`, inside `floor` for the whole part."
    if problem is not None or together is None:
        context.report("T61", problem or "", written.span, remedy=remedy)
        return None
    (first, second), kind = together
    return Calculation(written.operator, first, second, kind)


def check_minus(context: Context, written: ast.Minus, operand: Expression) -> Opposite | None:
    kind = operand.type
    if isinstance(kind, PropertyType) and kind.is_numeric and not kind.scalar.name.startswith("U"):
        return Opposite(operand, kind)
    context.report(
        "T61",
        f"`-` takes a number with a sign, not {describe(kind)}",
        written.span,
        remedy="Cast it: `to_int(…)` or `to_float(…)`.",
    )
    return None


def check_case(
    context: Context,
    written: ast.Case,
    branches: Sequence[tuple[Expression, Expression]],
    otherwise: Expression,
) -> Conditional | None:
    """A ``case`` whose conditions are known to be Bool."""
    results = [*(result for _, result in branches), otherwise]
    together = unified(results)
    if together is None:
        _refuse_different(context, "case", results, written.span, "T63")
        return None
    typed, kind = together
    pairs = zip(branches, typed, strict=False)
    found = tuple(CaseBranch(condition, result) for (condition, _), result in pairs)
    return Conditional(found, typed[-1], kind)


def check_list(
    context: Context, written: ast.ListLiteral, items: Sequence[Expression]
) -> Expression | None:
    """A list with items that are not all literals."""
    together = unified(items)
    if together is None or not together[1].is_single:
        _refuse_different(context, "[…]", items, written.span, "T35")
        return None
    typed, kind = together
    return ListOf(typed, replace(kind, is_list=True, enum=None))
