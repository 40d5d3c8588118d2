"""Access paths: which types are read through the cache and which only where they are touched.

What is in memory is used. What is not, and is large, is looked up in the tables for the first few
queries that ask for little of it, and loaded when it keeps being asked for. Both ways give the same
rows in the same order.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from omnigraph.manifest.rows import TablePin
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.query.expressions import EntityType, Expression, PropertyOf, WholeEntity, walk
from omnigraph.query.plan import Pattern, ReadPlan
from omnigraph.query.steps import Scan
from omnigraph.read.cache import Cache
from omnigraph.read.ordering import Rows, order_steps
from omnigraph.read.probe import ProbedEdges, ProbedNodes
from omnigraph.read.scan import has_lookup
from omnigraph.read.tables import CachedEdges, CachedNodes
from omnigraph.schema import AcceptedSchema, EdgeType

if TYPE_CHECKING:
    from omnigraph.manifest.repository import Repository
    from omnigraph.storage.tables import PinnedTable

Access = Literal["auto", "cache", "probe"]

SMALL_ROWS_MAX: Final = 5_000
"""A type of so few entities is loaded at once: that takes as long as looking one up."""
TOUCHES_MAX: Final = 2
"""A version that was looked up this often is loaded the next time."""
TOUCHED_MAX: Final = 4_096
"""Versions whose touches are remembered."""


class Touches:
    """How often versions were looked up without being loaded. Thread-safe and bounded."""

    def __init__(self) -> None:
        self._counts: OrderedDict[object, int] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, key: object) -> int:
        """Note a touch; returns how many there were before."""
        with self._lock:
            before = self._counts.pop(key, 0)
            self._counts[key] = before + 1
            while len(self._counts) > TOUCHED_MAX:
                self._counts.popitem(last=False)
            return before


@dataclass(frozen=True, slots=True)
class TypeUse:
    """Which columns of which types a plan looks at."""

    columns: Mapping[str, frozenset[str]]
    """By type key."""


def type_use(plan: ReadPlan, schema: AcceptedSchema) -> TypeUse:
    """What a plan reads of each type."""
    found: dict[str, set[str]] = {}
    _pattern_use(plan.pattern, {}, schema, found)
    kinds = {item.name: item.type for item in plan.pattern.variables}
    expressions: list[Expression] = [item.expression for item in plan.columns]
    expressions += [item.expression for item in plan.order]
    for expression in expressions:
        _expression_use(expression, kinds, schema, found)
    return TypeUse({key: frozenset(names) for key, names in found.items()})


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
    for part in walk(expression):
        if isinstance(part, PropertyOf):
            found.setdefault(kinds[part.variable].key, set()).add(part.property)
        elif isinstance(part, WholeEntity):
            columns = schema.type(part.type.key).columns()
            names = {item.name for item in columns if not item.type.is_blob}
            found.setdefault(part.type.key, set()).update(names)


def starts_at_lookup(plan: ReadPlan, schema: AcceptedSchema, rows: Rows) -> bool:
    """Whether a plan begins with nodes that an index can name, and only follows edges on."""
    if plan.ranking is not None:
        return False
    steps = order_steps(plan.pattern, (), rows)
    scans = [step for step in steps if isinstance(step, Scan)]
    if not all(
        has_lookup(schema.nodes[item.variable.type.name], item.variable.predicates)
        for item in scans
    ):
        return False
    known = {item.name for item in plan.pattern.variables}
    return all(_only_follows(item.pattern, known, rows) for item in plan.pattern.anti_joins)


def _only_follows(pattern: Pattern, known: Collection[str], rows: Rows) -> bool:
    steps = order_steps(pattern, known, rows)
    inner = {*known, *(item.name for item in pattern.variables)}
    return not any(isinstance(step, Scan) for step in steps) and all(
        _only_follows(item.pattern, inner, rows) for item in pattern.anti_joins
    )


@dataclass(slots=True)
class SnapshotTables:
    """The types of one snapshot, for one execution."""

    repository: Repository
    snapshot: SnapshotPins
    schema: AcceptedSchema
    cache: Cache
    use: TypeUse
    probed: frozenset[str] = frozenset()
    """The types that are looked up rather than loaded, by type key."""
    _nodes: dict[str, CachedNodes | ProbedNodes] = field(default_factory=dict)
    _edges: dict[str, CachedEdges | ProbedEdges] = field(default_factory=dict)

    def rows(self, kind: EntityType) -> int:
        return self.snapshot.pin(kind.key).rows

    def key(self, type_key: str) -> tuple[object, ...]:
        """What names the content of a type for ever."""
        ref = self.snapshot.pin(type_key).ref
        return (self.repository.location.uri, self.repository.graph_id, ref)

    def nodes(self, name: str) -> CachedNodes | ProbedNodes:
        found = self._nodes.get(name)
        if found is None:
            kind, key = self.schema.nodes[name], f"node:{name}"
            pin = self.snapshot.pin(key)
            if key in self.probed:
                columns = self.use.columns.get(key, frozenset())
                found = ProbedNodes(kind, pin.rows, self._opener(pin), columns)
            else:
                found = self.cached_nodes(name)
                found.prepare(self.use.columns.get(key, ()))
            self._nodes[name] = found
        return found

    def cached_nodes(self, name: str) -> CachedNodes:
        """The cached form of a node type; loads nothing."""
        key = f"node:{name}"
        pin = self.snapshot.pin(key)
        return CachedNodes(
            self.schema.nodes[name], pin.rows, self.key(key), self.cache, self._opener(pin)
        )

    def edges(self, name: str) -> CachedEdges | ProbedEdges:
        found = self._edges.get(name)
        if found is None:
            kind, key = self.schema.edges[name], f"edge:{name}"
            pin = self.snapshot.pin(key)
            if key in self.probed:
                found = ProbedEdges(
                    kind,
                    pin.rows,
                    self._opener(pin),
                    self.use.columns.get(key, frozenset()),
                    self.nodes(kind.source),
                    self.nodes(kind.target),
                )
            else:
                found = self.cached_edges(kind)
                found.prepare(self.use.columns.get(key, ()))
            self._edges[name] = found
        return found

    def cached_edges(self, kind: EdgeType) -> CachedEdges:
        """The cached form of an edge type; loads nothing."""
        pin = self.snapshot.pin(kind.key)
        ends = (self.cached_nodes(kind.source), self.cached_nodes(kind.target))
        return CachedEdges(kind, pin.rows, self.key(kind.key), self.cache, self._opener(pin), *ends)

    def _opener(self, pin: TablePin) -> Callable[[], PinnedTable]:
        return lambda: self.repository.tables.open(pin.ref)


def choose_probed(
    tables: SnapshotTables, plan: ReadPlan, access: Access, touches: Touches
) -> frozenset[str]:
    """The types that this execution looks up instead of loading them."""
    if access == "cache" or not starts_at_lookup(plan, tables.schema, tables.rows):
        return frozenset()
    if access == "probe":
        return frozenset(tables.use.columns) | _ends(tables)
    cold = [key for key in sorted(tables.use.columns) if _is_cold(tables, key)]
    touched = [touches.add(tables.key(key)) for key in cold]
    if max(touched, default=0) >= TOUCHES_MAX:
        return frozenset()
    if any(key.startswith("node:") for key in cold):
        # Edges in memory speak of ordinals that looked-up nodes do not have.
        cold += [key for key in tables.use.columns if key.startswith("edge:")]
    return frozenset(cold)


def _ends(tables: SnapshotTables) -> frozenset[str]:
    edges = [tables.schema.edges[k[5:]] for k in tables.use.columns if k.startswith("edge:")]
    return frozenset(f"node:{end}" for edge in edges for end in (edge.source, edge.target))


def _is_cold(tables: SnapshotTables, key: str) -> bool:
    name = key[5:]
    if tables.snapshot.pin(key).rows <= SMALL_ROWS_MAX:
        return False
    if key.startswith("node:"):
        return not tables.cached_nodes(name).has_columns(("id", *tables.use.columns[key]))
    edges = tables.cached_edges(tables.schema.edges[name])
    if not edges.has_columns(tables.use.columns[key]):
        return True
    return not (edges.has_adjacency("out") or edges.has_adjacency("in"))
