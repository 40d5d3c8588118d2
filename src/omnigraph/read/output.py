"""What becomes of the matches: rows as an Arrow table.

Projection, whole entities, and the choice between listing and grouping. Order and limit are applied
before values are fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from omnigraph.query.checked import Column
from omnigraph.query.expressions import Aggregate, Expression, WholeEntity, variables
from omnigraph.query.plan import Group, Project, ReadPlan
from omnigraph.read.aggregate import Grouped, group
from omnigraph.read.evaluate import Evaluator
from omnigraph.read.frame import Frame
from omnigraph.read.limits import Guard
from omnigraph.read.order import SortColumn, first_rows
from omnigraph.read.values import Ints, Values, repeated
from omnigraph.read.values import Literal as LiteralValue
from omnigraph.schema import AcceptedSchema

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.read.match import Edges, Nodes

EntityForm = Literal["object", "id"]


def needed_variables(plan: ReadPlan) -> frozenset[str]:
    """The variables that the output of a plan looks at."""
    names = set(plan.tie_break)
    expressions: list[Expression] = [item.expression for item in plan.columns]
    expressions += [item.expression for item in plan.order]
    if plan.ranking is not None:
        expressions.append(plan.ranking)
    for item in expressions:
        names |= variables(item)
    if isinstance(plan.output, Group):
        # Counting a variable is counting rows: no entity is missing.
        used = {
            name
            for column in (*plan.output.keys, *plan.output.aggregates)
            for name in variables(column.expression)
            if not _counts_rows(column.expression)
        }
        names = used | set().union(*(variables(item.expression) for item in plan.output.keys))
    return frozenset(names)


def _counts_rows(expression: Expression) -> bool:
    return (
        isinstance(expression, Aggregate)
        and expression.function == "count"
        and isinstance(expression.argument, WholeEntity)
    )


@dataclass(frozen=True, slots=True)
class Output:
    """Turns the matches of one plan into its answer."""

    plan: ReadPlan
    schema: AcceptedSchema
    evaluator: Evaluator
    tables: Mapping[str, Nodes | Edges]
    guard: Guard
    entity_form: EntityForm

    def answer(self, frame: Frame, ranks: SortColumn | None = None) -> pa.Table:
        """The rows of the answer. ``ranks`` order the rows before everything else."""
        if isinstance(self.plan.output, Group):
            return self._grouped(self.plan.output, frame)
        return self._listed(self.plan.output, frame, ranks)

    # Listing

    def _listed(self, output: Project, frame: Frame, ranks: SortColumn | None) -> pa.Table:
        limit = self.plan.limit
        wanted = frame.matches if limit is None else min(limit, frame.matches)
        self.guard.allow_result(wanted)
        if limit is not None and not self.plan.order and ranks is None:
            frame = _first_matches(frame, limit)
        self.guard.allow_frame(frame.matches)
        frame = frame.spread()
        rows = self._ordered_rows(frame, ranks)
        if rows is not None:
            frame = frame.take(rows)
        return _table(output.columns, [self._column(item, frame) for item in output.columns])

    def _ordered_rows(self, frame: Frame, ranks: SortColumn | None) -> Ints | None:
        keys: list[SortColumn] = []
        if ranks is not None:
            keys.append(ranks)
        for item in self.plan.order:
            value = self.evaluator.value(item.expression, frame)
            if isinstance(value, Values):
                keys.append(SortColumn.of(value, descending=item.descending))
        if not keys:
            return None
        ties = [(self.tables[name], frame.columns[name]) for name in self.plan.tie_break]
        return first_rows(keys, ties, frame.rows, self.plan.limit)

    def _column(self, column: Column, frame: Frame) -> pa.Array:
        expression = column.expression
        if isinstance(expression, WholeEntity):
            return self._entities(expression.variable, frame.columns[expression.variable])
        value = self.evaluator.value(expression, frame)
        if isinstance(value, LiteralValue):
            value = repeated(value, frame.rows)
        return value.to_arrow()

    def _entities(self, variable: str, ordinals: Ints) -> pa.Array:
        """Whole entities: all properties but blobs, or the id alone."""
        import pyarrow as pa

        table = self.tables[variable]
        if self.entity_form == "id":
            return table.ids(ordinals)
        names = entity_columns(table.kind.columns())
        arrays = [table.gather(name, ordinals).to_arrow() for name in names]
        return pa.StructArray.from_arrays(arrays, names=list(names))

    # Grouping

    def _grouped(self, output: Group, frame: Frame) -> pa.Table:
        grouped = group(output, frame, self.evaluator)
        self.guard.allow_result(min(grouped.rows, self.plan.limit or grouped.rows))
        rows = self._ordered_groups(output, grouped, frame)
        first = frame.take(grouped.first[rows] if rows is not None else grouped.first)
        columns = []
        for item in output.columns:
            found = grouped.aggregates.get(item.expression)
            if found is not None:
                columns.append(
                    found.take(rows).to_arrow() if rows is not None else found.to_arrow()
                )
            else:
                columns.append(self._column(item, first))
        return _table(output.columns, columns)

    def _ordered_groups(self, output: Group, grouped: Grouped, frame: Frame) -> Ints | None:
        limit = self.plan.limit
        if not self.plan.order:
            return None if limit is None else np.arange(min(limit, grouped.rows))
        keys = []
        first = frame.take(grouped.first)
        for item in self.plan.order:
            value = grouped.aggregates.get(item.expression)
            if value is None:
                found = self.evaluator.value(item.expression, first)
                if isinstance(found, LiteralValue):
                    continue
                value = found
            keys.append(SortColumn.of(value, descending=item.descending))
        ties = []
        for column in output.keys:
            if isinstance(column.expression, WholeEntity):
                name = column.expression.variable
                ties.append((self.tables[name], first.columns[name]))
            else:
                found = self.evaluator.value(column.expression, first)
                if isinstance(found, Values):
                    keys.append(SortColumn.of(found, descending=False))
        return first_rows(keys, ties, grouped.rows, limit)


def entity_columns(columns: Sequence[object]) -> tuple[str, ...]:
    """The columns of a whole entity: its id, then every property that is not a blob."""
    return tuple(c.name for c in columns if not c.type.is_blob)  # type: ignore[attr-defined]


def _first_matches(frame: Frame, limit: int) -> Frame:
    """At most this many matches from the start of a frame."""
    if frame.weight is None:
        return frame.take(np.arange(min(limit, frame.rows)))
    before = np.cumsum(frame.weight) - frame.weight
    kept = frame.take(np.flatnonzero(before < limit))
    if not kept.rows or kept.weight is None:
        return kept
    weight = kept.weight.copy()
    weight[-1] = min(int(weight[-1]), limit - int(weight[:-1].sum()))
    return Frame(kept.rows, kept.columns, weight)


def _table(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays(list(arrays), names=[item.name for item in columns])
