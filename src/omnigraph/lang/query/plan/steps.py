"""One order in which a pattern can be evaluated.

Owns a deterministic choice that needs no statistics: start at the most specific variable, follow
edges from what is known, test every condition as soon as it can be tested, and look at negations
last. Used to explain plans, and as the fallback of engines. Work grows like the pattern, n log n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Literal, TypeAlias

from omnigraph.lang.query.plan.logical import AntiJoin, Expand, Pattern, PatternVariable
from omnigraph.lang.query.typed_expressions import (
    Compare,
    Expression,
    PropertyOf,
    TextMatch,
    can_fail,
    is_constant,
    variables,
)

_SPECIFIC: Final = {"=": 0, "starts_with": 2, "contains": 2}


@dataclass(frozen=True, slots=True)
class Scan:
    """All entities of a type that satisfy the variable's predicates."""

    variable: PatternVariable
    kind: Literal["scan"] = "scan"


@dataclass(frozen=True, slots=True)
class Follow:
    """From the known end of an edge to ``found``, which must satisfy its predicates."""

    expand: Expand
    found: PatternVariable
    edge: PatternVariable | None
    kind: Literal["expand"] = "expand"


@dataclass(frozen=True, slots=True)
class Connected:
    """Both ends are known: keep the rows where the edge connects them."""

    expand: Expand
    edge: PatternVariable | None
    kind: Literal["connected"] = "connected"


@dataclass(frozen=True, slots=True)
class Intersect:
    """From several known nodes to ``found``, which all ``expands`` lead to and no edge of
    ``absent`` does, and which differs from the nodes ``different``. Edges are single hops without
    a name.
    """

    expands: tuple[Expand, ...]
    found: PatternVariable
    different: tuple[str, ...] = ()
    absent: tuple[Expand, ...] = ()
    kind: Literal["intersect"] = "intersect"


@dataclass(frozen=True, slots=True)
class Where:
    condition: Expression
    kind: Literal["filter"] = "filter"


@dataclass(frozen=True, slots=True)
class Without:
    anti_join: AntiJoin
    steps: tuple[Step, ...]
    kind: Literal["not"] = "not"


Step: TypeAlias = Scan | Follow | Connected | Intersect | Where | Without


def steps_of(pattern: Pattern, known: Iterable[str] = ()) -> tuple[Step, ...]:
    """The steps of a pattern when the variables ``known`` are there already."""
    return _StepOrdering(pattern, frozenset(known)).run()


class _StepOrdering:
    def __init__(self, pattern: Pattern, known: frozenset[str]) -> None:
        self._pattern = pattern
        self._variables = {item.name: item for item in pattern.variables}
        self._filters = [item for item in pattern.filters if not can_fail(item)]
        self._known = set(known)
        self._steps: list[Step] = []
        self._ready: list[int] = []
        self._done: set[int] = set()
        self._by_variable: dict[str, list[int]] = defaultdict(list)
        self._tests: dict[str, list[int]] = defaultdict(list)
        self._missing: list[int] = []

    def run(self) -> tuple[Step, ...]:
        self._index()
        for name in sorted(self._known):
            self._reach(name)
        self._follow()
        nodes = (item for item in self._pattern.variables if item.type.kind == "node")
        for variable in sorted(nodes, key=_start_key):
            if variable.name not in self._known:
                self._steps.append(Scan(variable))
                self._learn(variable.name)
                self._follow()
        for item in self._pattern.anti_joins:
            self._steps.append(Without(item, steps_of(item.pattern, self._known)))
        self._steps += [Where(item) for item in self._pattern.filters if can_fail(item)]
        return tuple(self._steps)

    def _index(self) -> None:
        for at, expand in enumerate(self._pattern.expands):
            for name in {expand.source, expand.target}:
                self._by_variable[name].append(at)
        for at, condition in enumerate(self._filters):
            waiting = variables(condition) - self._known
            self._missing.append(len(waiting))
            if not waiting:
                self._steps.append(Where(condition))
            for name in waiting:
                self._tests[name].append(at)

    def _learn(self, name: str) -> None:
        """A variable has become known: test what waited for it, note what it leads to."""
        self._known.add(name)
        for at in self._tests[name]:
            self._missing[at] -= 1
            if self._missing[at] == 0:
                self._steps.append(Where(self._filters[at]))
        self._reach(name)

    def _reach(self, name: str) -> None:
        for at in self._by_variable[name]:
            if at in self._done:
                continue
            expand = self._pattern.expands[at]
            if expand.source in self._known and expand.target in self._known:
                self._done.add(at)
                self._steps.append(Connected(expand, self._edge(expand)))
                self._learn_edge(expand)
            else:
                heappush(self._ready, at)

    def _follow(self) -> None:
        """Follow every edge that leads from something known to something new."""
        while self._ready:
            at = heappop(self._ready)
            if at in self._done:
                continue
            self._done.add(at)
            expand = self._pattern.expands[at]
            new = expand.source if expand.target in self._known else expand.target
            self._steps.append(Follow(expand, self._variables[new], self._edge(expand)))
            self._learn_edge(expand)
            self._learn(new)

    def _edge(self, expand: Expand) -> PatternVariable | None:
        name = expand.edge_variable
        return None if name is None else self._variables[name]

    def _learn_edge(self, expand: Expand) -> None:
        if expand.edge_variable is not None:
            self._learn(expand.edge_variable)


def _start_key(variable: PatternVariable) -> tuple[int, bool, int, str]:
    """The more specific a variable is, the earlier it is scanned; nameless ones last."""
    grades = [_grade(item) for item in variable.predicates]
    return min(grades, default=9), variable.is_anonymous, -len(grades), variable.name


def _grade(condition: Expression) -> int:
    if isinstance(condition, TextMatch):
        return 1
    if isinstance(condition, Compare):
        is_direct = isinstance(condition.left, PropertyOf) and is_constant(condition.right)
        return _SPECIFIC.get(condition.operator, 3) if is_direct else 4
    return 5
