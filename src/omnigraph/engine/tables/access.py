"""The tables of a snapshot, cached in memory or probed for the few rows a query needs.

Both access paths return the same rows in the same order; ``plan/access_choice.py`` selects one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.engine.cache.disk_store import ArrayStore
from omnigraph.engine.cache.identity_cache import IdentityCache
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.exec.expand import Walk
from omnigraph.engine.exec.match_frame import ORIGIN
from omnigraph.engine.exec.scan import has_lookup
from omnigraph.engine.plan.cost_order import order_by_cost
from omnigraph.engine.plan.join_order import StepOrder, order_steps
from omnigraph.engine.tables.loaded import (
    CachedNodes,
    Direction,
    LatestVersions,
    StoreEntry,
)
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.engine.tables.probe import (
    EdgeTable,
    EntityTable,
    NodeTable,
    ProbedEdges,
    ProbedNodes,
)
from omnigraph.engine.tables.statistics import GraphStatistics
from omnigraph.lang.query.plan.logical import Expand, GroupBy, Pattern, ReadPlan
from omnigraph.lang.query.plan.steps import Scan
from omnigraph.lang.query.typed_expressions import (
    Bm25,
    EntityType,
    Expression,
    Nearest,
    PropertyOf,
    TextMatch,
    WholeEntity,
    counts_rows,
    walk,
)
from omnigraph.lang.schema import AcceptedSchema, EdgeType
from omnigraph.storage.lance.tables import PinnedTable

TypeUse: TypeAlias = Mapping[str, frozenset[str]]
"""Columns by type key."""


def type_use(plan: ReadPlan, schema: AcceptedSchema) -> TypeUse:
    """The columns of each type that a plan reads."""
    found: dict[str, set[str]] = {}
    _pattern_use(plan.pattern, {}, schema, found)
    kinds = {item.name: item.type for item in plan.pattern.variables}
    output = plan.output
    expressions: list[Expression] = []
    if isinstance(output, GroupBy):  # columns and order are made of keys and aggregates
        expressions += [item.expression for item in output.keys]
        expressions += output.aggregates
    else:
        expressions += [item.expression for item in output.columns]
        expressions += [item.expression for item in plan.order]
    for expression in expressions:
        _expression_use(expression, kinds, schema, found)
    for name in plan.tie_break:
        found[kinds[name].key].add("id")
    return {key: frozenset(names) for key, names in found.items()}


def _pattern_use(
    pattern: Pattern,
    outer: Mapping[str, EntityType],
    schema: AcceptedSchema,
    found: dict[str, set[str]],
) -> None:
    kinds = {**outer, **{item.name: item.type for item in pattern.variables}}
    for variable in pattern.variables:
        found.setdefault(variable.type.key, set())
        for condition in variable.predicates:
            _expression_use(condition, kinds, schema, found)
    for expand in pattern.expands:
        found.setdefault(expand.edge.key, set())
    for condition in pattern.filters:
        _expression_use(condition, kinds, schema, found)
    for item in pattern.anti_joins:
        _pattern_use(item.pattern, kinds, schema, found)


def _expression_use(
    expression: Expression,
    kinds: Mapping[str, EntityType],
    schema: AcceptedSchema,
    found: dict[str, set[str]],
) -> None:
    if counts_rows(expression):
        return
    parts = list(walk(expression))
    # A searched property is read by the search itself, unless it has an index in memory.
    searched = [part.field for part in parts if isinstance(part, TextMatch | Bm25 | Nearest)]
    for part in parts:
        if isinstance(part, PropertyOf) and not any(part is field for field in searched):
            found.setdefault(kinds[part.variable].key, set()).add(part.property)
        elif isinstance(part, WholeEntity):
            columns = schema.type(part.type.key).columns()
            names = {item.name for item in columns if not item.type.is_blob}
            found.setdefault(part.type.key, set()).update(names)


class SnapshotTables:
    """The cached tables of one snapshot. Shared by all its readers; thread-safe."""

    prefetches: ClassVar[bool] = False

    def __init__(
        self,
        repository: Repository,
        snapshot: SnapshotPins,
        schema: AcceptedSchema,
        cache: MemoryCache,
        latest: LatestVersions,
        store: ArrayStore | None = None,
    ) -> None:
        self.latest = latest
        self.store = store
        self.repository = repository
        self.snapshot = snapshot
        self.schema = schema
        self.cache = cache
        self._nodes: dict[str, CachedNodes] = {}
        self._edges: dict[str, CachedEdges] = {}
        self._step_orders: IdentityCache[StepOrder] = IdentityCache()
        self._by_variable: IdentityCache[Mapping[str, CachedNodes | CachedEdges]] = IdentityCache()
        self._loaded: IdentityCache[int] = IdentityCache()
        self._walks: IdentityCache[Walk] = IdentityCache()
        self._statistics = GraphStatistics(self)

    def rows(self, kind: EntityType) -> int:
        return self.snapshot.pin(kind.key).rows

    def key(self, type_key: str) -> str:
        """A cache key that identifies the content of a type; strings cache their hash."""
        pin = self.snapshot.pin(type_key)
        ref, uri, graph_id = pin.ref, self.repository.location.uri, self.repository.graph_id
        # With the row count, because a purge removes rows from a version; and with the transaction,
        # because another copy of the graph may have replaced the one that was read.
        parts = [uri, graph_id, ref.path, ref.branch, ref.version, pin.transaction, pin.rows]
        return json.dumps(parts)

    def nodes(self, name: str) -> CachedNodes:
        found = self._nodes.get(name)
        if found is None:
            kind = self.schema.nodes[name]
            pin, key = self.snapshot.pin(kind.key), self.key(kind.key)
            store_entry = None if self.store is None else partial(self._store_entry, (kind.key,))
            opener = self.opener(kind.key)
            found = CachedNodes(kind, pin, key, self.cache, opener, self.latest, store_entry)
            self._nodes[name] = found
        return found

    def edges(self, name: str) -> CachedEdges:
        found = self._edges.get(name)
        if found is None:
            kind = self.schema.edges[name]
            pin, key = self.snapshot.pin(kind.key), self.key(kind.key)
            ends = (self.nodes(kind.source), self.nodes(kind.target))
            made_from = (kind.key, f"node:{kind.source}", f"node:{kind.target}")
            store_entry = None if self.store is None else partial(self._store_entry, made_from)
            opener = self.opener(kind.key)
            found = CachedEdges(kind, pin, key, self.cache, opener, self.latest, *ends, store_entry)
            self._edges[name] = found
        return found

    def _store_entry(self, made_from: Sequence[str]) -> StoreEntry:
        """The disk store, and a key of all tables that a structure is built from."""
        assert self.store is not None
        parts = [self.repository.location.uri, self.repository.graph_id]
        for key in made_from:
            pin = self.snapshot.pin(key)
            ref, uuid = pin.ref, self.repository.tables.transaction(pin.ref).uuid
            # With the row count, because a purge removes rows from a version.
            parts += [ref.path, ref.branch or "", str(ref.version), uuid or "", str(pin.rows)]
        return self.store, json.dumps(parts)

    def table(self, key: str) -> CachedNodes | CachedEdges:
        return self.nodes(key[5:]) if key.startswith("node:") else self.edges(key[5:])

    def prepare(self, use: TypeUse) -> None:
        """Load the columns that a plan reads, in one scan per type."""
        removals = self.cache.removals
        for key, names in use.items():
            self.table(key).prepare(names)
        self._loaded.put(use, removals)

    def is_loaded(self, use: TypeUse) -> bool:
        """Whether these columns were loaded, and nothing was evicted since."""
        return self._loaded.get(use) == self.cache.removals

    def by_variable(self, pattern: Pattern) -> Mapping[str, CachedNodes | CachedEdges]:
        """The table of each variable of a pattern."""
        found = self._by_variable.get(pattern)
        if found is None:
            found = {item.name: self.table(item.type.key) for item in pattern.variables}
            self._by_variable.put(pattern, found)
        return found

    def walk(self, expand: Expand, direction: Direction) -> Walk:
        """The expansion of an edge of a pattern in one direction."""
        found = self._walks.get(expand, direction)
        if found is None:
            found = _walk(self, expand, direction)
            self._walks.put(expand, found, direction)
        return found

    def opener(self, key: str) -> Callable[[], PinnedTable]:
        ref = self.snapshot.pin(key).ref
        return lambda: self.repository.tables.open(ref)

    def step_order(
        self,
        pattern: Pattern,
        known: Collection[str],
        restricted: Collection[str],
        needed: Collection[str] = (),
    ) -> StepOrder:
        """The join order of a pattern, cached for this snapshot."""
        key = (frozenset(known), frozenset(restricted), frozenset(needed))
        found = self._step_orders.get(pattern, key)
        if found is None:
            found = None if known or restricted else self._order_by_cost(pattern, key[2])
            if found is None:
                steps = order_steps(pattern, known, self.rows, restricted, needed)
                found = StepOrder.of(steps, key[2] | ({ORIGIN} & key[0]))
            self._step_orders.put(pattern, found, key)
        return found

    def _order_by_cost(self, pattern: Pattern, needed: frozenset[str]) -> StepOrder | None:
        """The cheapest order of a pattern that reads whole types anyway; None for others."""
        if len(pattern.expands) < 2 or self.scans_by_lookup(pattern):
            return None
        return order_by_cost(pattern, needed, self._statistics)

    def scans_by_lookup(self, pattern: Pattern) -> bool:
        """Whether every scan of a pattern can use an index, in the order by row counts."""
        scans = [step for step in order_steps(pattern, (), self.rows) if isinstance(step, Scan)]
        return all(
            has_lookup(self.schema.nodes[item.variable.type.name], item.variable.predicates)
            for item in scans
        )


def _walk(tables: SnapshotTables | ProbingTables, expand: Expand, direction: Direction) -> Walk:
    edges = tables.edges(expand.edge.name)
    kind = edges.kind
    assert isinstance(kind, EdgeType)
    far = tables.nodes(kind.target if direction == "out" else kind.source)
    count = edges.far_count(direction)
    return Walk(edges, direction, expand.undirected, far.positions, edges.positions, count)


class ProbingTables:
    """The tables of one snapshot for one execution, some of them probed instead of loaded."""

    prefetches: ClassVar[bool] = True

    def __init__(self, base: SnapshotTables, use: TypeUse, probed: frozenset[str]) -> None:
        self._base = base
        self._use = use
        self._probed = probed
        self._nodes: dict[str, NodeTable] = {}
        self._edges: dict[str, EdgeTable] = {}
        self.rows = base.rows
        self.step_order = base.step_order

    def by_variable(self, pattern: Pattern) -> Mapping[str, EntityTable]:
        return {
            item.name: (
                self.nodes(item.type.name)
                if item.type.kind == "node"
                else self.edges(item.type.name)
            )
            for item in pattern.variables
        }

    def nodes(self, name: str) -> NodeTable:
        found = self._nodes.get(name)
        if found is None:
            found = self._base.nodes(name)
            kind = self._base.schema.nodes[name]
            if kind.key in self._probed:
                columns = self._use.get(kind.key, frozenset())
                found = ProbedNodes(kind, found.rows, self._base.opener(kind.key), columns)
            self._nodes[name] = found
        return found

    def walk(self, expand: Expand, direction: Direction) -> Walk:
        return _walk(self, expand, direction)

    def edges(self, name: str) -> EdgeTable:
        found = self._edges.get(name)
        if found is None:
            found = self._base.edges(name)
            kind = self._base.schema.edges[name]
            if kind.key in self._probed:
                columns = self._use.get(kind.key, frozenset())
                ends = (self.nodes(kind.source), self.nodes(kind.target))
                opener = self._base.opener(kind.key)
                found = ProbedEdges(kind, found.rows, opener, columns, *ends)
            self._edges[name] = found
        return found
