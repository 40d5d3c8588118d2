"""Scans: the nodes of a type that satisfy conditions on themselves alone.

An equality on the whole key is a look-up by id. Everything else is tested on columns, on fewer and
fewer rows. On first touch an equality is pushed down to the table; what comes back is tested again
here, so that both ways mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from omnigraph.query.expressions import Compare, Expression, PropertyOf, TextMatch, is_constant
from omnigraph.query.plan import PatternVariable
from omnigraph.read.evaluate import Evaluator
from omnigraph.read.frame import Frame
from omnigraph.read.probe import ProbedNodes, TooWide
from omnigraph.read.tables import CachedNodes
from omnigraph.read.values import Ints, Literal
from omnigraph.schema import NodeType


def scan_nodes(
    table: CachedNodes | ProbedNodes,
    variable: PatternVariable,
    evaluator: Evaluator,
    allowed: Ints | None = None,
) -> Ints:
    """The nodes that satisfy every predicate of a variable, in storage order."""
    ordinals = allowed if allowed is not None else _start(table, variable, evaluator)
    inner = replace(evaluator, tables={**evaluator.tables, variable.name: table})
    for condition in sorted(variable.predicates, key=_cost):
        if not len(ordinals):
            break
        mask = inner.truth(condition, Frame(len(ordinals), {variable.name: ordinals}))
        ordinals = ordinals[mask]
    return ordinals


def _start(
    table: CachedNodes | ProbedNodes, variable: PatternVariable, evaluator: Evaluator
) -> Ints:
    assert isinstance(table.kind, NodeType)
    id = key_id(table.kind, variable.predicates, evaluator)
    if id is not None:
        return table.find(id) if id else np.array([], dtype=np.int32)
    if isinstance(table, CachedNodes):
        return table.all
    condition = pushed_down(table.kind, variable.predicates, evaluator)
    if condition is None:
        raise TooWide
    return table.fetch(condition)[0]


def key_id(kind: NodeType, predicates: Sequence[Expression], evaluator: Evaluator) -> str | None:
    """The id that equalities on the key amount to; empty when no node can have it."""
    if len(kind.key_properties) != 1:
        return None
    name = kind.key_properties[0]
    for literal in _equalities(name, predicates, evaluator):
        if kind.properties[name].type.is_string and isinstance(literal.value, str):
            return literal.value
    return None


def has_lookup(kind: NodeType, predicates: Sequence[Expression]) -> bool:
    """Whether conditions name at most a few nodes, and an index can tell which."""
    unique = {columns[0] for columns in (*kind.unique, *kind.indexes) if len(columns) == 1}
    unique |= set(kind.key_properties[:1]) if len(kind.key_properties) == 1 else set()
    return any(
        isinstance(item, Compare)
        and item.operator == "="
        and isinstance(item.left, PropertyOf)
        and item.left.property in unique
        and item.left.type.scalar.family in ("string", "integer")
        and is_constant(item.right)
        for item in predicates
    )


def pushed_down(
    kind: NodeType, predicates: Sequence[Expression], evaluator: Evaluator
) -> str | None:
    """A condition in the words of the table that is true at least where the predicates are."""
    for name, declared in kind.properties.items():
        for literal in _equalities(name, predicates, evaluator):
            value = literal.value
            if declared.type.is_string and isinstance(value, str):
                text = value.replace("'", "''")
                return f"`{name}` = '{text}'"
            if declared.type.scalar.family == "integer" and isinstance(value, int):
                return f"`{name}` = {value}"
    return None


def _equalities(name: str, predicates: Sequence[Expression], evaluator: Evaluator) -> list[Literal]:
    return [
        evaluator.literal(item.right)
        for item in predicates
        if isinstance(item, Compare)
        and item.operator == "="
        and isinstance(item.left, PropertyOf)
        and item.left.property == name
        and is_constant(item.right)
    ]


def _cost(condition: Expression) -> int:
    """Cheap conditions first: numbers, then strings, then searches."""
    if isinstance(condition, TextMatch):
        return 3
    if isinstance(condition, Compare) and isinstance(condition.left, PropertyOf):
        return 0 if condition.left.type.scalar.family != "string" else 1
    return 2
