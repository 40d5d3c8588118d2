"""Two-phase aggregation of large frames: block by block, then over the partial results.

The intermediate arrays of a block fit into the processor's cache. Rows that a mask does not select
form one extra group that is discarded, which is faster than gathering the selected rows. Frames
with nearly as many groups as rows, and aggregates without partial results, are grouped at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omnigraph.engine.exec.aggregate import (
    INT64_MAX,
    Grouped,
    Members,
    extreme,
    group_at_once,
    integer_sums,
    needs_every_row,
    number_codes,
    sum_or_mean,
)
from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.histogram import GroupHistogram, group_histogram
from omnigraph.engine.exec.match_frame import (
    BLOCK_ROWS,
    MatchFrame,
    add_up,
    block_slices,
    dense_codes,
    first_rows_of,
    group_rows,
)
from omnigraph.lang.query.plan.logical import GroupBy
from omnigraph.lang.query.typed_expressions import Aggregate, Expression, WholeEntity
from omnigraph.model.types import PropertyType
from omnigraph.predicates.values import Ints, Literal, Mask, Values, repeated

ROWS_PER_GROUP_MIN: Final = 8
"""Minimum rows per group in a block; with more groups, two phases are slower than one."""


@dataclass(frozen=True, slots=True)
class _BlockAggregate:
    """A partial aggregate per group of one block: number of values, and their result."""

    sizes: Ints
    made: Values | Ints | None = None

    def of(self, groups: Ints) -> _BlockAggregate:
        """The partial aggregates of some of the groups."""
        return _BlockAggregate(
            self.sizes[groups], None if self.made is None else self.made.take(groups)
        )


@dataclass(frozen=True, slots=True)
class _BlockGroups:
    """The groups of one block: codes of their keys, first rows, partial aggregates."""

    keys: Sequence[Ints]
    first: Ints
    found: Sequence[_BlockAggregate]


def group(output: GroupBy, frame: MatchFrame, evaluator: Evaluator) -> Grouped:
    """Group the matches of a frame, blockwise if it is large and its aggregates allow it."""
    if frame.rows > BLOCK_ROWS and not any(needs_every_row(item) for item in output.aggregates):
        origin, chosen = frame.selection()
        parts = _Grouping.of(output, evaluator).parts(origin, chosen)
        if parts is not None:
            return _combined(output, origin, parts)
    return group_at_once(output, frame, evaluator)


@dataclass(frozen=True, slots=True)
class _Grouping:
    """The keys and aggregates that are computed for every block."""

    keys: Sequence[Expression]
    aggregates: Sequence[Aggregate]
    arguments: Sequence[Expression]
    """The distinct arguments of the aggregates."""
    places: Sequence[int]
    """The index of each aggregate's argument in ``arguments``."""
    evaluator: Evaluator

    @classmethod
    def of(cls, output: GroupBy, evaluator: Evaluator) -> _Grouping:
        keys = [item.expression for item in output.keys]
        asked = output.aggregates
        arguments = list(dict.fromkeys(item.argument for item in asked))
        places = [arguments.index(item.argument) for item in asked]
        return cls(keys, asked, arguments, places, evaluator)

    def parts(self, frame: MatchFrame, chosen: Mask | None) -> list[_BlockGroups] | None:
        parts: list[_BlockGroups] = []
        for rows in block_slices(frame.rows):
            block = frame.part(rows)
            part = self._part(block, None if chosen is None else chosen[rows], rows.start)
            if part is None or len(part.first) * ROWS_PER_GROUP_MIN > BLOCK_ROWS:
                return None
            parts.append(part)
        return parts

    def _part(self, block: MatchFrame, chosen: Mask | None, start: int) -> _BlockGroups | None:
        keys: list[Ints] = []
        for expression in self.keys:
            columns = _codes(expression, block, self.evaluator)
            if columns is None:
                return None
            keys += columns
        codes, count = dense_codes(keys, block.rows)
        if chosen is None:
            members = Members(codes, count, block.weight)
        else:
            others = (~chosen).astype(codes.dtype) * codes.dtype.type(count)
            members = Members(np.maximum(codes, others), count + 1, block.weight)
        histograms = self._histograms(block, members)
        sizes = next((known.sizes for known in histograms if known is not None), None)
        if sizes is None:
            sizes = members.sizes
        first = first_rows_of(members.groups, members.count, sizes)
        present = np.flatnonzero(sizes[:count])
        present = present[np.argsort(first[present], kind="stable")]
        first = first[present]
        found: list[_BlockAggregate] = []
        for expression, place in zip(self.aggregates, self.places, strict=True):
            known = histograms[place]
            if known is not None:
                one: _BlockAggregate | None = _counted(expression, known)
            elif isinstance(expression.argument, WholeEntity):
                one = _BlockAggregate(sizes)
            else:
                one = _aggregate(expression, block, self.evaluator, members)
            if one is None:
                return None
            found.append(one.of(present))
        return _BlockGroups([key[first] for key in keys], first + start, found)

    def _histograms(self, block: MatchFrame, members: Members) -> list[GroupHistogram | None]:
        """The histogram of each argument, where it has few distinct values."""
        found: list[GroupHistogram | None] = []
        for argument in self.arguments:
            counted = None
            if members.weight is None and not isinstance(argument, WholeEntity):
                value = self.evaluator.value(argument, block)
                if isinstance(value, Values) and value.is_numpy:
                    valid = value.is_valid()
                    if valid is None or valid.all():
                        counted = group_histogram(value, members.groups, members.count)
            found.append(counted)
        return found


def _counted(expression: Aggregate, known: GroupHistogram) -> _BlockAggregate:
    match expression.function:
        case "count":
            return _BlockAggregate(known.sizes)
        case "min":
            return _BlockAggregate(known.sizes, known.smallest())
        case "max":
            return _BlockAggregate(known.sizes, known.largest())
        case _:
            return _BlockAggregate(known.sizes, known.sums())


def _codes(expression: Expression, block: MatchFrame, evaluator: Evaluator) -> list[Ints] | None:
    """Columns of codes that are equal where the key is equal, also across blocks."""
    if isinstance(expression, WholeEntity):
        return [block.columns[expression.variable]]
    value = evaluator.value(expression, block)
    if isinstance(value, Literal):
        return []
    return number_codes(value) if value.is_numpy else None


def _aggregate(
    expression: Aggregate, block: MatchFrame, evaluator: Evaluator, members: Members
) -> _BlockAggregate | None:
    value = evaluator.value(expression.argument, block)
    if isinstance(value, Literal) or not value.is_numpy:
        return None
    valid = value.is_valid()
    if valid is not None and not valid.all():
        members, value = members.keep(valid), value.take(np.flatnonzero(valid))
    if expression.function == "count":
        return _BlockAggregate(members.sizes)
    if not len(value):
        return _BlockAggregate(members.sizes)
    if expression.function in ("min", "max"):
        return _BlockAggregate(
            members.sizes, extreme(expression, value, members.groups, members.count)
        )
    totals = integer_sums(value.data, members.groups, members.count, members.weight)
    if any(abs(total) > INT64_MAX for total in totals):
        return None
    return _BlockAggregate(members.sizes, np.array(totals, dtype=np.int64))


# Combining partial results


def _combined(output: GroupBy, frame: MatchFrame, parts: Sequence[_BlockGroups]) -> Grouped:
    first = np.concatenate([part.first for part in parts])
    keys = [np.concatenate(columns) for columns in zip(*(p.keys for p in parts), strict=True)]
    groups, places = group_rows(keys, len(first))
    count = len(places)
    found: list[tuple[Expression, Values]] = []
    for at, item in enumerate(output.aggregates):
        pieces = [part.found[at] for part in parts]
        found.append((item, _merged(item, pieces, groups, count)))
    return Grouped(count, frame.take(first[places]), found)


def _merged(
    expression: Aggregate, pieces: list[_BlockAggregate], groups: Ints, count: int
) -> Values:
    sizes = add_up(groups, count, np.concatenate([piece.sizes for piece in pieces]))
    if expression.function == "count":
        return Values(expression.type, sizes)
    ends = np.cumsum([len(piece.sizes) for piece in pieces])
    made = [
        (piece.made.take(found := np.flatnonzero(piece.sizes)), part[found])
        for piece, part in zip(pieces, np.split(groups, ends[:-1]), strict=True)
        if piece.made is not None
    ]
    every = np.concatenate([groups[:0], *(part for _, part in made)])
    if expression.function not in ("min", "max"):
        sums = np.concatenate([groups[:0], *(total for total, _ in made)])
        return sum_or_mean(expression, integer_sums(sums, every, count, None), sizes)
    values = [value for value, _ in made if isinstance(value, Values)]
    if not values:
        kind = expression.argument.type
        assert isinstance(kind, PropertyType)
        return repeated(Literal(None, replace(kind, nullable=True)), count)
    data = np.concatenate([value.data for value in values])
    return extreme(
        expression, Values(values[0].type, data, None, values[0].dictionary), every, count
    )
