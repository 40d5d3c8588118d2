"""Access: the types of a snapshot, read through the cache or only where they are touched.

Both ways give the same rows in the same order; ``choice`` says which is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.engine.cache.cache import Cache
from omnigraph.engine.cache.disk_store import ArrayStore
from omnigraph.engine.exec.expand import Walk
from omnigraph.engine.exec.frame import ORIGIN
from omnigraph.engine.plan.join_order import Course, course_of, order_steps
from omnigraph.engine.tables.loaded import CachedEdges, CachedNodes, Direction, Kept, Recent
from omnigraph.engine.tables.probe import Edges, Nodes, ProbedEdges, ProbedNodes
from omnigraph.lang.query.plan.logical import Expand, Pattern, ReadPlan
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

REMEMBERED_MAX: Final = 1_024
"""Orders of evaluation, and other things about plans, that are remembered for one snapshot."""

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
    # What is searched is read by the search, unless it knows it already or an index does.
    searched = [part.field for part in parts if isinstance(part, TextMatch | Bm25 | Nearest)]
    for part in parts:
        if isinstance(part, PropertyOf) and not any(part is field for field in searched):
            found.setdefault(kinds[part.variable].key, set()).add(part.property)
        elif isinstance(part, WholeEntity):
            columns = schema.type(part.type.key).columns()
            names = {item.name for item in columns if not item.type.is_blob}
            found.setdefault(part.type.key, set()).update(names)


_V = TypeVar("_V")


class _Remembered(Generic[_V]):
    """Values by the identity of a plan, or a part of one. Bounded; thread-safe."""

    def __init__(self) -> None:
        self._values: dict[object, tuple[object, _V]] = {}

    def get(self, owner: object, more: object = None) -> _V | None:
        found = self._values.get((id(owner), more))
        return found[1] if found is not None and found[0] is owner else None

    def keep(self, value: _V, owner: object, more: object = None) -> None:
        if len(self._values) >= REMEMBERED_MAX:
            self._values.clear()
        self._values[id(owner), more] = (owner, value)


class SnapshotTables:
    """The types of one snapshot through the cache. Shared by all who read it; thread-safe."""

    def __init__(
        self,
        repository: Repository,
        snapshot: SnapshotPins,
        schema: AcceptedSchema,
        cache: Cache,
        recent: Recent,
        store: ArrayStore | None = None,
    ) -> None:
        self.recent = recent
        self.store = store
        self.repository = repository
        self.snapshot = snapshot
        self.schema = schema
        self.cache = cache
        self._nodes: dict[str, CachedNodes] = {}
        self._edges: dict[str, CachedEdges] = {}
        self._courses: _Remembered[Course] = _Remembered()
        self._by_variable: _Remembered[Mapping[str, CachedNodes | CachedEdges]] = _Remembered()
        self._loaded: _Remembered[int] = _Remembered()
        self._walks: _Remembered[Walk] = _Remembered()

    def rows(self, kind: EntityType) -> int:
        return self.snapshot.pin(kind.key).rows

    def key(self, type_key: str) -> str:
        """What names the content of a type for ever; a text, because its hash is kept."""
        pin = self.snapshot.pin(type_key)
        ref, uri, graph_id = pin.ref, self.repository.location.uri, self.repository.graph_id
        # The number of rows: a purge takes some from a version. The transaction: another copy of
        # the graph may have taken the place of the one that was read.
        parts = [uri, graph_id, ref.path, ref.branch, ref.version, pin.transaction, pin.rows]
        return json.dumps(parts)

    def nodes(self, name: str) -> CachedNodes:
        found = self._nodes.get(name)
        if found is None:
            kind = self.schema.nodes[name]
            pin, key = self.snapshot.pin(kind.key), self.key(kind.key)
            kept = None if self.store is None else partial(self._kept, (kind.key,))
            opener = self.opener(kind.key)
            found = CachedNodes(kind, pin, key, self.cache, opener, self.recent, kept)
            self._nodes[name] = found
        return found

    def edges(self, name: str) -> CachedEdges:
        found = self._edges.get(name)
        if found is None:
            kind = self.schema.edges[name]
            pin, key = self.snapshot.pin(kind.key), self.key(kind.key)
            ends = (self.nodes(kind.source), self.nodes(kind.target))
            made_from = (kind.key, f"node:{kind.source}", f"node:{kind.target}")
            kept = None if self.store is None else partial(self._kept, made_from)
            opener = self.opener(kind.key)
            found = CachedEdges(kind, pin, key, self.cache, opener, self.recent, *ends, kept)
            self._edges[name] = found
        return found

    def _kept(self, made_from: Sequence[str]) -> Kept:
        """Where structures of a type are kept, named by every table they are made from."""
        assert self.store is not None
        parts = [self.repository.location.uri, self.repository.graph_id]
        for key in made_from:
            pin = self.snapshot.pin(key)
            ref, uuid = pin.ref, self.repository.tables.transaction(pin.ref).uuid
            # The number of rows: a purge takes some from a version.
            parts += [ref.path, ref.branch or "", str(ref.version), uuid or "", str(pin.rows)]
        return self.store, json.dumps(parts)

    def table(self, key: str) -> CachedNodes | CachedEdges:
        return self.nodes(key[5:]) if key.startswith("node:") else self.edges(key[5:])

    def prepare(self, use: TypeUse) -> None:
        """Load what a plan reads, in one pass for each type."""
        drops = self.cache.drops
        for key, names in use.items():
            self.table(key).prepare(names)
        self._loaded.keep(drops, use)

    def is_loaded(self, use: TypeUse) -> bool:
        """Whether this was loaded before, and nothing was dropped from memory since."""
        return self._loaded.get(use) == self.cache.drops

    def by_variable(self, pattern: Pattern) -> Mapping[str, CachedNodes | CachedEdges]:
        """The type of each variable of a pattern."""
        found = self._by_variable.get(pattern)
        if found is None:
            found = {item.name: self.table(item.type.key) for item in pattern.variables}
            self._by_variable.keep(found, pattern)
        return found

    def walk(self, expand: Expand, direction: Direction) -> Walk:
        """How to go along an edge of a pattern, or against it."""
        found = self._walks.get(expand, direction)
        if found is None:
            found = _walk(self, expand, direction)
            self._walks.keep(found, expand, direction)
        return found

    def opener(self, key: str) -> Callable[[], PinnedTable]:
        ref = self.snapshot.pin(key).ref
        return lambda: self.repository.tables.open(ref)

    def course(
        self,
        pattern: Pattern,
        known: Collection[str],
        restricted: Collection[str],
        needed: Collection[str] = (),
    ) -> Course:
        """The order of evaluation: the same for every execution on this snapshot."""
        key = (frozenset(known), frozenset(restricted), frozenset(needed))
        found = self._courses.get(pattern, key)
        if found is None:
            steps = order_steps(pattern, known, self.rows, restricted, needed)
            found = course_of(steps, key[2] | ({ORIGIN} & key[0]))
            self._courses.keep(found, pattern, key)
        return found


def _walk(tables: SnapshotTables | ProbingTables, expand: Expand, direction: Direction) -> Walk:
    edges = tables.edges(expand.edge.name)
    kind = edges.kind
    assert isinstance(kind, EdgeType)
    far = tables.nodes(kind.target if direction == "out" else kind.source)
    count = far.rows if isinstance(edges, CachedEdges) else None
    return Walk(edges, direction, expand.undirected, far.positions, edges.positions, count)


class ProbingTables:
    """The types of one snapshot for one execution, some of them looked up instead of loaded."""

    def __init__(self, base: SnapshotTables, use: TypeUse, probed: frozenset[str]) -> None:
        self._base = base
        self._use = use
        self._probed = probed
        self._nodes: dict[str, Nodes] = {}
        self._edges: dict[str, Edges] = {}
        self.rows = base.rows
        self.course = base.course

    def by_variable(self, pattern: Pattern) -> Mapping[str, Nodes | Edges]:
        return {
            item.name: (
                self.nodes(item.type.name)
                if item.type.kind == "node"
                else self.edges(item.type.name)
            )
            for item in pattern.variables
        }

    def nodes(self, name: str) -> Nodes:
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

    def edges(self, name: str) -> Edges:
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
