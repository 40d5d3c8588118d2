"""Scans: the nodes of a type that satisfy conditions on themselves alone.

An equality on the whole key is a look-up by id. Everything else is tested on columns, on fewer and
fewer rows. On first touch an equality is pushed down to the table; what comes back is tested again
here, so that both ways mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.engine.exec.evaluate import Evaluator
from omnigraph.engine.exec.frame import BLOCK_ROWS, Chosen, Frame
from omnigraph.engine.tables.loaded import CachedNodes
from omnigraph.engine.tables.probe import ProbedNodes, TooWide
from omnigraph.lang.query.plan.logical import PatternVariable
from omnigraph.lang.query.typed_expressions import (
    Compare,
    Expression,
    PropertyOf,
    TextMatch,
    is_constant,
)
from omnigraph.lang.schema import NodeType
from omnigraph.predicates.table_filter import lookup_filter
from omnigraph.predicates.values import Ints, Literal, Mask

GATHER_SHARE: Final = 8
"""When less than one in so many entities is left, only those are looked at from then on."""
CHOSEN_SHARE: Final = 4
"""When at least one in so many of all entities is left, they need not be listed."""
_NONE = np.array([], dtype=np.int32)


def scan_nodes(
    table: CachedNodes | ProbedNodes,
    variable: PatternVariable,
    evaluator: Evaluator,
    allowed: Ints | None = None,
) -> Frame:
    """The nodes that satisfy every predicate of a variable, in storage order.

    The evaluator knows the table of the variable already.
    """
    if allowed is not None:
        ordinals, predicates = allowed, variable.predicates
    else:
        ordinals, predicates = _start(table, variable, evaluator)
    if len(predicates) > 1:
        predicates = tuple(sorted(predicates, key=_cost))
    # Testing whole columns is quicker than gathering what is left, until little is.
    name, rows = variable.name, len(ordinals)
    left: Mask | None = None
    for condition in predicates:
        if not rows:
            break
        mask = evaluator.truth(condition, Frame(len(ordinals), {name: ordinals}))
        left = mask if left is None else left & mask
        rows = int(np.count_nonzero(left))
        if rows * GATHER_SHARE < len(ordinals):
            ordinals, left = ordinals[left], None
    if left is None or rows == len(ordinals):
        return Frame(rows, {name: ordinals})
    if isinstance(table, CachedNodes) and ordinals is table.all:
        chosen = Chosen(name, ordinals, left)
        is_dense = rows > BLOCK_ROWS and rows * CHOSEN_SHARE >= len(ordinals)
        return Frame(rows, chosen if is_dense else {name: chosen[name]})
    return Frame(rows, {name: ordinals[left]})


def _start(
    table: CachedNodes | ProbedNodes, variable: PatternVariable, evaluator: Evaluator
) -> tuple[Ints, tuple[Expression, ...]]:
    """The nodes to look at, and the conditions that are still to be tested."""
    assert isinstance(table.kind, NodeType)
    found = _by_key(table, variable, evaluator)
    if found is not None:
        return found
    if isinstance(table, CachedNodes):
        return table.all, variable.predicates
    condition = pushed_down(table.kind, variable.predicates, evaluator)
    if condition is None:
        raise TooWide
    return table.fetch(condition)[0], variable.predicates


def _by_key(
    table: CachedNodes | ProbedNodes, variable: PatternVariable, evaluator: Evaluator
) -> tuple[Ints, tuple[Expression, ...]] | None:
    """The node that an equality on a string key names: its id is the key."""
    kind = table.kind
    assert isinstance(kind, NodeType)
    named = names_key(kind, variable.predicates)
    if named is None:
        return None
    value = evaluator.literal(named.right).value
    found = table.find(value) if isinstance(value, str) else _NONE
    return found, tuple(other for other in variable.predicates if other is not named)


def names_key(kind: NodeType, predicates: Sequence[Expression]) -> Compare | None:
    """The condition that names a node by its key, where the key is one string."""
    key = kind.key_columns
    if len(key) != 1 or not kind.properties[key[0]].type.is_string:
        return None
    for item in predicates:
        if isinstance(item, Compare) and _is_equality(item, key[0]):
            return item
    return None


def _is_equality(condition: Expression, name: str) -> bool:
    return (
        isinstance(condition, Compare)
        and condition.operator == "="
        and isinstance(condition.left, PropertyOf)
        and condition.left.property == name
        and is_constant(condition.right)
    )


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
            found = lookup_filter(name, declared.type, "=", literal.value)
            if found is not None:
                return found
    return None


def _equalities(name: str, predicates: Sequence[Expression], evaluator: Evaluator) -> list[Literal]:
    return [
        evaluator.literal(item.right)
        for item in predicates
        if isinstance(item, Compare) and _is_equality(item, name)
    ]


def _cost(condition: Expression) -> int:
    """Cheap conditions first: numbers, then strings, then searches."""
    if isinstance(condition, TextMatch):
        return 3
    if isinstance(condition, Compare) and isinstance(condition.left, PropertyOf):
        return 0 if condition.left.type.scalar.family != "string" else 1
    return 2
