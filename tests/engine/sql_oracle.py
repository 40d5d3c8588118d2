"""The relational part of the language as SQL, so that DuckDB says what a plan means.

One query for the whole plan: nodes and edges are joined, negations are ``NOT EXISTS``, groups and
orders are SQL's own. What SQL has no word for (hops, text, vectors) is refused, and counted by the
test that uses this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from omnigraph.lang.query.checked import SortKey
from omnigraph.lang.query.plan.logical import Expand, GroupBy, Pattern, ReadPlan
from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    Compare,
    Complement,
    Conditional,
    Constant,
    Expression,
    FunctionCall,
    Junction,
    NullCheck,
    NullValue,
    ParameterValue,
    PropertyOf,
    WholeEntity,
    is_constant,
)
from omnigraph.model.floats import round_single
from omnigraph.model.types import PropertyType


class NotRelational(Exception):
    """SQL has no word for it."""


def sql_database(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """A database with one table for each type, named by its key; values as they are stored."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for key, table in tables.items():
        names = [name for name in table.column_names if name != "vec"]
        connection.register("given", table.select(names))
        connection.execute(f"CREATE TABLE {_name(key)} AS SELECT * FROM given")
        connection.unregister("given")
    return connection


_FUNCTIONS = {
    "coalesce": "coalesce",
    "contains": "contains",
    "length": "length",
    "lower": "lower",
    "size": "len",
    "upper": "upper",
}


@dataclass(frozen=True)
class SqlOracle:
    plan: ReadPlan
    parameters: Mapping[str, Any]

    def rows(self, connection: duckdb.DuckDBPyConnection, *, limited: bool) -> list[list[Any]]:
        """The answer, whole entities as their ids; in order if the plan has one."""
        found = connection.execute(self.text(limited=limited)).fetchall()
        columns = self.plan.output.columns
        return [
            [
                _produced(column.expression, value)
                for column, value in zip(columns, row, strict=True)
            ]
            for row in found
        ]

    def text(self, *, limited: bool) -> str:
        plan = self.plan
        if plan.ranking is not None:
            raise NotRelational
        shown = ", ".join(self._value(item.expression) for item in plan.output.columns)
        text = f"SELECT {shown} {self._from(plan.pattern)}"
        keys: list[str] = []
        if isinstance(plan.output, GroupBy):
            grouped = [item.expression for item in plan.output.keys]
            keys = [self._value(item) for item in grouped if not is_constant(item)]
            text += f" GROUP BY {', '.join(keys)}" if keys else ""
            if grouped and not keys:
                text += " HAVING count(*) > 0"
        if plan.order:
            ties = keys or [f"{_name(item)}.id" for item in plan.tie_break]
            order = [*map(self._sorted, plan.order), *(f"{key} ASC NULLS FIRST" for key in ties)]
            text += f" ORDER BY {', '.join(order)}"
        if limited and plan.limit is not None:
            text += f" LIMIT {plan.limit}"
        return f"{text} OFFSET {plan.offset}" if limited and plan.offset else text

    def _sorted(self, key: SortKey) -> str:
        way = f"{'DESC' if key.descending else 'ASC'} NULLS {'LAST' if key.nulls_last else 'FIRST'}"
        if is_constant(key.expression):  # a bare number would be a column's place
            return f"({self._value(key.expression)} IS NULL) {way}"
        return f"{self._value(key.expression)} {way}"

    # Patterns

    def _from(self, pattern: Pattern) -> str:
        edges = {item.edge_variable for item in pattern.expands}
        sources = [
            f"{_name(item.type.key)} AS {_name(item.name)}"
            for item in pattern.variables
            if item.name not in edges
        ]
        conditions = [
            self._holds(condition) for item in pattern.variables for condition in item.predicates
        ]
        for at, expand in enumerate(pattern.expands):
            source, condition = self._edge(expand, f"#edge{at}")
            sources += source
            conditions.append(condition)
        conditions += [self._holds(item) for item in pattern.filters]
        for item in pattern.anti_joins:
            conditions.append(f"NOT EXISTS (SELECT 1 {self._from(item.pattern)})")
        found = f"FROM {', '.join(sources)}" if sources else "FROM (SELECT 1)"
        return f"{found} WHERE {' AND '.join(conditions)}" if conditions else found

    def _edge(self, expand: Expand, anonymous: str) -> tuple[list[str], str]:
        """What to join for an edge, and what holds of it."""
        if expand.is_impossible:
            if expand.edge_variable is None:
                return [], "false"
            return [f"{_name(expand.edge.key)} AS {_name(expand.edge_variable)}"], "false"
        if expand.max_hops > 1:
            raise NotRelational
        alias = _name(expand.edge_variable or anonymous)
        ends = f"{_name(expand.source)}.id", f"{_name(expand.target)}.id"
        fits = f"({alias}.src = {ends[0]} AND {alias}.dst = {ends[1]})"
        if expand.undirected:
            fits = f"({fits} OR ({alias}.src = {ends[1]} AND {alias}.dst = {ends[0]}))"
        source = f"{_name(expand.edge.key)} AS {alias}"
        if expand.edge_variable is not None:
            return [source], fits
        return [], f"EXISTS (SELECT 1 FROM {source} WHERE {fits})"

    # Expressions

    def _holds(self, condition: Expression) -> str:
        return f"coalesce({self._value(condition)}, false)"

    def _compared(self, condition: Compare) -> str:
        left, right = condition.left, condition.right
        operator = condition.operator
        if operator == "contains":
            kind = left.type
            function = (
                "list_contains" if isinstance(kind, PropertyType) and kind.is_list else "contains"
            )
            return f"{function}({self._value(left)}, {self._value(right)})"
        if operator == "starts_with":
            return f"starts_with({self._value(left)}, {self._value(right)})"
        if is_constant(left) and not is_constant(right):
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return self._with_constant(right, mirrored, left)
        if is_constant(right) and not is_constant(left):
            return self._with_constant(left, operator, right)
        first, second = self._value(left), self._value(right)
        kinds = {_family(left), _family(right)}
        if kinds == {"integer", "float"}:
            if is_constant(left):
                raise NotRelational
            first, second = f"CAST({first} AS DOUBLE)", f"CAST({second} AS DOUBLE)"
        return f"{first} {_spelled(operator)} {second}"

    def _with_constant(self, left: Expression, operator: str, right: Expression) -> str:
        """Numbers compare by value, whatever their types."""
        column, value = self._value(left), self._literal(right)
        if value is None:
            return "CAST(NULL AS BOOLEAN)"
        if _family(left) == "integer" and isinstance(value, float):
            if not value.is_integer():
                if operator in ("=", "!="):
                    truth = "true" if operator == "!=" else "false"
                    return f"CASE WHEN {column} IS NULL THEN NULL ELSE {truth} END"
                below = operator in ("<", "<=")
                operator, value = ("<=" if below else ">="), math.floor(value) + (not below)
            return f"CAST({column} AS HUGEINT) {_spelled(operator)} {int(value)}"
        if _family(left) == "integer":
            return f"CAST({column} AS HUGEINT) {_spelled(operator)} {value}"
        if _family(left) == "float":
            if _scalar(left) == "F32":
                value = round_single(float(value))
            elif float(value) != value:
                raise NotRelational
            return f"CAST({column} AS DOUBLE) {_spelled(operator)} CAST({float(value)!r} AS DOUBLE)"
        return f"{column} {_spelled(operator)} {_quoted(value)}"

    def _value(self, expression: Expression) -> str:
        match expression:
            case Constant() | ParameterValue():
                return _quoted(self._literal(expression))
            case PropertyOf():
                return f"{_name(expression.variable)}.{_name(expression.property)}"
            case WholeEntity():
                return f"{_name(expression.variable)}.id"
            case Aggregate():
                return self._aggregate(expression)
            case Compare():
                return f"({self._compared(expression)})"
            case Junction():
                word = f" {expression.operator.upper()} "
                return f"({word.join(self._value(item) for item in expression.operands)})"
            case Complement():
                return f"(NOT {self._value(expression.operand)})"
            case NullCheck():
                test = "IS NOT NULL" if expression.negated else "IS NULL"
                return f"({self._value(expression.operand)} {test})"
            case NullValue():
                return "NULL"
            case FunctionCall() if expression.function in _FUNCTIONS:
                inside = ", ".join(self._value(item) for item in expression.arguments)
                return f"{_FUNCTIONS[expression.function]}({inside})"
            case Conditional():
                branches = " ".join(
                    f"WHEN {self._value(item.condition)} THEN {self._value(item.result)}"
                    for item in expression.branches
                )
                return f"CASE {branches} ELSE {self._value(expression.otherwise)} END"
            case _:
                raise NotRelational

    def _literal(self, expression: Expression) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, ParameterValue):
            return self.parameters[expression.name]
        raise NotRelational

    def _aggregate(self, expression: Aggregate) -> str:
        argument = self._value(expression.argument)
        if expression.function == "count_distinct":
            return f"count(DISTINCT {argument})"
        if expression.function in ("sum", "avg"):
            wide = "HUGEINT" if _family(expression.argument) == "integer" else "DOUBLE"
            return f"CAST({expression.function}(CAST({argument} AS {wide})) AS DOUBLE)"
        return f"{expression.function}({argument})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spelled(operator: str) -> str:
    return "<>" if operator == "!=" else operator


def _family(expression: Expression) -> str:
    kind = expression.type
    return kind.scalar.family if isinstance(kind, PropertyType) else ""


def _scalar(expression: Expression) -> str:
    kind = expression.type
    return kind.scalar.name if isinstance(kind, PropertyType) else ""


def _quoted(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_quoted(item) for item in value) + "]"
    return f"CAST({value!r} AS DOUBLE)" if isinstance(value, float) else str(value)


def _produced(expression: Expression, value: Any) -> Any:
    kind = expression.type
    return kind.produce(value) if isinstance(kind, PropertyType) else value


def close_rows(rows: list[list[Any]]) -> list[str]:
    """Rows as texts that are equal where floats differ only in the order they were added in."""
    return [repr([_rounded(value) for value in row]) for row in rows]


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value
