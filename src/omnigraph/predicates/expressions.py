"""The evaluator of expressions on columns, for queries, mutations and results.

An expression gives one value for each row, or one literal for all rows. Conditions follow
three-valued logic: ``true_rows`` and ``false_rows`` are the two masks, and unknown is neither.
Where values come from is the business of ``Leaves``. An operand of ``and`` or ``or`` that can fail
is evaluated after the others, on the rows that they leave open; a branch of ``case`` only on the
rows that take it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    Calculation,
    Compare,
    Complement,
    Conditional,
    Expression,
    FunctionCall,
    Junction,
    ListOf,
    NullCheck,
    Opposite,
    PropertyOf,
    WholeEntity,
    can_fail,
    is_constant,
    walk,
)
from omnigraph.model.types import PropertyType
from omnigraph.predicates.arithmetic import calculate, opposite
from omnigraph.predicates.compare import Operand, compare, compare_literals
from omnigraph.predicates.functions import call_function
from omnigraph.predicates.values import Ints, Literal, Mask, Values, column_values, repeated


class Leaves(Protocol):
    """Some rows, and what the expressions that contain no others are in each of them."""

    @property
    def rows(self) -> int: ...

    def leaf(self, expression: Expression) -> Operand: ...

    def some(self, rows: Ints) -> Leaves:
        """A selection of these rows."""
        ...


_Masks: TypeAlias = Callable[[Expression, Leaves], Mask]


def evaluate(expression: Expression, leaves: Leaves) -> Operand:
    """The values of an expression."""
    if is_constant(expression) or isinstance(expression, (PropertyOf, WholeEntity, Aggregate)):
        return leaves.leaf(expression)
    if not _depends_on_rows(expression):
        one = _value(expression, _OneRow(leaves))
        if isinstance(one, Literal):
            return one
        value = one.to_list()[0]
        kind = expression.type
        assert isinstance(kind, PropertyType)
        return Literal(tuple(value) if isinstance(value, list) else value, kind)
    return _value(expression, leaves)


def as_column(operand: Operand, rows: int) -> Values:
    """A value for each row."""
    return repeated(operand, rows) if isinstance(operand, Literal) else operand


@dataclass(frozen=True, slots=True)
class _OneRow:
    """A row for what does not depend on the row."""

    outer: Leaves
    rows: int = 1

    def leaf(self, expression: Expression) -> Operand:
        return self.outer.leaf(expression)

    def some(self, rows: Ints) -> _OneRow:
        return _OneRow(self.outer, len(rows))


def _depends_on_rows(expression: Expression) -> bool:
    return any(isinstance(i, (PropertyOf, WholeEntity, Aggregate)) for i in walk(expression))


def _value(expression: Expression, leaves: Leaves) -> Operand:
    match expression:
        case Compare():
            return _compared(expression, leaves)
        case Junction() | Complement():
            true, false = true_rows(expression, leaves), false_rows(expression, leaves)
            return Values(expression.type, true, true | false)
        case NullCheck():
            return Values(expression.type, true_rows(expression, leaves))
        case Calculation():
            sides = (evaluate(expression.left, leaves), evaluate(expression.right, leaves))
            return calculate(expression, sides, leaves.rows)
        case Opposite():
            return opposite(expression, as_column(evaluate(expression.operand, leaves), 1))
        case Conditional():
            return _conditional(expression, leaves)
        case FunctionCall():
            arguments = [evaluate(item, leaves) for item in expression.arguments]
            return call_function(expression, arguments, leaves.rows)
        case ListOf():
            return _list(expression, leaves)
        case _:
            return leaves.leaf(expression)


def _compared(expression: Compare, leaves: Leaves) -> Operand:
    left, right = evaluate(expression.left, leaves), evaluate(expression.right, leaves)
    if isinstance(left, Literal) and isinstance(right, Literal):
        known = left.value is not None and right.value is not None
        truth = compare_literals(expression.operator, left, right) if known else None
        return Literal(truth, expression.type)
    mask = compare(expression.operator, left, right, leaves.rows)
    return Values(expression.type, mask, _both_known(left, right, leaves.rows))


def _both_known(left: Operand, right: Operand, rows: int) -> Mask | None:
    """Where neither side is null; None for everywhere."""
    known: Mask | None = None
    for side in (left, right):
        if isinstance(side, Literal):
            found = None if side.value is not None else np.zeros(rows, dtype=bool)
        else:
            found = side.is_valid()
        if found is not None:
            known = found if known is None else known & found
    return known


def _conditional(expression: Conditional, leaves: Leaves) -> Values:
    left = np.arange(leaves.rows)
    places: list[Ints] = []
    pieces: list[pa.Array] = []
    declared = expression.type.arrow_type()

    def add(result: Expression, rows: Ints) -> None:
        if len(rows):
            found = as_column(evaluate(result, leaves.some(rows)), len(rows)).to_arrow()
            pieces.append(found if found.type == declared else found.cast(declared))
            places.append(rows)

    for branch in expression.branches:
        mask = true_rows(branch.condition, leaves.some(left))
        add(branch.result, left[mask])
        left = left[~mask]
    add(expression.otherwise, left)
    if not pieces:
        return column_values(pa.array([], type=declared), expression.type)
    back = np.argsort(np.concatenate(places), kind="stable")
    return column_values(pa.concat_arrays(pieces).take(pa.array(back)), expression.type)


def _list(expression: ListOf, leaves: Leaves) -> Values:
    columns = [
        as_column(evaluate(item, leaves), leaves.rows).to_list() for item in expression.items
    ]
    rows = [None if None in items else list(items) for items in zip(*columns, strict=True)]
    return column_values(pa.array(rows, type=expression.type.arrow_type()), expression.type)


# Conditions


def true_rows(condition: Expression, leaves: Leaves) -> Mask:
    """The rows for which a condition is true."""
    match condition:
        case Compare():
            left, right = evaluate(condition.left, leaves), evaluate(condition.right, leaves)
            return compare(condition.operator, left, right, leaves.rows)
        case Junction():
            together = _all_of if condition.operator == "and" else _any_of
            return together(condition.operands, true_rows, leaves)
        case Complement():
            return false_rows(condition.operand, leaves)
        case NullCheck():
            found = evaluate(condition.operand, leaves)
            if isinstance(found, Literal):
                return np.full(leaves.rows, (found.value is None) != condition.negated)
            valid = found.is_valid()
            if valid is None:
                return np.full(leaves.rows, condition.negated)
            return valid if condition.negated else ~valid
        case _:
            return _has_truth(evaluate(condition, leaves), True, leaves.rows)


def false_rows(condition: Expression, leaves: Leaves) -> Mask:
    """The rows for which a condition is false, and not unknown."""
    match condition:
        case Junction():
            together = _any_of if condition.operator == "and" else _all_of
            return together(condition.operands, false_rows, leaves)
        case Complement():
            return true_rows(condition.operand, leaves)
        case _:
            return _has_truth(evaluate(condition, leaves), False, leaves.rows)


def _has_truth(found: Operand, truth: bool, rows: int) -> Mask:
    if isinstance(found, Literal):
        return np.full(rows, found.value is truth)
    mask = np.asarray(found.data if truth else ~found.data)
    return mask if found.valid is None else mask & found.valid


def _all_of(conditions: Sequence[Expression], masks: _Masks, leaves: Leaves) -> Mask:
    found: Mask | None = None
    for condition in _sure_first(conditions):
        if found is None:
            found = masks(condition, leaves)
        elif can_fail(condition):
            rows = np.flatnonzero(found)
            found = np.zeros(leaves.rows, dtype=bool)
            found[rows] = masks(condition, leaves.some(rows))
        else:
            found = found & masks(condition, leaves)
    assert found is not None
    return found


def _any_of(conditions: Sequence[Expression], masks: _Masks, leaves: Leaves) -> Mask:
    found: Mask | None = None
    for condition in _sure_first(conditions):
        if found is None:
            found = masks(condition, leaves)
        elif can_fail(condition):
            rows = np.flatnonzero(~found)
            found = found.copy()
            found[rows] = masks(condition, leaves.some(rows))
        else:
            found = found | masks(condition, leaves)
    assert found is not None
    return found


def _sure_first(conditions: Sequence[Expression]) -> list[Expression]:
    return sorted(conditions, key=can_fail)
