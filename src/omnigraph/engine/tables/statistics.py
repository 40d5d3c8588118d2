"""Statistics of one snapshot: degrees of nodes, sizes of joins of two edge types, selectivities.

Made from adjacency and columns in memory, at the cost of a pass over the nodes, and cached for the
snapshot. They are estimates: ``plan/cost_order.py`` chooses an order by them, and no answer depends
on it.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from omnigraph.engine.plan.join_order import HOPS_COUNTED_MAX, selectivity
from omnigraph.engine.tables.loaded import CachedNodes, Direction
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.lang.query.plan.logical import Expand, PatternVariable
from omnigraph.lang.query.typed_expressions import (
    Compare,
    EntityType,
    Expression,
    PropertyOf,
    is_constant,
)
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.predicates.values import Ints

SAMPLE_ROWS: Final = 4_096
"""Entities of which the distinct values of a property are counted."""
UNIQUE_SHARE: Final = 0.9
"""A property of which this share of a sample is distinct has about as many values as entities."""


class CountedTables(Protocol):
    """The tables of a snapshot, in memory."""

    @property
    def schema(self) -> AcceptedSchema: ...

    def rows(self, kind: EntityType) -> int: ...

    def edges(self, name: str) -> CachedEdges: ...

    def table(self, key: str) -> CachedNodes | CachedEdges: ...


class GraphStatistics:
    """Cardinalities of one snapshot (``cost_order.Statistics``)."""

    def __init__(self, tables: CountedTables) -> None:
        self._tables = tables
        self._degrees: dict[tuple[str, ...], float] = {}
        self._functional: dict[tuple[str, str], bool] = {}
        self._shares: dict[tuple[str, str], float] = {}

    def rows(self, kind: EntityType) -> int:
        return self._tables.rows(kind)

    def is_key(self, kind: EntityType, name: str) -> bool:
        return kind.kind == "node" and self._tables.schema.nodes[kind.name].key_columns == (name,)

    def is_functional(self, expand: Expand, start: str) -> bool:
        key = (expand.edge.name, _way(expand, start))
        found = self._functional.get(key)
        if found is None:
            degrees = self._degrees_of(*key)
            found = not len(degrees) or int(degrees.max()) <= 1
            self._functional[key] = found
        return found

    def degree(self, expand: Expand, start: str, arrived: Expand | None) -> float:
        way = _way(expand, start)
        key: tuple[str, ...] = (expand.edge.name, way)
        if arrived is not None:
            key += (arrived.edge.name, _way(arrived, start))
        found = self._degrees.get(key)
        if found is None:
            found = self._mean_degree(*key)
            self._degrees[key] = found
        return float(found ** min(expand.max_hops, HOPS_COUNTED_MAX))

    def _mean_degree(self, name: str, way: str, *arrived: str) -> float:
        degrees = self._degrees_of(name, way)
        if not len(degrees):
            return 0.0
        if not arrived:
            return float(degrees.mean())
        times = self._degrees_of(*arrived)
        return float(np.dot(degrees, times) / max(1.0, times.sum()))

    def _degrees_of(self, name: str, way: str) -> Ints:
        edges = self._tables.edges(name)
        ways: tuple[Direction, ...] = ("out", "in")
        found = [edges.degrees(item).astype(float) for item in ways if way in (item, "both")]
        return np.asarray(np.sum(found, axis=0))

    def selectivity(self, variable: PatternVariable, condition: Expression) -> float:
        if (
            isinstance(condition, Compare)
            and condition.operator == "="
            and isinstance(condition.left, PropertyOf)
            and is_constant(condition.right)
            and condition.left.type.is_single
        ):
            return self._equal_share(variable.type, condition.left.property)
        return selectivity(condition)

    def _equal_share(self, kind: EntityType, name: str) -> float:
        """The share of entities with one value of a property: one in as many as there are."""
        key = (kind.key, name)
        found = self._shares.get(key)
        if found is None:
            rows = self._tables.rows(kind)
            is_unique = rows == 0 or self.is_key(kind, name)
            found = 1 / max(1, rows) if is_unique else 1 / self._distinct(kind, name, rows)
            self._shares[key] = found
        return found

    def _distinct(self, kind: EntityType, name: str, rows: int) -> float:
        """About how many values a property has."""
        column = self._tables.table(kind.key).column(name)
        places = np.arange(0, rows, max(1, rows // SAMPLE_ROWS))
        values = column.take(places).to_arrow()
        distinct = len(values.unique())
        return float(rows if distinct > UNIQUE_SHARE * len(values) else max(1, distinct))


def _way(expand: Expand, start: str) -> str:
    """The direction in which an edge leaves a node."""
    if expand.undirected:
        return "both"
    return "out" if start == expand.source else "in"
