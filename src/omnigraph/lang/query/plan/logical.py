"""Logical plans: what a query asks for, in one canonical form.

Owns the values an engine executes. A read is a pattern (what must hold, without an order of
evaluation) and what becomes of its matches; two texts that differ only in the order or spelling of
clauses have equal plans. Which variable to start from and how to reach the others is the engine's
choice; ``steps`` offers one that needs no statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from omnigraph.errors import InvalidValue
from omnigraph.lang.query.checked import CheckedAssignment, ResultColumn, SortKey
from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    EntityType,
    Expression,
    ParameterValue,
    Ranking,
)


@dataclass(frozen=True, slots=True)
class PatternVariable:
    """A node or an edge to be found. ``predicates`` mention no other variable.

    The name of an anonymous variable starts with ``#``, which no text can write.
    """

    name: str
    type: EntityType
    predicates: tuple[Expression, ...] = ()

    @property
    def is_anonymous(self) -> bool:
        return self.name.startswith("#")


@dataclass(frozen=True, slots=True)
class Expand:
    """``source`` reaches ``target`` along an edge.

    Without an edge variable this is reachability from the source: each pair once. With one it is
    one match per stored edge, always a single hop. ``max_hops`` below ``min_hops`` never matches.
    """

    edge: EntityType
    source: str
    target: str
    undirected: bool
    min_hops: int
    max_hops: int
    edge_variable: str | None = None

    @property
    def is_impossible(self) -> bool:
        return self.max_hops < self.min_hops

    @property
    def is_one_hop(self) -> bool:
        return self.min_hops == self.max_hops == 1


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drops a row if the pattern has a match that extends it. ``outer`` is what it shares."""

    pattern: Pattern
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A conjunction. All parts are in canonical order.

    ``filters`` are the conditions that concern several variables, variables of the pattern around
    this one, or none at all, and those that can fail: they are tested when all else holds.
    """

    variables: tuple[PatternVariable, ...]
    expands: tuple[Expand, ...] = ()
    filters: tuple[Expression, ...] = ()
    anti_joins: tuple[AntiJoin, ...] = ()

    def variable(self, name: str) -> PatternVariable:
        return next(item for item in self.variables if item.name == name)


@dataclass(frozen=True, slots=True)
class Project:
    """One output row per match."""

    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class GroupBy:
    """One output row per distinct key; exactly one without a key. ``columns`` in output order."""

    keys: tuple[ResultColumn, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """``ranking`` orders first, then ``order``, then the ids of ``tie_break``, all ascending.

    Rows without ``ranking`` and ``order`` come in no particular order.
    """

    query: str
    parameters: tuple[ParameterValue, ...]
    pattern: Pattern
    output: Project | GroupBy
    ranking: Ranking | None = None
    order: tuple[SortKey, ...] = ()
    tie_break: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0
    limit_parameter: ParameterValue | None = None
    offset_parameter: ParameterValue | None = None

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self.output.columns

    @property
    def rows_max(self) -> int | None:
        """How many rows of the order are looked at; those of the offset are left out again."""
        return None if self.limit is None else self.limit + self.offset

    def bound(self, values: Mapping[str, Any]) -> ReadPlan:
        """The plan with its limit and offset taken from parameters."""
        if self.limit_parameter is None and self.offset_parameter is None:
            return self
        limit, offset = self.limit, self.offset
        if self.limit_parameter is not None:
            limit = _row_count("limit", values[self.limit_parameter.name])
        if self.offset_parameter is not None:
            offset = _row_count("offset", values[self.offset_parameter.name])
        return replace(
            self, limit=limit, offset=offset, limit_parameter=None, offset_parameter=None
        )


def _row_count(word: str, value: int) -> int:
    if not 0 <= value < 2**63:
        raise InvalidValue(
            f"`{word}` is {value}", remedy=f"Give a number of at least 0 as `{word}`."
        )
    return value


@dataclass(frozen=True, slots=True)
class InsertNode:
    """``upsert`` replaces the whole node with the same key; other nodes are always new."""

    type: EntityType
    values: tuple[CheckedAssignment, ...]
    upsert: bool


@dataclass(frozen=True, slots=True)
class InsertEdge:
    type: EntityType
    source: Expression
    target: Expression
    values: tuple[CheckedAssignment, ...]


@dataclass(frozen=True, slots=True)
class UpdateEntities:
    type: EntityType
    values: tuple[CheckedAssignment, ...]
    where: Expression


@dataclass(frozen=True, slots=True)
class DeleteEntities:
    """``cascade`` are the edge types that lose the edges of a deleted node."""

    type: EntityType
    where: Expression
    cascade: tuple[EntityType, ...]


Statement: TypeAlias = InsertNode | InsertEdge | UpdateEntities | DeleteEntities


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Statements in the order of the text; each sees what the ones before it did."""

    query: str
    parameters: tuple[ParameterValue, ...]
    statements: tuple[Statement, ...]

    @property
    def deletes(self) -> bool:
        return isinstance(self.statements[0], DeleteEntities)


Plan: TypeAlias = ReadPlan | WritePlan
