"""Canonical forms: one form for everything that means the same.

Owns the rewriting of conditions and the order of the parts of a pattern. The plan of a query is
independent of the order of its clauses because of this module alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.lang.query.typed_expressions import (
    Compare,
    Complement,
    Constant,
    Expression,
    Junction,
    NullCheck,
    TextMatch,
    is_constant,
    to_text,
)

_MIRRORED: Final[Mapping[ComparisonOperator, ComparisonOperator]] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}

_OPPOSITES: Final[Mapping[ComparisonOperator, ComparisonOperator]] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


def conjuncts(conditions: Iterable[Expression]) -> list[Expression]:
    """Canonical conditions that all have to be true; an ``and`` is as many as it has operands."""
    found: list[Expression] = []
    for condition in conditions:
        inner = canonical_condition(condition)
        if isinstance(inner, Junction) and inner.operator == "and":
            found += conjuncts(inner.operands)
        else:
            found.append(inner)
    return found


def canonical_condition(condition: Expression) -> Expression:
    """The same condition, written the one way: what varies on the left, no `= true`, and the
    opposite of a comparison as a comparison.
    """
    if isinstance(condition, Complement):
        return _opposite(condition)
    if not isinstance(condition, Compare):
        return condition
    text = _as_text_match(condition)
    if text is not None:
        return text
    mirrored = _MIRRORED.get(condition.operator)
    if mirrored is not None and _side(condition.right) < _side(condition.left):
        return Compare(mirrored, condition.right, condition.left)
    return condition


def _opposite(condition: Complement) -> Expression:
    """A ``not`` moved inwards as far as three-valued logic allows without a new operator."""
    inner = canonical_condition(condition.operand)
    match inner:
        case Complement():
            return canonical_condition(inner.operand)
        case NullCheck():
            return NullCheck(inner.operand, not inner.negated)
        case TextMatch():
            return replace(inner, negated=not inner.negated)
        case Compare() if inner.operator in _OPPOSITES:
            return Compare(_OPPOSITES[inner.operator], inner.left, inner.right)
        case Junction(operator="or"):
            operands = tuple(canonical_condition(Complement(i)) for i in inner.operands)
            return Junction("and", operands)
        case _:
            return Complement(inner)


def _as_text_match(condition: Compare) -> TextMatch | None:
    """A text search compared with a literal is the search itself, or its opposite."""
    sides = (condition.left, condition.right)
    if condition.operator not in ("=", "!="):
        return None
    for search, other in (sides, sides[::-1]):
        if isinstance(search, TextMatch) and isinstance(other, Constant):
            wants = (other.value is True) == (condition.operator == "=")
            return search if wants else replace(search, negated=not search.negated)
    return None


def _side(expression: Expression) -> tuple[bool, str]:
    return is_constant(expression), to_text(expression)


def canonical_order(conditions: Iterable[Expression]) -> tuple[Expression, ...]:
    """Conditions without repetitions, in the order of their texts."""
    unique = {to_text(item): item for item in conditions}
    return tuple(unique[text] for text in sorted(unique))
