"""Node scans: the nodes of a type that satisfy the predicates of one variable.

An equality on the whole key is a look-up by id. Other predicates are evaluated on columns, each on
the rows that the previous ones left. A probed table gets an equality as a pushed-down filter; its
rows are tested again here, so that both access paths have the same semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.match_frame import BLOCK_ROWS, MaskedColumn, MatchFrame
from omnigraph.engine.tables.probe import NodeTable
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
"""When less than 1/8 of the entities are left, the remaining predicates run on those only."""
MASK_SHARE: Final = 4
"""When at least 1/4 of all entities are left, the frame keeps the mask (``MaskedColumn``)."""
_NONE = np.array([], dtype=np.int32)


def scan_nodes(
    table: NodeTable,
    variable: PatternVariable,
    evaluator: Evaluator,
    allowed: Ints | None = None,
) -> MatchFrame:
    """The nodes that satisfy every predicate of a variable, in storage order.

    The evaluator must have the table of the variable.
    """
    if allowed is not None:
        ordinals, predicates = allowed, variable.predicates
    else:
        ordinals, predicates = _start(table, variable, evaluator)
    if len(predicates) > 1:
        predicates = tuple(sorted(predicates, key=_cost))
    # Evaluating whole columns is faster than gathering the rest, until few rows are left.
    name, rows = variable.name, len(ordinals)
    left: Mask | None = None
    for condition in predicates:
        if not rows:
            break
        mask = evaluator.truth(condition, MatchFrame(len(ordinals), {name: ordinals}))
        left = mask if left is None else left & mask
        rows = int(np.count_nonzero(left))
        if rows * GATHER_SHARE < len(ordinals):
            ordinals, left = ordinals[left], None
    if left is None or rows == len(ordinals):
        return MatchFrame(rows, {name: ordinals})
    if table.is_all(ordinals):
        chosen = MaskedColumn(name, ordinals, left)
        is_dense = rows > BLOCK_ROWS and rows * MASK_SHARE >= len(ordinals)
        return MatchFrame(rows, chosen if is_dense else {name: chosen[name]})
    return MatchFrame(rows, {name: ordinals[left]})


def _start(
    table: NodeTable, variable: PatternVariable, evaluator: Evaluator
) -> tuple[Ints, tuple[Expression, ...]]:
    """The candidates, and the predicates that are still to be evaluated."""
    kind = table.kind
    assert isinstance(kind, NodeType)
    found = _by_key(table, variable, evaluator)
    if found is not None:
        return found
    predicates = variable.predicates
    return table.candidates(lambda: pushed_down(kind, predicates, evaluator)), predicates


def _by_key(
    table: NodeTable, variable: PatternVariable, evaluator: Evaluator
) -> tuple[Ints, tuple[Expression, ...]] | None:
    """The node that an equality on a string key selects: its id is the key."""
    kind = table.kind
    assert isinstance(kind, NodeType)
    named = names_key(kind, variable.predicates)
    if named is None:
        return None
    value = evaluator.literal(named.right).value
    found = table.find(value) if isinstance(value, str) else _NONE
    return found, tuple(other for other in variable.predicates if other is not named)


def names_key(kind: NodeType, predicates: Sequence[Expression]) -> Compare | None:
    """The equality that selects a node by its key, where the key is one string."""
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
    """Whether an equality on a unique or indexed property can be answered by an index."""
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
    """A filter for the table that keeps at least the rows that satisfy the predicates."""
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
    """Relative cost of a predicate: numbers, then strings, then searches."""
    if isinstance(condition, TextMatch):
        return 3
    if isinstance(condition, Compare) and isinstance(condition.left, PropertyOf):
        return 0 if condition.left.type.scalar.family != "string" else 1
    return 2
