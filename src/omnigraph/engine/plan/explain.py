"""Explain: the steps of a query on one snapshot, with estimates, access paths and reasons.

Nothing is executed. The estimates are those of the join ordering; where the order is chosen by cost
its statistics are made, and for that adjacency and columns are loaded as the query would.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.engine.exec.match_frame import ORIGIN
from omnigraph.engine.exec.scan import names_key
from omnigraph.engine.plan.access_choice import Choice
from omnigraph.engine.plan.join_order import (
    OTHER_SHARE,
    estimate_growth,
    estimate_scan,
    selectivity,
)
from omnigraph.engine.tables.access import SnapshotTables
from omnigraph.lang.query.plan.explain import describe_answer, describe_step
from omnigraph.lang.query.plan.logical import Pattern, PatternVariable, ReadPlan
from omnigraph.lang.query.plan.steps import Connected, Follow, Intersect, Scan, Step, Where, Without
from omnigraph.lang.query.typed_expressions import EntityType, Fusion

_HEADS: Final = ("rows", "access", "step", "why")


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step of a plan. Steps of a negated pattern are one level deeper."""

    text: str
    depth: int
    rows: float
    """The estimated number of rows after the step."""
    access: str
    why: str

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.text,
            "depth": self.depth,
            "estimated_rows": round(self.rows, 1),
            "access": self.access,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    query_name: str
    commit_id: str
    steps: tuple[ExplainedStep, ...]
    answer: tuple[str, ...]
    starts: tuple[tuple[str, float], ...] = ()
    """The estimated cost of starting at a variable, the chosen one first, where the order was
    chosen by cost. Starts that were given up as dearer are left out."""

    def to_json(self) -> dict[str, Any]:
        return {
            "query_name": self.query_name,
            "graph_commit_id": self.commit_id,
            "steps": [step.to_json() for step in self.steps],
            "answer": list(self.answer),
            "starts": [{"variable": name, "cost": round(cost)} for name, cost in self.starts],
        }

    def lines(self) -> list[str]:
        cells = [_HEADS, *(self._cells(step) for step in self.steps)]
        widths = [max(len(row[at]) for row in cells) for at in range(3)]
        table = [
            "  ".join(
                (row[0].rjust(widths[0]), row[1].ljust(widths[1]), row[2].ljust(widths[2]), row[3])
            ).rstrip()
            for row in cells
        ]
        costs = ", ".join(f"${name} {cost:.3g}" for name, cost in self.starts)
        chosen = [f"start     by cost: {costs}"] if costs else []
        return [f"query {self.query_name}", *table, *chosen, *self.answer]

    @staticmethod
    def _cells(step: ExplainedStep) -> tuple[str, str, str, str]:
        rows = f"{step.rows:.0f}" if step.rows >= 1 or not step.rows else "<1"
        return rows, step.access, "  " * step.depth + step.text, step.why


def explain_read(
    tables: SnapshotTables, plan: ReadPlan, needed: frozenset[str], choice: Choice
) -> Explanation:
    """The plan of a query on these tables."""
    searched: tuple[str, ...] = ()
    if plan.ranking is not None:
        first = plan.ranking.first if isinstance(plan.ranking, Fusion) else plan.ranking
        searched = (first.field.variable,)
    planner = _Planner(tables, choice, searched)
    steps = tuple(planner.steps(plan.pattern, (), needed | set(searched), {}, 1.0, 0))
    commit_id = tables.snapshot.commit_id
    order = tables.step_order(plan.pattern, (), searched, needed | set(searched))
    return Explanation(plan.query, commit_id, steps, tuple(describe_answer(plan)), order.starts)


@dataclass(frozen=True, slots=True)
class _Planner:
    tables: SnapshotTables
    choice: Choice
    searched: tuple[str, ...]
    """The variable that a search restricts to its best matches."""

    def steps(
        self,
        pattern: Pattern,
        known: Collection[str],
        needed: Collection[str],
        outer: Mapping[str, EntityType],
        rows: float,
        depth: int,
    ) -> Iterator[ExplainedStep]:
        kinds = {**outer, **{item.name: item.type for item in pattern.variables}}
        order = self.tables.step_order(pattern, known, self.searched, needed)
        for planned in order.steps:
            step = planned.step
            rows = planned.rows if planned.rows is not None else self._rows_after(step, rows, kinds)
            access, why = self._access(step)
            yield ExplainedStep(describe_step(step).strip(), depth, rows, access, why)
            if isinstance(step, Without):
                inner, shared = step.anti_join.pattern, (*step.anti_join.outer, ORIGIN)
                yield from self.steps(inner, shared, (), kinds, rows, depth + 1)

    def _rows_after(self, step: Step, rows: float, kinds: Mapping[str, EntityType]) -> float:
        count = self.tables.rows
        match step:
            case Scan():
                variable = step.variable
                if self._names_one(variable):
                    return rows
                return rows * estimate_scan(variable, count, self.searched)
            case Follow():
                expand = step.expand
                near = expand.source if step.found.name == expand.target else expand.target
                found = (kinds.get(near), step.found, step.edge)
                return rows * estimate_growth(expand, *found, count, self.searched)
            case Connected():
                ends = count(kinds[step.expand.source]) * count(kinds[step.expand.target])
                return rows * min(1.0, count(step.expand.edge) / max(1, ends))
            case Where():
                return rows * selectivity(step.condition)
            case Intersect():
                raise AssertionError("an order with intersections has estimates")
            case Without():
                return rows * OTHER_SHARE

    def _names_one(self, variable: PatternVariable) -> bool:
        kind = self.tables.schema.nodes[variable.type.name]
        return names_key(kind, variable.predicates) is not None

    def _access(self, step: Step) -> tuple[str, str]:
        """The access path of a step, and the reason for it."""
        match step:
            case Scan():
                key = step.variable.type.key
                by_id = self._names_one(step.variable)
                if key in self.choice.probed:
                    return "index look-up", self._why(key)
                return "id look-up" if by_id else "columns", self._why(key)
            case Follow() | Connected():
                key = step.expand.edge.key
                if key in self.choice.probed:
                    return "index look-up", self._why(key)
                edges = self.tables.edges(step.expand.edge.name)
                forward = isinstance(step, Connected) or step.found.name == step.expand.target
                held = edges.has_adjacency("out" if forward else "in")
                return "adjacency" if held else "adjacency, made first", self._why(key)
            case Intersect():
                return "adjacency", self._why(step.expands[0].edge.key)
            case _:
                return "", ""

    def _why(self, key: str) -> str:
        return self.choice.reasons.get(key, "")
