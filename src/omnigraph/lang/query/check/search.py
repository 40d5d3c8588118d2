"""Types of searches: text filters, nearest, bm25 and their fusion.

Owns what may be searched (a text or vector property of a bound node) and what it may be searched
for: a literal or a parameter, so that a search is known before anything is read.
"""

from __future__ import annotations

from typing import cast

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.names import resolve_property
from omnigraph.lang.query.check.values import constant, is_literal
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    FUZZY_EDITS_DEFAULT,
    INTEGER,
    RRF_K_DEFAULT,
    Bm25,
    Constant,
    Expression,
    Fusion,
    Nearest,
    ParameterValue,
    PropertyOf,
    TextFunction,
    TextMatch,
)
from omnigraph.model.types import PropertyType


def check_text(context: Context, scope: BindingScope, call: ast.Call) -> TextMatch | None:
    function = cast(TextFunction, call.function.text)
    code = "T20" if function == "match_text" else "T19"
    field = _text_field(context, scope, call, code)
    query = _text_query(context, call, code)
    max_edits: Expression | None = None
    if function == "fuzzy":
        max_edits = Constant(FUZZY_EDITS_DEFAULT, INTEGER)
        if len(call.arguments) > 2:
            max_edits = _whole_number(context, call.arguments[2], code, "`max_edits`")
            if max_edits is None:
                return None
    if field is None or query is None:
        return None
    return TextMatch(function, field, query, max_edits)


def check_rank(context: Context, scope: BindingScope, call: ast.Call) -> Nearest | Bm25 | None:
    if call.function.text == "nearest":
        return _nearest(context, scope, call)
    field = _text_field(context, scope, call, "T20")
    query = _text_query(context, call, "T20")
    return None if field is None or query is None else Bm25(field, query)


def check_fusion(context: Context, scope: BindingScope, call: ast.Call) -> Fusion | None:
    arms: list[Nearest | Bm25] = []
    for argument in call.arguments[:2]:
        if isinstance(argument, ast.Call) and argument.function.text in ("nearest", "bm25"):
            arm = check_rank(context, scope, argument)
            if arm is not None:
                arms.append(arm)
        else:
            context.report(
                "T21",
                "`rrf` merges two rankings",
                argument.span,
                remedy="Give it `nearest(…)` or `bm25(…)`.",
            )
    k: Expression | None = Constant(RRF_K_DEFAULT, INTEGER)
    if len(call.arguments) > 2:
        k = _whole_number(context, call.arguments[2], "T21", "`k`")
        if isinstance(k, Constant) and k.value == 0:
            context.report(
                "T21",
                "`k` must be greater than zero",
                call.arguments[2].span,
                remedy=f"Leave it out to use {RRF_K_DEFAULT}.",
            )
            k = None
    if len(arms) < 2 or k is None:
        return None
    return Fusion(arms[0], arms[1], k)


def _searched(
    context: Context, scope: BindingScope, call: ast.Call, code: str, wanted: str
) -> PropertyOf | None:
    """The property a search looks at, whatever its type."""
    field = call.arguments[0]
    if not isinstance(field, ast.PropertyAccess):
        context.report(
            code,
            f"`{call.function.text}` looks at a {wanted} of a bound node",
            field.span,
            remedy="Write it as `$variable.property`.",
        )
        return None
    kind = scope.find(field.variable.text)
    if kind is not None and kind.kind == "edge":
        context.report(
            "T23",
            f"the edge `${field.variable.text}` cannot be searched",
            field.span,
            remedy="Search a property of a node.",
        )
        return None
    return resolve_property(context, scope, field, "T15" if code == "T15" else "T6")


def _text_field(
    context: Context, scope: BindingScope, call: ast.Call, code: str
) -> PropertyOf | None:
    field = _searched(context, scope, call, code, "String property")
    if field is not None and not field.type.is_string:
        context.report(
            code,
            f"`{call.function.text}` looks at a String, and `{field.property}` is {field.type}",
            call.arguments[0].span,
            remedy="Search a String property.",
        )
        return None
    return field


def _text_query(context: Context, call: ast.Call, code: str) -> Expression | None:
    written = call.arguments[1]
    query = _given(context, written)
    if query is _REPORTED:
        return None
    if not isinstance(query, (Constant, ParameterValue)) or not query.type.is_string:
        context.report(
            code,
            f"`{call.function.text}` searches for a text",
            written.span,
            remedy="Give a String literal or a String parameter.",
        )
        return None
    return query


def _nearest(context: Context, scope: BindingScope, call: ast.Call) -> Nearest | None:
    field = _searched(context, scope, call, "T15", "Vector property")
    if field is not None and not field.type.is_vector:
        context.report(
            "T15",
            f"`nearest` looks at a Vector, and `{field.property}` is {field.type}",
            call.arguments[0].span,
            remedy="Give a Vector property.",
        )
        field = None
    written = call.arguments[1]
    query = _given(context, written)
    if field is None or query is _REPORTED:
        return None
    if isinstance(query, (Constant, ParameterValue)):
        if query.type.is_plain_string:
            return Nearest(field, query)
        length = _vector_length(query)
        if length == field.type.dimensions:
            return Nearest(field, query)
        if length is not None:
            context.report(
                "T15",
                f"`{field.property}` has {field.type.dimensions} dimensions, this has {length}",
                written.span,
                remedy=f"Give a vector of {field.type.dimensions} numbers.",
            )
            return None
    context.report(
        "T15",
        "`nearest` searches for a vector or a text: a literal or a parameter",
        written.span,
        remedy=f"Give a Vector({field.type.dimensions}), a list of numbers, or a String.",
    )
    return None


def _vector_length(query: Constant | ParameterValue) -> int | None:
    """How long a query vector is; None when it is none."""
    if isinstance(query, Constant):
        is_vector = query.type.is_list and query.type.scalar.numeric
        return len(query.value) if is_vector and isinstance(query.value, tuple) else None
    return query.type.dimensions


def _whole_number(
    context: Context, written: ast.Expression, code: str, what: str
) -> Expression | None:
    found = _given(context, written)
    if found is _REPORTED:
        return None
    if isinstance(found, (Constant, ParameterValue)) and _is_whole(found.type):
        return found
    context.report(
        code,
        f"{what} is a whole number",
        written.span,
        remedy="Give a whole-number literal or parameter, or leave it out.",
    )
    return None


def _is_whole(kind: PropertyType) -> bool:
    return kind.is_single and kind.scalar.family == "integer"


class _Reported:
    """Marks an invalid expression whose error was already reported."""


_REPORTED = _Reported()


def _given(context: Context, written: ast.Expression) -> Expression | _Reported | None:
    """A value known before anything is read: a literal or a parameter; None for anything else."""
    if is_literal(written):
        return constant(context, written) or _REPORTED
    if isinstance(written, ast.Variable):
        if written.name in context.unusable:
            return _REPORTED
        return context.parameters.get(written.name)
    return None
