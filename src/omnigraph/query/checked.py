"""Checked queries: the syntax tree with every name resolved and every expression typed.

Owns the values that the checker hands to the planner and to lint. A block still mirrors what was
written; putting it into a canonical order is the planner's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from omnigraph.frozen import frozen
from omnigraph.query import ast
from omnigraph.query.expressions import (
    Compare,
    EntityType,
    Expression,
    ParameterValue,
    PropertyOf,
    Ranking,
    ValueType,
)


@frozen
class CheckedTraversal:
    """An edge between two variables, told by the ends of the edge, not by how it was written.

    A nameless end is None. ``max_hops`` below ``min_hops`` can never match: an edge between two
    different types is followed at most once.
    """

    edge: EntityType
    source: str | None
    target: str | None
    source_type: EntityType
    target_type: EntityType
    undirected: bool
    min_hops: int
    max_hops: int
    edge_variable: str | None


@frozen
class CheckedBlock:
    """``variables`` are those first bound here; a negation sees those of the blocks around it."""

    variables: Mapping[str, EntityType]
    traversals: tuple[CheckedTraversal, ...]
    conditions: tuple[Expression, ...]
    negations: tuple[CheckedBlock, ...]


@frozen
class Column:
    name: str
    expression: Expression

    @property
    def type(self) -> ValueType:
        return self.expression.type


@frozen
class SortKey:
    expression: Expression
    descending: bool


@frozen
class CheckedRead:
    """``ranking`` is the search that orders the rows; ``order`` follows it, or stands alone."""

    syntax: ast.Query
    parameters: tuple[ParameterValue, ...]
    block: CheckedBlock
    columns: tuple[Column, ...]
    is_aggregate: bool
    ranking: Ranking | None
    order: tuple[SortKey, ...]
    limit: int | None

    @property
    def name(self) -> str:
        return self.syntax.name.text


@frozen
class Assignment:
    property: PropertyOf
    value: Expression


@frozen
class CheckedInsert:
    """Of an edge, ``assignments`` include ``from`` and ``to``."""

    type: EntityType
    assignments: tuple[Assignment, ...]


@frozen
class CheckedUpdate:
    type: EntityType
    assignments: tuple[Assignment, ...]
    where: Compare


@frozen
class CheckedDelete:
    type: EntityType
    where: Compare


CheckedStatement: TypeAlias = CheckedInsert | CheckedUpdate | CheckedDelete


@frozen
class CheckedWrite:
    syntax: ast.Query
    parameters: tuple[ParameterValue, ...]
    statements: tuple[CheckedStatement, ...]

    @property
    def name(self) -> str:
        return self.syntax.name.text


CheckedQuery: TypeAlias = CheckedRead | CheckedWrite
