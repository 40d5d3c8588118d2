"""Cost-based join ordering over a whole pattern, from statistics of the graph.

A beam search from every variable: at each point it binds one more variable, through every edge that
leads to it from what is bound, and prices the step by the rows that it looks at. An edge between
two bound variables is a membership test, so a cycle costs what its cheapest way around costs. A
variable that nothing needs any more is counted, and rows that differ only in such variables are
expected to collapse into one.

Used for patterns with several edges that do not start at an index look-up; ``join_order`` orders
the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Protocol

from omnigraph.engine.plan.join_order import OTHER_SHARE, StepOrder
from omnigraph.engine.plan.pattern_shapes import absent_edge, both_ways, is_single_edge
from omnigraph.lang.query.plan.logical import Expand, Pattern, PatternVariable
from omnigraph.lang.query.plan.steps import Connected, Follow, Intersect, Scan, Step, Where, Without
from omnigraph.lang.query.typed_expressions import (
    Compare,
    EntityType,
    Expression,
    PropertyOf,
    variables,
)

VARIABLES_MAX: Final = 16
"""Patterns with more nodes are ordered greedily: the search takes cubic time in them."""
BEAM: Final = 6
"""Partial orders that are followed up from each start."""
SCATTERED_COST: Final = 2.0
"""Reading the edges of nodes in no order, compared to nodes in storage order."""
COLUMN_COST: Final = 0.3
"""Gathering one live column, as a share of finding a row."""
PAIRS_SHARE: Final = 8
"""Rows of several variables are not expected to be equal where there are this many times more
combinations of entities."""
COLLAPSE_COST: Final = 2.0
"""Looking for equal rows, per row."""


class Statistics(Protocol):
    """Cardinalities of one snapshot."""

    def rows(self, kind: EntityType) -> int:
        """The number of entities of a type."""

    def degree(self, expand: Expand, start: str, arrived: Expand | None) -> float:
        """The mean number of nodes that an edge leads to from its end ``start``, over the nodes
        that the edge ``arrived`` leads to, each as often as it does; or over all nodes.
        """

    def selectivity(self, variable: PatternVariable, condition: Expression) -> float:
        """The share of a variable's entities that satisfy a condition."""

    def is_functional(self, expand: Expand, start: str) -> bool:
        """Whether an edge leads from its end ``start`` to at most one node, for all nodes."""

    def is_key(self, kind: EntityType, name: str) -> bool:
        """Whether a property alone identifies an entity of a type."""


@dataclass(frozen=True, slots=True)
class _Partial:
    """The first steps of an order."""

    known: frozenset[str]
    expands: frozenset[int]
    """What is still to be done: places in the pattern."""
    filters: frozenset[int]
    anti_joins: frozenset[int]
    rows: float
    cost: float
    steps: tuple[tuple[Step, float], ...] = ()
    arrived: Mapping[str, Expand] | None = None
    first: str | None = None
    """The variable whose storage order the rows have."""

    def then(self, step: Step, rows: float, cost: float) -> _Partial:
        return replace(self, rows=rows, cost=self.cost + cost, steps=(*self.steps, (step, rows)))


def order_by_cost(
    pattern: Pattern, needed: Collection[str], statistics: Statistics
) -> StepOrder | None:
    """The cheapest order that was found; None for a pattern with too many variables."""
    return _CostOrdering(pattern, needed, statistics).run()


def _binds(step: Step) -> frozenset[str]:
    """The variables that a step binds."""
    match step:
        case Scan():
            return frozenset({step.variable.name})
        case Follow() | Connected():
            edge = step.edge
            found = frozenset() if edge is None else frozenset({edge.name})
            return found | {step.found.name} if isinstance(step, Follow) else found
        case Intersect():
            return frozenset({step.found.name})
        case _:
            return frozenset()


class _CostOrdering:
    def __init__(self, pattern: Pattern, needed: Collection[str], statistics: Statistics) -> None:
        self._pattern = pattern
        self._needed = frozenset(needed)
        self._statistics = statistics
        self._variables = {item.name: item for item in pattern.variables}
        self._nodes = [item for item in pattern.variables if item.type.kind == "node"]
        self._tested = [variables(item) for item in pattern.filters]
        self._different = [self._as_difference(item) for item in pattern.filters]
        self._absent = [absent_edge(item) for item in pattern.anti_joins]

    def run(self) -> StepOrder | None:
        if not 1 < len(self._nodes) <= VARIABLES_MAX:
            return None
        empty = _Partial(
            known=frozenset(),
            expands=frozenset(range(len(self._pattern.expands))),
            filters=frozenset(range(len(self._pattern.filters))),
            anti_joins=frozenset(range(len(self._pattern.anti_joins))),
            rows=1.0,
            cost=0.0,
            arrived={},
        )
        begun = {
            item.name: self._scan(self._settled(empty), item)
            for item in sorted(self._nodes, key=lambda item: item.name)
        }
        best: _Partial | None = None
        costs: dict[str, float] = {}
        for name in sorted(begun, key=lambda name: begun[name].cost + begun[name].rows):
            bound = float("inf") if best is None else best.cost
            found = self._complete(begun[name], bound)
            if found is not None:
                costs[name] = found.cost
                if best is None or found.cost < best.cost:
                    best = found
        assert best is not None
        return self._finished(best, costs)

    def _complete(self, begun: _Partial, cost_max: float) -> _Partial | None:
        """The cheapest order that begins like this; None if there is none below ``cost_max``."""
        beam = [begun]
        for _ in range(len(self._nodes) - 1):
            best: dict[frozenset[str], _Partial] = {}
            for partial in beam:
                for more in self._extended(partial):
                    known = best.get(more.known)
                    if more.cost < cost_max and (known is None or more.cost < known.cost):
                        best[more.known] = more
            beam = sorted(best.values(), key=lambda item: item.cost + item.rows)[:BEAM]
        return min(beam, key=lambda item: item.cost, default=None)

    def _extended(self, partial: _Partial) -> Iterator[_Partial]:
        missing = [item for item in self._nodes if item.name not in partial.known]
        reached = [item for item in missing if self._edges_to(partial, item.name)]
        for item in reached:
            yield self._bind(partial, item)
        if not reached:
            for item in missing:
                yield self._scan(partial, item)

    def _edges_to(self, partial: _Partial, name: str) -> list[int]:
        """The edges between a variable and what is bound."""
        return [at for at in sorted(partial.expands) if self._start(partial, at, name) is not None]

    def _start(self, partial: _Partial, at: int, name: str) -> str | None:
        """The bound end of an edge whose other end is ``name``."""
        expand = self._pattern.expands[at]
        for near, far in both_ways(expand):
            if far == name and near in partial.known:
                return near
        return None

    # Steps

    def _scan(self, partial: _Partial, variable: PatternVariable) -> _Partial:
        rows = self._statistics.rows(variable.type)
        found = partial.rows * rows * self._share(variable)
        cost = rows * min(1, len(variable.predicates)) + found
        first = variable.name if partial.first is None else partial.first
        done = replace(partial, known=partial.known | {variable.name}, first=first)
        return self._settled(done.then(Scan(variable), found, cost))

    def _bind(self, partial: _Partial, variable: PatternVariable) -> _Partial:
        """Bind a variable through all edges that lead to it."""
        name = variable.name
        edges = self._edges_to(partial, name)
        growth = {at: self._growth(partial, at, name) for at in edges}
        edges.sort(key=lambda at: (growth[at], at))
        pairs = [at for at in edges if is_single_edge(self._pattern.expands[at])]
        if not pairs:
            return self._follow(partial, variable, edges[0], growth[edges[0]])
        different = [at for at in sorted(partial.filters) if self._differs(partial, at, name)]
        absent = [at for at in sorted(partial.anti_joins) if self._is_absent(partial, at, name)]
        if len(pairs) == 1 and not different and not absent:
            return self._follow(partial, variable, pairs[0], growth[pairs[0]])
        return self._intersect(
            partial, variable, {at: growth[at] for at in pairs}, different, absent
        )

    def _follow(
        self, partial: _Partial, variable: PatternVariable, at: int, growth: float
    ) -> _Partial:
        expand = self._pattern.expands[at]
        edge = None
        known = {variable.name}
        if expand.edge_variable is not None:
            edge = self._variables[expand.edge_variable]
            known.add(edge.name)
            growth *= self._share(edge)
        done = replace(
            partial,
            known=partial.known | known,
            expands=partial.expands - {at},
            arrived={**(partial.arrived or {}), variable.name: expand},
        )
        found = partial.rows * growth
        is_counted = expand.max_hops == 1 and not self._live(done) & known
        cost = (partial.rows + (0 if is_counted else found)) * self._locality(partial, at)
        step = Follow(expand, variable, edge)
        return self._found(partial, done, step, found * self._share(variable), cost, is_counted)

    def _intersect(
        self,
        partial: _Partial,
        variable: PatternVariable,
        growth: dict[int, float],
        different: list[int],
        absent: list[int],
    ) -> _Partial:
        name, (first, *others) = variable.name, growth
        others_named = tuple(end for at in different for end in sorted(self._tested[at] - {name}))
        forbidden = tuple(item for at in absent if (item := self._absent[at]) is not None)
        expands = tuple(self._pattern.expands[at] for at in growth)
        step = Intersect(expands, variable, others_named, forbidden)
        done = replace(
            partial,
            known=partial.known | {name},
            expands=partial.expands - set(growth),
            filters=partial.filters - set(different),
            anti_joins=partial.anti_joins - set(absent),
            arrived={**(partial.arrived or {}), name: expands[0]},
        )
        targets = max(1, self._statistics.rows(variable.type))
        enumerated = partial.rows * growth[first] * self._locality(partial, first)
        found = partial.rows * growth[first] * prod(min(1.0, growth[at] / targets) for at in others)
        found *= self._share(variable) * OTHER_SHARE ** len(absent)
        is_counted = name not in self._live(done)
        tests = len(others) + len(different) + len(absent)
        cost = partial.rows + enumerated * (1 + tests)
        if is_counted and not others and tests <= 1 and not variable.predicates:
            shorter = [self._degree(partial, item, name) for item in forbidden]
            cost = partial.rows * (1 + tests + min([growth[first], *shorter]) * len(absent))
        return self._found(partial, done, step, found, cost, is_counted)

    def _found(
        self,
        before: _Partial,
        done: _Partial,
        step: Step,
        found: float,
        cost: float,
        is_counted: bool,
    ) -> _Partial:
        """The order after a step that binds a variable, with the rows that it leaves."""
        live = self._live(done)
        rows = min(found, before.rows) if is_counted else found
        if not is_counted:
            cost += found * COLUMN_COST * len(live)
        dropped = not is_counted and not done.known - before.known <= live
        if dropped or before.known & self._live(before) - live:
            if self._may_collapse(live, (before.known | done.known) - live, rows):
                cost += rows * (COLLAPSE_COST if live else 0)
            rows = min(rows, self._combinations(live))
        return self._settled(done.then(step, rows, cost))

    def _settled(self, partial: _Partial) -> _Partial:
        """With every test whose variables are bound."""
        for at in sorted(partial.filters):
            if self._tested[at] <= partial.known:
                condition = self._pattern.filters[at]
                share = self._filter_share(condition)
                partial = replace(partial, filters=partial.filters - {at}).then(
                    Where(condition), partial.rows * share, partial.rows
                )
        for at in sorted(partial.expands):
            expand = self._pattern.expands[at]
            if {expand.source, expand.target} <= partial.known:
                return self._settled(self._closed(partial, at))
        for at in sorted(partial.anti_joins):
            anti_join = self._pattern.anti_joins[at]
            if self._absent[at] is not None and partial.known.issuperset(anti_join.outer):
                partial = replace(partial, anti_joins=partial.anti_joins - {at}).then(
                    Without(anti_join, ()), partial.rows * OTHER_SHARE, partial.rows
                )
        return partial

    def _closed(self, partial: _Partial, at: int) -> _Partial:
        """With the test of an edge whose ends are both bound."""
        expand = self._pattern.expands[at]
        edge = None if expand.edge_variable is None else self._variables[expand.edge_variable]
        targets = max(1, self._statistics.rows(self._variables[expand.target].type))
        degree = self._statistics.degree(expand, expand.source, None)
        share = min(1.0, degree / targets) * (1.0 if edge is None else self._share(edge))
        done = replace(partial, expands=partial.expands - {at})
        if edge is not None:
            done = replace(done, known=done.known | {edge.name})
        cost = partial.rows * (1 if is_single_edge(expand) else 1 + degree)
        return done.then(Connected(expand, edge), partial.rows * share, cost)

    def _finished(self, best: _Partial, costs: Mapping[str, float]) -> StepOrder:
        steps = list(best.steps)
        rows = best.rows
        for at in sorted(best.anti_joins):
            rows *= OTHER_SHARE
            steps.append((Without(self._pattern.anti_joins[at], ()), rows))
        starts = tuple(sorted(costs.items(), key=lambda item: (item[1], item[0])))
        ordered = StepOrder.of([step for step, _ in steps], self._needed)
        planned, bound = [], frozenset[str]()
        for item, (step, estimate) in zip(ordered.steps, steps, strict=True):
            bound |= _binds(step)
            live = bound & item.live
            collapses = self._may_collapse(live, bound - live, estimate)
            bound = live
            planned.append(replace(item, rows=estimate, collapses=collapses))
        return StepOrder(tuple(planned), starts)

    def _may_collapse(self, live: frozenset[str], dropped: frozenset[str], rows: float) -> bool:
        """Whether dropping variables is expected to make rows equal."""
        if len(live) > 1 and rows * PAIRS_SHARE < self._combinations(live):
            return False
        return not self._determines(live, dropped)

    def _combinations(self, names: frozenset[str]) -> float:
        """The number of rows that variables can have at most."""
        return prod(float(self._statistics.rows(self._variables[item].type)) for item in names)

    def _determines(self, live: frozenset[str], dropped: frozenset[str]) -> bool:
        """Whether at most one value of the dropped variables belongs to each row of the others."""
        found = set(live)
        while not found >= dropped:
            more = {
                far
                for expand in self._pattern.expands
                if is_single_edge(expand)
                for near, far in both_ways(expand)
                if near in found and far in dropped and far not in found
                if self._statistics.is_functional(expand, near)
            }
            if not more:
                return False
            found |= more
        return True

    # Estimates

    def _live(self, partial: _Partial) -> frozenset[str]:
        """The bound variables that something still reads."""
        found = set(self._needed)
        for at in partial.expands:
            expand = self._pattern.expands[at]
            found |= {expand.source, expand.target}
        for at in partial.filters:
            found |= self._tested[at]
        for at in partial.anti_joins:
            found.update(self._pattern.anti_joins[at].outer)
        return partial.known & found

    def _share(self, variable: PatternVariable) -> float:
        return prod(self._statistics.selectivity(variable, item) for item in variable.predicates)

    def _filter_share(self, condition: Expression) -> float:
        first = next(iter(self._variables.values()))
        return self._statistics.selectivity(first, condition)

    def _locality(self, partial: _Partial, at: int) -> float:
        """The relative cost of reading edges from the rows as they are ordered."""
        expand = self._pattern.expands[at]
        return 1.0 if partial.first in (expand.source, expand.target) else SCATTERED_COST

    def _growth(self, partial: _Partial, at: int, name: str) -> float:
        return self._degree(partial, self._pattern.expands[at], name)

    def _degree(self, partial: _Partial, expand: Expand, name: str) -> float:
        start = expand.source if expand.target == name else expand.target
        arrived = (partial.arrived or {}).get(start)
        return self._statistics.degree(expand, start, arrived)

    # Tests that an intersection makes

    def _as_difference(self, condition: Expression) -> frozenset[str] | None:
        """The two nodes that a condition requires to be different."""
        if not isinstance(condition, Compare) or condition.operator != "!=":
            return None
        left, right = condition.left, condition.right
        if not isinstance(left, PropertyOf) or not isinstance(right, PropertyOf):
            return None
        ends = self._variables.get(left.variable), self._variables.get(right.variable)
        if ends[0] is None or ends[1] is None or ends[0].type != ends[1].type:
            return None
        if left.property != right.property or left.variable == right.variable:
            return None
        if not self._statistics.is_key(ends[0].type, left.property):
            return None
        return frozenset((left.variable, right.variable))

    def _differs(self, partial: _Partial, at: int, name: str) -> bool:
        pair = self._different[at]
        return pair is not None and name in pair and pair - {name} <= partial.known

    def _is_absent(self, partial: _Partial, at: int, name: str) -> bool:
        expand = self._absent[at]
        if expand is None:
            return False
        ends = {expand.source, expand.target}
        return name in ends and ends - {name} <= partial.known
