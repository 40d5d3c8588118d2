"""Types of what a query answers: return items, order items, limit.

Owns column names, the rules of grouping, and which orderings exist. The order of the rules is part
of the language: return items, order items, then the rules about limits, then the aggregate rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.expression import check_expression
from omnigraph.lang.query.check.names import describe
from omnigraph.lang.query.check.values import I64_MAX
from omnigraph.lang.query.checked import ResultColumn, RowCount, SortKey
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    Bm25,
    Constant,
    CurrentTime,
    EntityType,
    Expression,
    Fusion,
    Nearest,
    NullValue,
    PropertyOf,
    Ranking,
    TextMatch,
    WholeEntity,
    children,
    has_aggregate,
    walk,
)

_RANKINGS: Final = (Nearest, Bm25, Fusion)


@dataclass(frozen=True, slots=True)
class CheckedOutput:
    """Everything behind the match."""

    columns: tuple[ResultColumn, ...]
    is_grouped: bool
    ranking: Ranking | None
    order: tuple[SortKey, ...]
    limit: RowCount
    offset: RowCount


def check_output(context: Context, scope: BindingScope, body: ast.ReadBody) -> CheckedOutput | None:
    """None when something was reported: a part alone is of no use."""
    errors_before = context.diagnostics.error_count
    is_grouped = _is_grouped(context, body)
    columns = [_column(context, scope, item) for item in body.returns]
    aliases = {
        item.alias.text: column
        for item, column in zip(body.returns, columns, strict=True)
        if item.alias is not None
    }
    keys = _Order(context, scope, body, aliases, columns, is_grouped).check()
    _check_limits(context, body, keys)
    _check_fusions(context, body, columns, keys)
    if is_grouped:
        _check_grouping(context, body, columns)
    if context.diagnostics.error_count != errors_before:
        return None
    ranking, order = _split(keys)
    return CheckedOutput(
        columns=tuple(column for column in columns if column is not None),
        is_grouped=is_grouped,
        ranking=ranking,
        order=order,
        limit=None if body.limit is None else _row_count(context, body.limit.count),
        offset=None if body.limit is None else _row_count(context, body.limit.offset),
    )


def _is_grouped(context: Context, body: ast.ReadBody) -> bool:
    """Whether the rows are groups of matches: for aggregates, or to answer each row once."""
    aggregate = next((item for item in body.returns if _has_aggregate(item.expression)), None)
    if aggregate is not None and body.distinct:
        context.report(
            "T69",
            "groups are distinct already, except by their aggregates",
            aggregate.span,
            remedy="Remove `distinct`, or count different values with `count_distinct`.",
        )
    return body.distinct or aggregate is not None


def _row_count(context: Context, written: int | ast.Variable | None) -> RowCount:
    return context.parameters[written.name] if isinstance(written, ast.Variable) else written


# Return


def _has_aggregate(expression: ast.Expression) -> bool:
    return any(
        isinstance(part, ast.Call) and FUNCTIONS[part.function.text].kind == "aggregate"
        for part in ast.parts(expression)
    )


def _column(context: Context, scope: BindingScope, item: ast.ReturnItem) -> ResultColumn | None:
    expression = check_expression(context, scope, item.expression, "column")
    if expression is None:
        return None
    if isinstance(expression, NullValue):
        context.report(
            "T67",
            "`null` alone has no type",
            item.span,
            remedy="Return it from a `case` or a `coalesce` that has a value, too.",
        )
        return None
    name = _column_name(item.expression) if item.alias is None else item.alias.text
    if name is None:
        context.report(
            "T66",
            "this column needs a name",
            item.span,
            remedy="Name it: `… as name`.",
        )
        return None
    return ResultColumn(name, expression)


def _column_name(expression: ast.Expression) -> str | None:
    """The name of a column that has no alias; None for an operator, which needs one."""
    match expression:
        case ast.PropertyAccess():
            return f"{expression.variable.text}.{expression.property.text}"
        case ast.SystemField(variable=ast.Name(text=variable), name=name):
            return f"{variable}.@{name.text}"
        case ast.Variable():
            return expression.name
        case ast.Call():
            return expression.function.text
        case ast.LiteralValue() | ast.ListLiteral():
            return "literal"
        case _:
            return None


def _check_grouping(
    context: Context, body: ast.ReadBody, columns: Sequence[ResultColumn | None]
) -> None:
    """In a query with an aggregate, every other item is part of the grouping key."""
    every = [column.expression for column in columns if column is not None]
    keys = [item for item in every if not has_aggregate(item)]
    for item, column in zip(body.returns, columns, strict=True):
        if column is None:
            continue
        expression = column.expression
        if expression in keys and not _can_group(expression):
            context.report(
                "T9",
                "neither literals nor searches are keys of groups",
                item.span,
                remedy="Remove the item, or return it from a query of its own.",
            )
        elif expression not in keys and not _is_covered(expression, keys):
            context.report(
                "T9",
                "outside its aggregates, this column uses something that is no key of the groups",
                item.span,
                remedy="Return that part as a column of its own, too.",
            )


def _can_group(expression: Expression) -> bool:
    parts = list(walk(expression))
    if any(isinstance(part, (Nearest, Bm25, Fusion, TextMatch)) for part in parts):
        return False
    return not isinstance(expression, (Constant, CurrentTime))


def _is_covered(expression: Expression, keys: Sequence[Expression]) -> bool:
    """Whether an expression has one value in a group: made of keys and aggregates."""
    if expression in keys or isinstance(expression, Aggregate):
        return True
    if isinstance(expression, (PropertyOf, WholeEntity, TextMatch, Nearest, Bm25, Fusion)):
        return False
    return all(_is_covered(part, keys) for part in children(expression))


# Order


@dataclass(frozen=True, slots=True)
class _OutputKey:
    """One checked order item; ``alias`` is what it was written as, if it was one."""

    item: ast.OrderItem
    expression: Expression
    alias: str | None


class _Order:
    def __init__(
        self,
        context: Context,
        scope: BindingScope,
        body: ast.ReadBody,
        aliases: dict[str, ResultColumn | None],
        columns: Sequence[ResultColumn | None],
        is_grouped: bool,
    ) -> None:
        self._context = context
        self._scope = scope
        self._body = body
        self._aliases = aliases
        self._is_grouped = is_grouped
        self._returned = {
            item.expression: column
            for item, column in zip(body.returns, columns, strict=True)
            if _can_order(item.expression)
        }

    def check(self) -> list[_OutputKey]:
        found = (self._key(item) for item in self._body.order)
        return [key for key in found if key is not None]

    def _key(self, item: ast.OrderItem) -> _OutputKey | None:
        written = item.expression
        if isinstance(written, ast.LiteralValue) and written.kind == "boolean":
            # Nothing is ordered by a literal, so a column of this name is meant where there is one.
            word = "true" if written.value else "false"
            written = ast.AliasReference(word, written.span) if word in self._aliases else written
        if isinstance(written, ast.AliasReference):
            return self._alias(item, written)
        if not _can_order(written):
            self._refuse(item, "rows are ordered by values of the row, by columns or searches")
            return None
        expression: Expression | None
        if self._is_grouped and written in self._returned:
            column = self._returned[written]
            expression = None if column is None else column.expression
        elif _has_aggregate(written):
            self._refuse(item, "an aggregate that is not returned cannot order the rows")
            return None
        else:
            expression = check_expression(self._context, self._scope, written, "order")
        if expression is None or not self._is_ordered(item, expression):
            return None
        if self._is_grouped and written not in self._returned:
            self._refuse(item, "groups and distinct rows are ordered by what is returned")
            return None
        return _OutputKey(item, expression, None)

    def _alias(self, item: ast.OrderItem, written: ast.AliasReference) -> _OutputKey | None:
        if written.name not in self._aliases:
            self._context.report_unknown(
                "T39",
                f"no column is called `{written.name}`",
                written.span,
                written.name,
                self._aliases,
                remedy=f"Name one in `return`: `… as {written.name}`.",
            )
            return None
        column = self._aliases[written.name]
        if column is None or not self._is_ordered(item, column.expression):
            return None
        if isinstance(column.expression, Nearest) and item.direction == "desc":
            self._context.report(
                "T41",
                "`nearest` always puts the nearest first",
                item.span,
                remedy="Remove `desc`.",
            )
            return None
        return _OutputKey(item, column.expression, written.name)

    def _is_ordered(self, item: ast.OrderItem, expression: Expression) -> bool:
        kind = expression.type
        if isinstance(kind, EntityType):
            self._refuse(item, f"a whole {kind} has no order")
        elif not kind.is_single:
            self._refuse(item, f"values of type {kind.required()} have no order")
        else:
            return True
        return False

    def _refuse(self, item: ast.OrderItem, message: str) -> None:
        self._context.report(
            "T40",
            message,
            item.span,
            remedy="Return the value with an alias, and order by the alias.",
        )


def _can_order(expression: ast.Expression) -> bool:
    if isinstance(expression, ast.Call):
        return FUNCTIONS[expression.function.text].kind not in ("constant", "text")
    literals = (ast.LiteralValue, ast.NullLiteral, ast.ListLiteral)
    return not isinstance(expression, (*literals, ast.Variable))


def _split(keys: Sequence[_OutputKey]) -> tuple[Ranking | None, tuple[SortKey, ...]]:
    """The search that leads, if any, and the plain keys."""
    ranking: Ranking | None = None
    order: list[SortKey] = []
    for key in keys:
        if isinstance(key.expression, _RANKINGS):
            ranking = key.expression
        else:
            descending = key.item.direction == "desc"
            last = descending if key.item.nulls is None else key.item.nulls == "last"
            order.append(SortKey(key.expression, descending, last))
    return ranking, tuple(order)


# Rules about limits and searches


def _check_limits(context: Context, body: ast.ReadBody, keys: Sequence[_OutputKey]) -> None:
    for code, kind, name in (("T21", Fusion, "rrf"), ("T17", Nearest, "nearest")):
        key = next((key for key in keys if isinstance(key.expression, kind)), None)
        if key is not None and (body.limit is None or body.limit.count is None):
            context.report(
                code,
                f"ordering by `{name}` needs a limit",
                key.item.span,
                remedy="Add a limit, such as `limit 10`.",
            )
    alone = next((key for key in keys if _is_standalone_nearest(key)), None)
    if alone is not None and any(key.alias is not None for key in keys):
        context.report(
            "T18",
            "`nearest` cannot be combined with ordering by a column",
            alone.item.span,
            remedy="Return the distance with an alias, and order by aliases only.",
        )
    else:
        _check_first(context, body, keys)
    if body.limit is not None:
        for written in (body.limit.count, body.limit.offset):
            _check_row_count(context, body.limit, written)


def _check_row_count(
    context: Context, limit: ast.Limit, written: int | ast.Variable | None
) -> None:
    if isinstance(written, int) and written > I64_MAX:
        message = "this number of rows does not fit a 64-bit number"
        context.report("T38", message, limit.span, remedy="Leave the limit out.")
    if not isinstance(written, ast.Variable):
        return
    parameter = context.parameters.get(written.name)
    if parameter is None:
        if written.name not in context.unusable:
            context.report_unknown(
                "T34",
                f"`${written.name}` is not a parameter of this query",
                written.span,
                written.name,
                context.parameters,
                remedy="Declare it in the head of the query.",
            )
        return
    kind = parameter.type
    if not kind.is_single or kind.scalar.family != "integer" or kind.nullable:
        context.report(
            "T70",
            f"a number of rows is a whole number, not {describe(kind)}",
            written.span,
            remedy="Declare the parameter as `U32`, without `?`.",
        )


def _check_first(context: Context, body: ast.ReadBody, keys: Sequence[_OutputKey]) -> None:
    for key in keys:
        if isinstance(key.expression, _RANKINGS) and key.item is not body.order[0]:
            context.report(
                "T41",
                "a search orders the rows only as the first item of `order`",
                key.item.span,
                remedy="Put it first, and keep one search.",
            )


def _is_standalone_nearest(key: _OutputKey) -> bool:
    return key.alias is None and isinstance(key.expression, Nearest)


def _check_fusions(
    context: Context,
    body: ast.ReadBody,
    columns: Sequence[ResultColumn | None],
    keys: Sequence[_OutputKey],
) -> None:
    """The score of a fusion exists only where the fusion orders the rows."""
    leading = keys[0].expression if keys else None
    for item, column in zip(body.returns, columns, strict=True):
        if column is None or not isinstance(column.expression, Fusion):
            continue
        if column.expression != leading:
            context.report(
                "T36",
                "the score of `rrf` can only be returned by a query that is ordered by it",
                item.span,
                remedy="Give it an alias, and order by the alias with a limit.",
            )
