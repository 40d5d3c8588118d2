"""Checked queries: the syntax tree with every name resolved and every expression typed.

Owns the values that the checker hands to the planner and to lint. A block still mirrors what was
written; putting it into a canonical order is the planner's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    EntityType,
    Expression,
    ParameterValue,
    PropertyOf,
    Ranking,
    ValueType,
)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class CheckedBlock:
    """``variables`` are those first bound here; a negation sees those of the blocks around it."""

    variables: Mapping[str, EntityType]
    traversals: tuple[CheckedTraversal, ...]
    conditions: tuple[Expression, ...]
    negations: tuple[CheckedBlock, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    expression: Expression

    @property
    def type(self) -> ValueType:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class SortKey:
    """``nulls_last`` as the order of rows has it: by default nulls are smaller than all values."""

    expression: Expression
    descending: bool
    nulls_last: bool


RowCount: TypeAlias = int | ParameterValue | None
"""A number of rows: known, given as a parameter, or none."""


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """``ranking`` is the search that orders the rows; ``order`` follows it, or stands alone."""

    syntax: ast.Query
    parameters: tuple[ParameterValue, ...]
    block: CheckedBlock
    columns: tuple[ResultColumn, ...]
    is_grouped: bool
    ranking: Ranking | None
    order: tuple[SortKey, ...]
    limit: RowCount
    offset: RowCount

    @property
    def name(self) -> str:
        return self.syntax.name.text


@dataclass(frozen=True, slots=True)
class CheckedAssignment:
    property: PropertyOf
    value: Expression


@dataclass(frozen=True, slots=True)
class CheckedInsert:
    """Of an edge, ``assignments`` include ``from`` and ``to``."""

    type: EntityType
    assignments: tuple[CheckedAssignment, ...]


@dataclass(frozen=True, slots=True)
class CheckedUpdate:
    type: EntityType
    assignments: tuple[CheckedAssignment, ...]
    where: Expression


@dataclass(frozen=True, slots=True)
class CheckedDelete:
    type: EntityType
    where: Expression


CheckedStatement: TypeAlias = CheckedInsert | CheckedUpdate | CheckedDelete


@dataclass(frozen=True, slots=True)
class CheckedWrite:
    syntax: ast.Query
    parameters: tuple[ParameterValue, ...]
    statements: tuple[CheckedStatement, ...]

    @property
    def name(self) -> str:
        return self.syntax.name.text


CheckedQuery: TypeAlias = CheckedRead | CheckedWrite
