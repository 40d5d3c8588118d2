"""Expressions that compute a new property of existing entities from their other properties.

A value is null if an operand is missing, a divisor is zero, or the property cannot hold the result.
Expressions refer to properties by id, so that renaming a property does not affect them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.errors import InvalidValue
from omnigraph.model.types import PropertyType

Tree = tuple[Any, ...]
"""("value", v), ("property", id), ("coalesce", tree, ...), or an operator and its operands."""


@dataclass(frozen=True, slots=True)
class ComputedExpression:
    """An expression that was checked for the type of its property."""

    tree: Tree

    def sources(self) -> list[str]:
        """The ids of the properties that it uses."""
        return list(dict.fromkeys(_sources(self.tree)))

    def values(
        self, kind: PropertyType, columns: Mapping[str, Sequence[Any]], rows: int
    ) -> list[Any]:
        """One stored value per row; ``columns`` are the values of other properties by id."""
        compute = _compiled(self.tree, columns)
        accept = kind.scalar.accept

        def value(at: int) -> Any:
            try:
                found = compute(at)
                return None if found is None else accept(found)
            except (ArithmeticError, InvalidValue):
                return None

        return [value(at) for at in range(rows)]

    def to_json(self) -> list[Any]:
        return _listed(self.tree)

    @classmethod
    def from_json(cls, body: Sequence[Any]) -> ComputedExpression:
        return cls(_tuple(body))


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _compiled(tree: Tree, columns: Mapping[str, Sequence[Any]]) -> Callable[[int], Any]:
    what, *given = tree
    if what == "value":
        return lambda _: given[0]
    if what == "property":
        column = columns[given[0]]
        return lambda at: column[at]
    parts = [_compiled(part, columns) for part in given]
    if what == "coalesce":
        return lambda at: next((v for part in parts if (v := part(at)) is not None), None)
    apply, (left, right) = _OPERATORS[what], parts

    def computed(at: int) -> Any:
        first, second = left(at), right(at)
        if first is None or second is None:
            return None
        found = apply(first, second)
        return None if isinstance(found, float) and not math.isfinite(found) else found

    return computed


def _sources(tree: Tree) -> list[str]:
    what, *given = tree
    if what == "property":
        return [given[0]]
    return [] if what == "value" else [name for part in given for name in _sources(part)]


def _tuple(body: Sequence[Any]) -> Tree:
    return tuple(_tuple(item) if isinstance(item, list) else item for item in body)


def _listed(tree: Tree) -> list[Any]:
    return [_listed(item) if isinstance(item, tuple) else item for item in tree]
