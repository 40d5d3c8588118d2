"""Access paths: which types are read through the cache and which only where they are touched.

What is in memory is used. What is not, and is large, is looked up in the tables for the first few
queries that ask for little of it, and loaded when it keeps being asked for. Both ways give the same
rows in the same order.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.query.expressions import EntityType, Expression, PropertyOf, WholeEntity, walk
from omnigraph.query.plan import Pattern, ReadPlan
from omnigraph.query.steps import Scan, Step
from omnigraph.read.cache import Cache
from omnigraph.read.ordering import Rows, order_steps
from omnigraph.read.probe import ProbedEdges, ProbedNodes
from omnigraph.read.scan import has_lookup
from omnigraph.read.tables import CachedEdges, CachedNodes
from omnigraph.schema import AcceptedSchema

if TYPE_CHECKING:
    from omnigraph.manifest.repository import Repository
    from omnigraph.storage.tables import PinnedTable

Access = Literal["auto", "cache", "probe"]

SMALL_ROWS_MAX: Final = 5_000
"""A type of so few entities is loaded at once: that takes as long as looking one up."""
TOUCHES_MAX: Final = 2
"""A version that was looked up this often is loaded the next time."""
STEPS_MAX: Final = 1_024
"""Orders of evaluation that are remembered for one snapshot."""
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


TypeUse: TypeAlias = Mapping[str, frozenset[str]]
"""Columns by type key."""


def type_use(plan: ReadPlan, schema: AcceptedSchema) -> TypeUse:
    """Which columns of which types a plan looks at."""
    found: dict[str, set[str]] = {}
    _pattern_use(plan.pattern, {}, schema, found)
    kinds = {item.name: item.type for item in plan.pattern.variables}
    expressions: list[Expression] = [item.expression for item in plan.columns]
    expressions += [item.expression for item in plan.order]
    for expression in expressions:
        _expression_use(expression, kinds, schema, found)
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
    for part in walk(expression):
        if isinstance(part, PropertyOf):
            found.setdefault(kinds[part.variable].key, set()).add(part.property)
        elif isinstance(part, WholeEntity):
            columns = schema.type(part.type.key).columns()
            names = {item.name for item in columns if not item.type.is_blob}
            found.setdefault(part.type.key, set()).update(names)


def starts_at_lookup(plan: ReadPlan, tables: SnapshotTables) -> bool:
    """Whether a plan begins with nodes that an index can name, and only follows edges on."""
    if plan.ranking is not None:
        return False
    steps = tables.steps(plan.pattern, (), ())
    scans = [step for step in steps if isinstance(step, Scan)]
    if not all(
        has_lookup(tables.schema.nodes[item.variable.type.name], item.variable.predicates)
        for item in scans
    ):
        return False
    known = {item.name for item in plan.pattern.variables}
    return all(_only_follows(item.pattern, known, tables.rows) for item in plan.pattern.anti_joins)


def _only_follows(pattern: Pattern, known: Collection[str], rows: Rows) -> bool:
    steps = order_steps(pattern, known, rows)
    inner = {*known, *(item.name for item in pattern.variables)}
    return not any(isinstance(step, Scan) for step in steps) and all(
        _only_follows(item.pattern, inner, rows) for item in pattern.anti_joins
    )


class SnapshotTables:
    """The types of one snapshot through the cache. Shared by all who read it; thread-safe."""

    def __init__(
        self,
        repository: Repository,
        snapshot: SnapshotPins,
        schema: AcceptedSchema,
        cache: Cache,
    ) -> None:
        self.repository = repository
        self.snapshot = snapshot
        self.schema = schema
        self.cache = cache
        self._nodes: dict[str, CachedNodes] = {}
        self._edges: dict[str, CachedEdges] = {}
        self._steps: dict[object, tuple[Pattern, tuple[Step, ...]]] = {}

    def rows(self, kind: EntityType) -> int:
        return self.snapshot.pin(kind.key).rows

    def key(self, type_key: str) -> tuple[object, ...]:
        """What names the content of a type for ever."""
        ref = self.snapshot.pin(type_key).ref
        return (self.repository.location.uri, self.repository.graph_id, ref)

    def nodes(self, name: str) -> CachedNodes:
        found = self._nodes.get(name)
        if found is None:
            kind = self.schema.nodes[name]
            rows, key = self.snapshot.pin(kind.key).rows, self.key(kind.key)
            found = CachedNodes(kind, rows, key, self.cache, self.opener(kind.key))
            self._nodes[name] = found
        return found

    def edges(self, name: str) -> CachedEdges:
        found = self._edges.get(name)
        if found is None:
            kind = self.schema.edges[name]
            rows, key = self.snapshot.pin(kind.key).rows, self.key(kind.key)
            ends = (self.nodes(kind.source), self.nodes(kind.target))
            found = CachedEdges(kind, rows, key, self.cache, self.opener(kind.key), *ends)
            self._edges[name] = found
        return found

    def table(self, key: str) -> CachedNodes | CachedEdges:
        return self.nodes(key[5:]) if key.startswith("node:") else self.edges(key[5:])

    def prepare(self, use: TypeUse) -> None:
        """Load what a plan reads, in one pass for each type."""
        for key, names in use.items():
            self.table(key).prepare(names)

    def opener(self, key: str) -> Callable[[], PinnedTable]:
        ref = self.snapshot.pin(key).ref
        return lambda: self.repository.tables.open(ref)

    def steps(
        self, pattern: Pattern, known: Collection[str], restricted: Collection[str]
    ) -> tuple[Step, ...]:
        """The order of evaluation: the same for every execution on this snapshot."""
        key = (id(pattern), frozenset(known), frozenset(restricted))
        found = self._steps.get(key)
        if found is None or found[0] is not pattern:
            if len(self._steps) >= STEPS_MAX:
                self._steps.clear()
            found = (pattern, tuple(order_steps(pattern, known, self.rows, restricted)))
            self._steps[key] = found
        return found[1]


class ProbingTables:
    """The types of one snapshot for one execution, some of them looked up instead of loaded."""

    def __init__(self, base: SnapshotTables, use: TypeUse, probed: frozenset[str]) -> None:
        self._base = base
        self._use = use
        self._probed = probed
        self._nodes: dict[str, CachedNodes | ProbedNodes] = {}
        self._edges: dict[str, CachedEdges | ProbedEdges] = {}
        self.rows = base.rows
        self.steps = base.steps

    def nodes(self, name: str) -> CachedNodes | ProbedNodes:
        found = self._nodes.get(name)
        if found is None:
            found = self._base.nodes(name)
            key = found.kind.key
            if key in self._probed:
                columns = self._use.get(key, frozenset())
                found = ProbedNodes(found.kind, found.rows, self._base.opener(key), columns)
            self._nodes[name] = found
        return found

    def edges(self, name: str) -> CachedEdges | ProbedEdges:
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


def choose_probed(
    tables: SnapshotTables, plan: ReadPlan, use: TypeUse, access: Access, touches: Touches
) -> frozenset[str]:
    """The types that this execution looks up instead of loading them."""
    if access == "cache":
        return frozenset()
    if access == "probe":
        can = starts_at_lookup(plan, tables)
        return frozenset(use) | _ends(tables, use) if can else frozenset()
    cold = [key for key in sorted(use) if _is_cold(tables, key, use[key])]
    if not cold or not starts_at_lookup(plan, tables):
        return frozenset()
    touched = [touches.add(tables.key(key)) for key in cold]
    if max(touched) >= TOUCHES_MAX:
        return frozenset()
    if any(key.startswith("node:") for key in cold):
        # Edges in memory speak of ordinals that looked-up nodes do not have.
        cold += [key for key in use if key.startswith("edge:")]
    return frozenset(cold)


def _ends(tables: SnapshotTables, use: TypeUse) -> frozenset[str]:
    edges = [tables.schema.edges[key[5:]] for key in use if key.startswith("edge:")]
    return frozenset(f"node:{end}" for edge in edges for end in (edge.source, edge.target))


def _is_cold(tables: SnapshotTables, key: str, columns: Collection[str]) -> bool:
    """Whether something large would have to be loaded."""
    table = tables.table(key)
    if table.rows <= SMALL_ROWS_MAX:
        return False
    if isinstance(table, CachedNodes):
        return not table.has_columns(("id", *columns))
    if not table.has_columns(columns):
        return True
    return not (table.has_adjacency("out") or table.has_adjacency("in"))
