"""Projection: turns matches into the columns of the result.

Handles property values, whole entities and grouping. Order and limit are applied before values are
fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from omnigraph.engine.exec.aggregate import Grouped, weights_suffice
from omnigraph.engine.exec.blockwise_aggregate import group
from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.match_frame import MatchFrame, block_slices
from omnigraph.engine.exec.sort import SortColumn, SortKeys, Strings, ordered_rows, shortlist
from omnigraph.engine.limits import Guard
from omnigraph.engine.result import Entities
from omnigraph.engine.tables.probe import EntityTable
from omnigraph.lang.query.checked import ResultColumn, SortKey
from omnigraph.lang.query.plan.logical import GroupBy, Project, ReadPlan
from omnigraph.lang.query.typed_expressions import (
    Expression,
    PropertyOf,
    WholeEntity,
    counts_rows,
    has_aggregate,
    is_constant,
    variables,
)
from omnigraph.predicates import chunked
from omnigraph.predicates.compare import Operand
from omnigraph.predicates.expressions import as_column, evaluate
from omnigraph.predicates.values import Ints, Mask, Values

EntityForm = Literal["object", "id"]
Answer: TypeAlias = Values | Entities


def needed_variables(plan: ReadPlan) -> frozenset[str]:
    """The variables that the output of a plan reads."""
    names = set(plan.tie_break)
    expressions: list[Expression] = [item.expression for item in plan.columns]
    expressions += [item.expression for item in plan.order]
    if plan.ranking is not None:
        expressions.append(plan.ranking)
    for item in expressions:
        names |= variables(item)
    if isinstance(plan.output, GroupBy):
        # Counting a variable is counting rows: no entity is missing.
        names = set().union(
            *(variables(item.expression) for item in plan.output.keys),
            *(variables(item) for item in plan.output.aggregates if not counts_rows(item)),
        )
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class Projection:
    """Turns the matches of one plan into result columns."""

    plan: ReadPlan
    evaluator: Evaluator
    tables: Mapping[str, EntityTable]
    guard: Guard
    entity_form: EntityForm

    def answer(self, frame: MatchFrame, ranks: SortColumn | None = None) -> list[Answer]:
        """The columns of the result. ``ranks`` is the first sort key of a ranked query."""
        if isinstance(self.plan.output, GroupBy):
            return self._grouped(self.plan.output, frame)
        return self._listed(self.plan.output, frame, ranks)

    # Listing

    def _listed(self, output: Project, frame: MatchFrame, ranks: SortColumn | None) -> list[Answer]:
        limit = self.plan.rows_max
        wanted = frame.matches if limit is None else min(limit, frame.matches)
        self.guard.allow_result(wanted)
        if limit is not None and not self.plan.order and ranks is None:
            frame = _first_matches(frame, limit)
        self.guard.allow_frame(frame.matches)
        frame = frame.expand_weights()
        if ranks is not None or self.plan.order:
            frame = self._ordered(frame, ranks)
        if self.plan.offset:
            frame = frame.take(np.arange(self.plan.offset, frame.rows))
        return [self._column(item, frame) for item in output.columns]

    def _ordered(self, frame: MatchFrame, ranks: SortColumn | None) -> MatchFrame:
        """The rows in order, as many as the limit allows."""
        keys, sorting, limit = [], self._sorting(), self.plan.rows_max
        if ranks is not None:
            keys = [_known(ranks)]
        elif sorting and limit:
            origin, chosen = frame.selection()
            if chosen is not None:
                rows = shortlist(self._sort_key(sorting[0], origin), origin.rows, limit, chosen)
                frame = origin.take(chunked.sort(rows))
        keys += [self._sort_key(item, frame) for item in sorting]
        ties = [(self.tables[name], frame.columns[name]) for name in self.plan.tie_break]
        return frame.take(ordered_rows(keys, ties, frame.rows, limit))

    def _sorting(self) -> list[SortKey]:
        return [item for item in self.plan.order if not is_constant(item.expression)]

    def _sort_key(self, key: SortKey, frame: MatchFrame) -> SortKeys:
        expression, descending, nulls_last = key.expression, key.descending, key.nulls_last
        strings = self._strings(expression)

        def of(rows: Ints | slice | None, *, rough: bool = False) -> SortColumn:
            part = frame
            if rows is not None:
                part = frame.part(rows) if isinstance(rows, slice) else frame.take(rows)
            if rough and strings is not None and isinstance(expression, PropertyOf):
                found = strings.rough(part.columns[expression.variable], descending=descending)
                return replace(found, nulls_last=nulls_last)
            value = as_column(self.evaluator.comparable(expression, part), part.rows)
            return replace(SortColumn.of(value, descending=descending), nulls_last=nulls_last)

        return of

    def _strings(self, expression: Expression) -> Strings | None:
        """The whole column of a string property that is not dictionary-encoded."""
        if not isinstance(expression, PropertyOf) or not expression.type.is_string:
            return None
        column = self.tables[expression.variable].strings(expression.property)
        return None if column is None else Strings(column)

    def _column(self, column: ResultColumn, frame: MatchFrame) -> Answer:
        expression = column.expression
        if isinstance(expression, WholeEntity):
            return self._entities(expression.variable, frame.columns[expression.variable])
        return self.evaluator.column(expression, frame)

    def _entities(self, variable: str, ordinals: Ints) -> Answer:
        """Whole entities: all properties but blobs, or the id alone."""
        table = self.tables[variable]
        if self.entity_form == "id":
            return table.gather("id", ordinals)
        names = tuple(item.name for item in table.kind.columns() if not item.type.is_blob)
        return Entities(names, tuple(table.gather(name, ordinals) for name in names))

    # Grouping

    def _grouped(self, output: GroupBy, frame: MatchFrame) -> list[Answer]:
        counts = [item.expression for item in output.columns if counts_rows(item.expression)]
        if len(counts) == len(output.columns) and self.plan.limit is None and not self.plan.offset:
            self.guard.allow_result(1)
            matches = np.array([frame.matches], dtype=np.int64)
            return [Values(count.type, matches) for count in counts]
        if not weights_suffice(output):
            self.guard.allow_frame(frame.matches)
            frame = frame.expand_weights()
        grouped = group(output, frame, self.evaluator)
        self.guard.allow_result(min(grouped.rows, self.plan.rows_max or grouped.rows))
        first = grouped.first
        rows = self._ordered_groups(output, grouped)
        if self.plan.offset:
            rows = np.arange(grouped.rows) if rows is None else rows
            rows = rows[self.plan.offset :]
        if output.keys and rows is not None:
            first = first.take(rows)
        columns: list[Answer] = []
        for item in output.columns:
            expression = item.expression
            found = grouped.of(expression)
            if found is not None:
                columns.append(found if rows is None else found.take(rows))
            elif has_aggregate(expression):
                leaves = GroupLeaves(self.evaluator, grouped, rows)
                columns.append(as_column(evaluate(expression, leaves), leaves.rows))
            else:
                columns.append(self._column(item, first))
        return columns

    def _ordered_groups(self, output: GroupBy, grouped: Grouped) -> Ints | None:
        first, limit = grouped.first, self.plan.rows_max
        if not self.plan.order:
            return None if limit is None else np.arange(min(limit, grouped.rows))
        keys: list[SortKeys] = []
        for item in self._sorting():
            value = grouped.of(item.expression)
            if value is None and has_aggregate(item.expression):
                leaves = GroupLeaves(self.evaluator, grouped)
                value = as_column(evaluate(item.expression, leaves), leaves.rows)
            if value is not None:
                known = SortColumn.of(value, descending=item.descending)
                keys.append(_known(replace(known, nulls_last=item.nulls_last)))
            else:
                keys.append(self._sort_key(item, first))
        ties = []
        for column in output.keys:
            expression = column.expression
            if isinstance(expression, WholeEntity):
                ties.append((self.tables[expression.variable], first.columns[expression.variable]))
            elif not is_constant(expression):
                tie = SortKey(expression, descending=False, nulls_last=False)
                keys.append(self._sort_key(tie, first))
        return ordered_rows(keys, ties, grouped.rows, limit)


@dataclass(frozen=True, slots=True)
class GroupLeaves:
    """Groups for the evaluator of expressions: aggregates, and keys from the first match."""

    evaluator: Evaluator
    grouped: Grouped
    chosen: Ints | None = None
    """The groups to look at; None for all."""

    @property
    def rows(self) -> int:
        return self.grouped.rows if self.chosen is None else len(self.chosen)

    def leaf(self, expression: Expression) -> Operand:
        found = self.grouped.of(expression)
        if found is not None:
            return found if self.chosen is None else found.take(self.chosen)
        first = self.grouped.first
        if self.chosen is not None and first.rows == self.grouped.rows:
            first = first.take(self.chosen)
        return self.evaluator.value(expression, first)

    def some(self, rows: Ints) -> GroupLeaves:
        chosen = rows if self.chosen is None else self.chosen[rows]
        return GroupLeaves(self.evaluator, self.grouped, chosen)


def _known(column: SortColumn) -> SortKeys:
    def of(rows: Ints | slice | None, *, rough: bool = False) -> SortColumn:
        return column if rows is None else column.take(rows)

    return of


def _first_matches(frame: MatchFrame, limit: int) -> MatchFrame:
    """At most this many matches from the start of a frame."""
    origin, chosen = frame.selection()
    if chosen is not None:
        return origin.take(_first_selected(chosen, limit))
    if frame.weight is None:
        return frame.take(np.arange(min(limit, frame.rows)))
    before = chunked.mapped(np.subtract, chunked.cumsum(frame.weight), frame.weight)
    kept = frame.take(chunked.nonzero(chunked.mapped(lambda part: part < limit, before)))
    if not kept.rows or kept.weight is None:
        return kept
    weight = kept.weight.copy()
    weight[-1] = min(int(weight[-1]), limit - int(weight[:-1].sum()))
    return MatchFrame(kept.rows, kept.columns, weight)


def _first_selected(chosen: Mask, limit: int) -> Ints:
    """The first selected positions; stops as soon as there are enough."""
    found: list[Ints] = []
    missing = limit
    for block in block_slices(len(chosen)):
        if missing <= 0:
            break
        found.append(np.flatnonzero(chosen[block])[:missing] + block.start)
        missing -= len(found[-1])
    return np.concatenate([np.arange(0), *found])
