"""Join ordering: which variable to scan first, and which edge to expand next.

Greedy, on cardinality estimates from the row counts in the manifest. The order therefore does not
depend on what is in memory, and neither does the order of rows. Estimates may be wrong; the result
never is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.lang.query.plan.logical import Expand, Pattern, PatternVariable
from omnigraph.lang.query.plan.steps import Connected, Follow, Intersect, Scan, Step, Where, Without
from omnigraph.lang.query.typed_expressions import (
    Compare,
    EntityType,
    Expression,
    PropertyOf,
    TextMatch,
    can_fail,
    is_constant,
    variables,
)

Rows = Callable[[EntityType], int]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    step: Step
    live: frozenset[str]
    """The variables that a later step or the answer still reads."""
    collapses: bool = True
    """Whether rows may be equal when the variables that are not live are dropped."""
    rows: float | None = None
    """The estimated rows after the step, where the order was chosen by cost."""


@dataclass(frozen=True, slots=True)
class StepOrder:
    """The steps of a pattern in the order in which they are executed."""

    steps: tuple[PlannedStep, ...]
    starts: tuple[tuple[str, float], ...] = ()
    """The estimated cost by start variable, the chosen one first, where the order was chosen by
    cost: rows that are looked at."""

    @classmethod
    def of(cls, steps: Sequence[Step], needed: frozenset[str]) -> StepOrder:
        """The steps, each with the variables that are live after it."""
        found: list[PlannedStep] = []
        wanted = needed
        for step in reversed(steps):
            found.append(PlannedStep(step, wanted))
            wanted |= _looks_at(step)
        return cls(tuple(reversed(found)))


EQUAL_SHARE: Final = 0.01
"""Assumed selectivity of conditions, as shares of a type."""
RANGE_SHARE: Final = 0.3
TEXT_SHARE: Final = 0.05
OTHER_SHARE: Final = 0.9
HOPS_COUNTED_MAX: Final = 4
"""Hops that count for the estimate of a variable-length path; more would make it meaningless."""


def selectivity(condition: Expression) -> float:
    """The estimated selectivity of a condition."""
    if isinstance(condition, TextMatch):
        return 1 - TEXT_SHARE if condition.negated else TEXT_SHARE
    if isinstance(condition, Compare):
        direct = isinstance(condition.left, PropertyOf) and is_constant(condition.right)
        if direct and condition.operator in ("=", "contains", "starts_with"):
            return EQUAL_SHARE
        if condition.operator != "!=":
            return RANGE_SHARE
    return OTHER_SHARE


def estimate_scan(variable: PatternVariable, rows: Rows, restricted: Collection[str] = ()) -> float:
    """The estimated number of entities that satisfy the predicates of a variable."""
    found = float(rows(variable.type))
    for condition in variable.predicates:
        found *= selectivity(condition)
    if variable.name in restricted:
        found *= EQUAL_SHARE
    return found


def estimate_growth(
    expand: Expand,
    near: EntityType | None,
    found: PatternVariable,
    edge: PatternVariable | None,
    rows: Rows,
    restricted: Collection[str] = (),
) -> float:
    """The estimated number of matching neighbours per entity. ``near``: its type, if known."""
    starts = rows(near if near is not None else found.type)
    degree = rows(expand.edge) / max(1, starts)
    growth = float(degree ** min(expand.max_hops, HOPS_COUNTED_MAX))
    for item in (found, edge):
        for condition in item.predicates if item is not None else ():
            growth *= selectivity(condition)
    return growth * EQUAL_SHARE if found.name in restricted else growth


def order_steps(
    pattern: Pattern,
    known: Collection[str],
    rows: Rows,
    restricted: Collection[str] = (),
    needed: Collection[str] = (),
) -> list[Step]:
    """The steps of a pattern when the variables ``known`` are bound already.

    Variables that the result does not need come last, where counting them is enough.
    """
    return _JoinOrdering(pattern, known, rows, restricted, needed).run()


def _looks_at(step: Step) -> frozenset[str]:
    match step:
        case Scan():
            return frozenset()
        case Follow() | Connected():
            return frozenset({step.expand.source, step.expand.target})
        case Intersect():
            ends = {end for item in step.expands for end in (item.source, item.target)}
            absent = {end for item in step.absent for end in (item.source, item.target)}
            return frozenset((ends | absent | set(step.different)) - {step.found.name})
        case Where():
            return variables(step.condition)
        case Without():
            return frozenset(step.anti_join.outer)


class _JoinOrdering:
    def __init__(
        self,
        pattern: Pattern,
        known: Collection[str],
        rows: Rows,
        restricted: Collection[str],
        needed: Collection[str],
    ) -> None:
        self._needed = needed
        self._pattern = pattern
        self._variables = {item.name: item for item in pattern.variables}
        self._known = set(known)
        self._rows = rows
        self._restricted = restricted
        self._steps: list[Step] = []
        self._expands = list(pattern.expands)
        self._tests = [item for item in pattern.filters if not can_fail(item)]

    def run(self) -> list[Step]:
        self._settle()
        while True:
            if (expand := self._next_expand()) is not None:
                self._follow(expand)
            elif (variable := self._next_scan()) is not None:
                self._steps.append(Scan(variable))
                self._known.add(variable.name)
            else:
                break
            self._settle()
        for item in self._pattern.anti_joins:
            self._steps.append(Without(item, ()))
        self._steps += [Where(item) for item in self._pattern.filters if can_fail(item)]
        return self._steps

    def _settle(self) -> None:
        """Add every filter and every closing edge whose variables are bound by now."""
        ready = [item for item in self._tests if variables(item) <= self._known]
        self._steps += [Where(item) for item in ready]
        self._tests = [item for item in self._tests if item not in ready]
        for expand in list(self._expands):
            if {expand.source, expand.target} <= self._known:
                self._expands.remove(expand)
                self._steps.append(Connected(expand, self._edge(expand)))
                if expand.edge_variable is not None:
                    self._known.add(expand.edge_variable)
                    self._settle()
                    return

    def _next_expand(self) -> Expand | None:
        """Of the edges to an unbound variable, the one with the smallest estimated growth."""
        open_ = [e for e in self._expands if {e.source, e.target} & self._known]
        return min(open_, key=self._growth, default=None)

    def _growth(self, expand: Expand) -> float:
        near, far = expand.source, expand.target
        if near not in self._known:
            near, far = far, near
        known = self._variables.get(near)
        return estimate_growth(
            expand,
            None if known is None else known.type,
            self._variables[far],
            self._edge(expand),
            self._rows,
            self._restricted,
        )

    def _next_scan(self) -> PatternVariable | None:
        """Of the unbound variables, the one with the fewest estimated entities."""
        open_ = [
            item
            for item in self._pattern.variables
            if item.type.kind == "node" and item.name not in self._known
        ]
        if not open_:
            return None
        return min(open_, key=self._start_key)

    def _start_key(self, variable: PatternVariable) -> tuple[float, bool, int, str]:
        """Fewest entities first; of equals what the result needs, then what most edges touch."""
        touching = sum(variable.name in (e.source, e.target) for e in self._pattern.expands)
        estimate = estimate_scan(variable, self._rows, self._restricted)
        return estimate, variable.name not in self._needed, -touching, variable.name

    def _follow(self, expand: Expand) -> None:
        self._expands.remove(expand)
        new = expand.source if expand.target in self._known else expand.target
        self._steps.append(Follow(expand, self._variables[new], self._edge(expand)))
        self._known.add(new)
        if expand.edge_variable is not None:
            self._known.add(expand.edge_variable)

    def _edge(self, expand: Expand) -> PatternVariable | None:
        name = expand.edge_variable
        return None if name is None else self._variables[name]
