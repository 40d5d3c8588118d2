"""Pattern matching: executes the steps of a pattern and returns a frame of its matches.

Each step filters or extends the frame. Variables that are no longer live are dropped, and rows that
differed only in them collapse into one row with a weight, so that counting paths does not enumerate
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np

from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.expand import Walk
from omnigraph.engine.exec.intersect import Intersection, KnownEnd, known_end
from omnigraph.engine.exec.match_frame import ORIGIN, START, MatchFrame, group_rows
from omnigraph.engine.exec.profile import Profile
from omnigraph.engine.exec.scan import scan_nodes
from omnigraph.engine.limits import Guard
from omnigraph.engine.plan.join_order import PlannedStep, StepOrder
from omnigraph.engine.plan.pattern_shapes import open_edge_start
from omnigraph.engine.tables.adjacency import Adjacency, Reached
from omnigraph.engine.tables.loaded import Direction
from omnigraph.engine.tables.loaded_edges import CachedEdges
from omnigraph.engine.tables.probe import EdgeTable, EntityTable, NodeTable
from omnigraph.errors import ResourceLimit
from omnigraph.lang.query.plan.logical import AntiJoin, Expand, Pattern, PatternVariable
from omnigraph.lang.query.plan.steps import Connected, Follow, Intersect, Scan, Step, Where, Without
from omnigraph.lang.query.typed_expressions import EntityType
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask

COLLAPSE_ROWS_MIN: Final = 4_096
"""Smaller frames are not collapsed: looking for equal rows costs more than it saves. Must not be
below ``PROBE_ROWS_MAX``, because collapsing changes the order of rows."""


class Tables(Protocol):
    """The tables of the snapshot that is read."""

    def nodes(self, name: str) -> NodeTable: ...

    def edges(self, name: str) -> EdgeTable: ...

    def walk(self, expand: Expand, direction: Direction) -> Walk: ...

    def step_order(
        self,
        pattern: Pattern,
        known: Collection[str],
        restricted: Collection[str],
        needed: Collection[str] = (),
    ) -> StepOrder: ...


@dataclass(frozen=True, slots=True)
class PatternMatcher:
    """Matches one pattern. ``restricted`` limits variables to given entities."""

    tables: Tables
    evaluator: Evaluator
    guard: Guard
    profile: Profile
    restricted: Mapping[str, Ints] = field(default_factory=dict)
    only_existence: bool = False

    def match(
        self, pattern: Pattern, needed: Collection[str], start: MatchFrame = START
    ) -> MatchFrame:
        """The matches of a pattern that extend ``start``, with the columns ``needed``.

        The evaluator must have the tables of the pattern's variables.
        """
        frame = start
        for planned in self.tables.step_order(
            pattern, start.columns, self.restricted, needed
        ).steps:
            self.guard.check()
            if self.profile.enabled:
                with self.profile.step(planned.step, frame, self._access) as done:
                    frame = self._run(planned, frame)
                    done(frame)
            else:
                frame = self._run(planned, frame)
        return frame

    def _with_tables_of(self, pattern: Pattern) -> PatternMatcher:
        """This matcher with the tables of the pattern's own variables."""
        known = self.evaluator.tables
        more = {}
        for item in pattern.variables:
            table = self._table(item.type)
            if known.get(item.name) is not table:
                more[item.name] = table
        if not more:
            return self
        return replace(self, evaluator=self.evaluator.with_tables(more))

    def _table(self, kind: EntityType) -> EntityTable:
        return self.tables.nodes(kind.name) if kind.kind == "node" else self.tables.edges(kind.name)

    def _run(self, planned: PlannedStep, frame: MatchFrame) -> MatchFrame:
        live = planned.live
        found = self._found(planned.step, frame, live)
        kept = found.only(live)
        if (
            planned.collapses
            and kept.rows >= COLLAPSE_ROWS_MIN
            and (kept is not found or not live.issuperset(frame.columns))
        ):
            kept = kept.collapse()
            if self.only_existence:
                kept = MatchFrame(kept.rows, kept.columns)
        return kept

    def _found(self, step: Step, frame: MatchFrame, live: frozenset[str]) -> MatchFrame:
        match step:
            case Scan():
                return self._scan(step.variable, frame, live)
            case Follow():
                return self._follow(step, frame, live)
            case Connected():
                return self._connected(step, frame)
            case Intersect():
                return self._intersect(step, frame, live)
            case Where():
                return frame.keep(self.evaluator.truth(step.condition, frame))
            case Without():
                return frame.keep(~self._extended(step.anti_join, frame))

    def _access(self, step: Step) -> str:
        """The access path of a step, for the profile."""
        match step:
            case Scan():
                return self.tables.nodes(step.variable.type.name).access_path
            case Follow() | Connected():
                return self.tables.edges(step.expand.edge.name).access_path
            case Intersect():
                return self.tables.edges(step.expands[0].edge.name).access_path
            case _:
                return ""

    # Scans

    def _scan(
        self, variable: PatternVariable, frame: MatchFrame, live: frozenset[str]
    ) -> MatchFrame:
        found = self._scanned(variable)
        if variable.name not in live:
            return frame.multiply(np.full(frame.rows, found.rows))
        if frame is START:
            return found
        self.guard.allow_frame(frame.rows * found.rows)
        rows, every = chunked.product(frame.rows, found.columns[variable.name])
        return frame.take(rows).bind(variable.name, every)

    def candidates(self, variable: PatternVariable) -> Ints:
        """The entities that satisfy the predicates of a variable."""
        return self._scanned(variable).columns[variable.name]

    def _scanned(self, variable: PatternVariable) -> MatchFrame:
        table = self.tables.nodes(variable.type.name)
        return scan_nodes(table, variable, self.evaluator, self.restricted.get(variable.name))

    def _accepts(self, variable: PatternVariable, ordinals: Ints) -> Mask | None:
        """Which of these entities satisfy the predicates of a variable; None if all do."""
        allowed = self.restricted.get(variable.name)
        if not variable.predicates and allowed is None:
            return None
        table = self._table(variable.type)
        if table.favours_whole_columns(len(ordinals)):
            every = self._accepts(variable, table.whole().all)
            return None if every is None else chunked.take(every, ordinals)
        mask = np.ones(len(ordinals), dtype=bool)
        if allowed is not None:
            mask &= sets.among(ordinals, allowed)
        frame = MatchFrame(len(ordinals), {variable.name: ordinals})
        for condition in variable.predicates:
            mask &= self.evaluator.truth(condition, frame)
        return mask

    # Traversals

    def _follow(self, step: Follow, frame: MatchFrame, live: frozenset[str]) -> MatchFrame:
        expand, found = step.expand, step.found
        if expand.is_impossible:
            return self._nothing(frame, step)
        forward = found.name == expand.target
        known = frame.columns[expand.source if forward else expand.target]
        walk = self.tables.walk(expand, "out" if forward else "in")
        if self._counts_only(step, live):
            return frame.multiply(self._counts(step, walk, known))
        if step.edge is not None:
            return self._follow_edges(step.edge, found, walk, known, frame.only(live))
        reached = self._reach(walk, expand, known, reverse=not forward)
        mask = self._accepts(found, reached.node)
        if mask is not None:
            reached = Reached(*chunked.compress(mask, *reached))
        return frame.only(live).take(reached.origin).bind(found.name, reached.node)

    def _follow_edges(
        self,
        edge: PatternVariable,
        found: PatternVariable,
        walk: Walk,
        known: Ints,
        frame: MatchFrame,
    ) -> MatchFrame:
        """``frame``: the frame with its live columns only."""
        self._allow(walk, known)
        hits = walk.edges_of(known)
        origin, node, ordinals = hits
        for variable in (edge, found):
            mask = self._accepts(variable, ordinals if variable is edge else node)
            if mask is not None:
                origin, node, ordinals = chunked.compress(mask, origin, node, ordinals)
        return frame.take(origin).bind(edge.name, ordinals).bind(found.name, node)

    def _counts_only(self, step: Follow, live: frozenset[str]) -> bool:
        """Whether only the number of neighbours is needed."""
        return (
            step.found.name not in live
            and (step.edge is None or step.edge.name not in live)
            and step.expand.max_hops == 1
            and (not step.expand.undirected or self._is_joined(step))
        )

    def _is_joined(self, step: Follow) -> bool:
        """Whether the neighbours in both directions can be counted in one adjacency."""
        cached = isinstance(self.tables.edges(step.expand.edge.name), CachedEdges)
        return cached and step.edge is None

    def _counts(self, step: Follow, walk: Walk, known: Ints) -> Ints:
        """The number of matching neighbours of each known node."""
        edges, way = walk.edges, walk.direction
        distinct = step.edge is None
        tested = [item for item in (step.found, step.edge) if item is not None]
        adjacency: Adjacency | None
        if walk.undirected:
            assert isinstance(edges, CachedEdges)
            adjacency = edges.joined_adjacency()
        else:
            adjacency = None
        if not any(item.predicates or item.name in self.restricted for item in tested):
            if adjacency is not None:
                return adjacency.degrees(known)
            return edges.count(way, known, distinct=distinct)
        if adjacency is None:
            adjacency = edges.adjacency(way, distinct=distinct)
        if adjacency is not None and 2 * adjacency.degrees(known).sum() > len(adjacency.nodes):
            mask = self._accepted(step, adjacency.nodes, adjacency.edges)
            return adjacency.counts_of(known, mask)
        if distinct:
            origin, node = walk.neighbours(known)
            mask = self._accepted(step, node)
        else:
            origin, node, edge = edges.edges_of(way, known)
            mask = self._accepted(step, node, edge)
        return chunked.bincount(chunked.compress(mask, origin)[0], len(known))

    def _accepted(self, step: Follow, nodes: Ints, edges: Ints | None = None) -> Mask:
        """Which neighbours, and edges to them, satisfy the predicates of their variables."""
        mask = np.ones(len(nodes), dtype=bool)
        for variable, ordinals in ((step.found, nodes), (step.edge, edges)):
            if variable is not None and ordinals is not None:
                found = self._accepts(variable, ordinals)
                if found is not None:
                    mask &= found
        return mask

    def _reach(self, walk: Walk, expand: Expand, known: Ints, *, reverse: bool) -> Reached:
        if expand.max_hops == 1:
            self._allow(walk, known)
            return walk.neighbours(known)
        starts, place = chunked.unique_codes(known)
        found = walk.reach(starts, expand.min_hops, expand.max_hops, self.guard, reverse=reverse)
        if len(starts) == len(known) and (starts == known).all():
            return found
        ends = np.zeros(len(starts) + 1, dtype=np.int64)
        ends[1:] = chunked.cumsum(chunked.bincount(found.origin, len(starts)))
        by_start = Adjacency(ends, found.node, found.node)
        self.guard.allow_frame(int(by_start.degrees(place).sum()))
        return by_start.neighbours(place)

    def _allow(self, walk: Walk, known: Ints) -> None:
        """Refuse a step that would exceed the memory limit, before it runs."""
        edges = walk.edges
        if not self.guard.has_room(edges.expansion_bound(len(known))):
            ways: tuple[Direction, ...] = ("out", "in") if walk.undirected else (walk.direction,)
            counts = (edges.count(way, known, distinct=False).sum() for way in ways)
            self.guard.allow_frame(int(sum(counts)))

    def _nothing(self, frame: MatchFrame, step: Follow) -> MatchFrame:
        none = np.array([], dtype=np.int32)
        empty = frame.take(none).bind(step.found.name, none)
        return empty if step.edge is None else empty.bind(step.edge.name, none)

    def _connected(self, step: Connected, frame: MatchFrame) -> MatchFrame:
        expand = step.expand
        source, target = frame.columns[expand.source], frame.columns[expand.target]
        if expand.is_impossible:
            empty = frame.take(np.array([], dtype=np.int32))
            return empty if step.edge is None else empty.bind(step.edge.name, source[:0])
        walk = self.tables.walk(expand, "out")
        if step.edge is None:
            return frame.keep(self._pairs(walk, expand, source, target))
        self._allow(walk, source)
        origin, node, edge = walk.edges_of(source)
        fits = chunked.mapped(lambda part, at: part == target[at], node, origin)
        mask = self._accepts(step.edge, edge)
        fits = fits if mask is None else fits & mask
        origin, edge = chunked.compress(fits, origin, edge)
        return frame.take(origin).bind(step.edge.name, edge)

    def _intersect(self, step: Intersect, frame: MatchFrame, live: frozenset[str]) -> MatchFrame:
        found = step.found
        intersection = Intersection(
            [self._side(item, step, frame) for item in step.expands],
            [self._side(item, step, frame) for item in step.absent],
            [frame.columns[name] for name in step.different],
            rows=frame.rows,
        )
        if found.name not in live and not found.predicates:
            return frame.multiply(intersection.counts())
        reached = intersection.nodes(self.guard.allow_frame)
        mask = self._accepts(found, reached.node)
        if mask is not None:
            reached = Reached(*chunked.compress(mask, *reached))
        return frame.only(live).take(reached.origin).bind(found.name, reached.node)

    def _side(self, expand: Expand, step: Intersect, frame: MatchFrame) -> KnownEnd:
        forward = step.found.name == expand.target
        known = frame.columns[expand.source if forward else expand.target]
        return known_end(self.tables.walk(expand, "out" if forward else "in"), known)

    def _pairs(self, walk: Walk, expand: Expand, source: Ints, target: Ints) -> Mask:
        """Which sources reach their targets."""
        edges = walk.edges
        if expand.max_hops == 1 and isinstance(edges, CachedEdges):
            return edges.connected(source, target, joined=expand.undirected)
        starts, place = chunked.unique_codes(source)
        low, high = expand.min_hops, expand.max_hops
        reached = walk.reach(starts, low, high, self.guard, reverse=False)
        keys = chunked.mapped(_pair_key, *reached)
        return sets.among(chunked.mapped(_pair_key, place, target), chunked.sort(keys))

    # Negation

    def _extended(self, anti_join: AntiJoin, frame: MatchFrame) -> Mask:
        """Which rows the pattern has a match for. Evaluated once per distinct binding."""
        known = open_edge_start(anti_join.pattern)
        if known is not None:
            (expand,) = anti_join.pattern.expands
            walk = self.tables.walk(expand, "out" if known == expand.source else "in")
            counts = walk.edges.count(walk.direction, frame.columns[known], distinct=False)
            return chunked.mapped(lambda part: part > 0, counts)
        shared = [frame.columns[name] for name in anti_join.outer]
        groups, first = group_rows(shared, frame.rows)
        columns = {
            name: chunked.take(column, first)
            for name, column in zip(anti_join.outer, shared, strict=True)
        }
        outer = MatchFrame(len(first), columns).bind(ORIGIN, np.arange(len(first), dtype=np.int32))
        hit = np.zeros(len(first), dtype=bool)
        for origins in self._origins(anti_join.pattern, outer):
            hit[origins] = True
        return chunked.take(hit, groups)

    def _origins(self, pattern: Pattern, outer: MatchFrame) -> Iterator[Ints]:
        """The rows that have a match; evaluated in halves when that exceeds the memory limit."""
        inner = replace(self, only_existence=True, profile=self.profile.inner())._with_tables_of(
            pattern
        )
        try:
            found = inner.match(pattern, (), outer).columns[ORIGIN]
        except ResourceLimit:
            if outer.rows < 2:
                raise
        else:
            yield found
            return
        half = np.arange(outer.rows) < outer.rows // 2
        for side in (half, ~half):
            yield from self._origins(pattern, outer.keep(side))


def _pair_key(first: Ints, second: Ints) -> Ints:
    """Two ordinals as one number."""
    return np.asarray(first.astype(np.int64) << 32 | second)
