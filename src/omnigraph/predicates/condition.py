"""Conditions and expressions on the rows of a stored table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.lang.query.typed_expressions import (
    Compare,
    Constant,
    CurrentTime,
    Expression,
    Junction,
    NullValue,
    ParameterValue,
    PropertyOf,
    is_constant,
    walk,
)
from omnigraph.model.types import PropertyType
from omnigraph.predicates.compare import Operand, compare
from omnigraph.predicates.expressions import as_column, evaluate, true_rows
from omnigraph.predicates.table_filter import lookup_filter
from omnigraph.predicates.values import Ints, Literal, Mask, Values, column_values

BLOCK_ROWS = 1 << 20
"""Rows that are compared at a time, which bounds the size of temporary copies."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison with a stored value; null, on either side, never matches."""

    column: str
    kind: PropertyType
    operator: ComparisonOperator
    value: Any

    def mask(self, rows: pa.Table) -> Mask:
        """Which rows match."""
        column, literal = rows[self.column], Literal(self.value, self.kind)
        found = [np.zeros(0, dtype=bool)]
        for start in range(0, rows.num_rows, BLOCK_ROWS):
            part = column_values(column.slice(start, BLOCK_ROWS), self.kind)
            found.append(compare(self.operator, part, literal, len(part)))
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class StoredValues:
    """What the expressions of a mutation refer to: parameters, the time, and how the columns of
    the properties are called.
    """

    parameters: Mapping[str, Any]
    now_ms: int
    column_of: Callable[[str], str] = str

    def value(self, expression: Expression) -> Any:
        """The value of an expression that reads no row."""
        found = evaluate(expression, TableLeaves(self, NO_ROWS))
        assert isinstance(found, Literal)
        return found.value

    def column(self, expression: Expression, rows: pa.Table) -> Values:
        """The value of an expression in every row."""
        return as_column(evaluate(expression, TableLeaves(self, rows)), rows.num_rows)


NO_ROWS: Final = pa.table({})


@dataclass(frozen=True, slots=True)
class TableLeaves:
    """The rows of a table for the evaluator of expressions."""

    values: StoredValues
    table: pa.Table

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def leaf(self, expression: Expression) -> Operand:
        match expression:
            case PropertyOf():
                column = self.table[self.values.column_of(expression.property)]
                return column_values(column, expression.type)
            case Constant():
                return Literal(expression.value, expression.type)
            case ParameterValue():
                return Literal(self.values.parameters[expression.name], expression.type)
            case CurrentTime():
                return Literal(self.values.now_ms, expression.type)
            case NullValue():
                return Literal(None, expression.type)
            case _:
                raise AssertionError(f"a mutation has no {type(expression).__name__}")

    def some(self, rows: Ints) -> TableLeaves:
        return TableLeaves(self.values, self.table.take(pa.array(rows)))


@dataclass(frozen=True, slots=True)
class RowCondition:
    """The ``where`` of a mutation: the rows for which an expression is true."""

    expression: Expression
    values: StoredValues

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        names = (part.property for part in walk(self.expression) if isinstance(part, PropertyOf))
        return tuple(dict.fromkeys(map(self.values.column_of, names)))

    @property
    def can_match(self) -> bool:
        """False where a comparison with null keeps every row away."""
        return not any(
            isinstance(part, Compare)
            and is_constant(part.right)
            and self.values.value(part.right) is None
            for part in self._parts()
        )

    def filter(self) -> str | None:
        """A table filter that keeps at least the matching rows; None when a scan is needed."""
        for part in self._parts():
            if (
                isinstance(part, Compare)
                and isinstance(part.left, PropertyOf)
                and is_constant(part.right)
            ):
                value = self.values.value(part.right)
                column = self.values.column_of(part.left.property)
                found = lookup_filter(column, part.left.type, part.operator, value)
                if found is not None:
                    return found
        return None

    def _parts(self) -> tuple[Expression, ...]:
        """The conditions that all have to hold."""
        whole = self.expression
        if isinstance(whole, Junction) and whole.operator == "and":
            return whole.operands
        return (whole,)

    def matching(self, rows: pa.Table) -> pa.Table:
        """The rows that match."""
        found = [np.zeros(0, dtype=bool)]
        for start in range(0, rows.num_rows, BLOCK_ROWS):
            part = rows.slice(start, BLOCK_ROWS)
            found.append(true_rows(self.expression, TableLeaves(self.values, part)))
        return rows.filter(pa.array(np.concatenate(found)))
