"""Grouping and aggregation: one row per distinct key, with aggregates over each group.

Sums are exact and rounded once, so they do not depend on the order of rows. Null keys are equal to
each other; null values are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.match_frame import MatchFrame, add_up, group_rows
from omnigraph.engine.exec.sort import LISTS_ROWS, string_ranks
from omnigraph.lang.query.plan.logical import GroupBy
from omnigraph.lang.query.typed_expressions import (
    INTEGER,
    Aggregate,
    Expression,
    PropertyOf,
    WholeEntity,
)
from omnigraph.model.types import PropertyType
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Literal, Mask, Values, repeated

INT64_MAX: Final = 2**63 - 1
_EXACT_FLOAT_MAX: Final = 2**53
FLOAT_ROWS: Final = 1 << 17
"""Numbers that are added one by one between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups with their aggregates. ``first`` has one match per group, in order of appearance."""

    rows: int
    first: MatchFrame
    aggregates: Sequence[tuple[Expression, Values]]

    def of(self, expression: Expression) -> Values | None:
        """The values of an aggregate; None for any other expression."""
        for known, values in self.aggregates:
            if known is expression or known == expression:
                return values
        return None


def group_at_once(output: GroupBy, frame: MatchFrame, evaluator: Evaluator) -> Grouped:
    """Group the matches of a frame. Without a key there is one group, even for no matches."""
    keys = [column for item in output.keys for column in _codes(item.expression, frame, evaluator)]
    groups, first = group_rows(keys, frame.rows)
    count = len(first) if output.keys else 1
    members = Members(groups, count, frame.weight)
    found: list[tuple[Expression, Values]] = []
    for item in output.aggregates:
        found.append((item, _aggregate(item, frame, evaluator, members)))
    return Grouped(count, frame.take(first), found)


def weights_suffice(output: GroupBy) -> bool:
    """Whether weighted rows can be aggregated: sums of floats need one row per match."""
    return not any(adds_floats(item) for item in output.aggregates)


def needs_every_row(expression: Aggregate) -> bool:
    """Whether parts of a group cannot be aggregated apart and then combined."""
    return expression.function == "count_distinct" or adds_floats(expression)


def adds_floats(expression: Aggregate) -> bool:
    if expression.function not in ("sum", "avg"):
        return False
    kind = expression.argument.type
    return isinstance(kind, PropertyType) and kind.scalar.family == "float"


def _codes(expression: Expression, frame: MatchFrame, evaluator: Evaluator) -> list[Ints]:
    """Columns of codes that are equal where the key is equal; none for a constant key."""
    if isinstance(expression, WholeEntity):
        return [frame.columns[expression.variable]]
    if isinstance(expression, PropertyOf):
        table = evaluator.tables[expression.variable]
        ordinals = frame.columns[expression.variable]
        if table.favours_whole_columns(frame.rows):
            every = MatchFrame(table.rows, {expression.variable: table.whole().all})
            columns = _codes(expression, every, evaluator)
            return [chunked.take(column, ordinals) for column in columns]
    value = evaluator.value(expression, frame)
    if isinstance(value, Literal):
        return []
    return number_codes(value) if value.is_numpy else [_arrow_codes(value)]


def number_codes(value: Values) -> list[Ints]:
    """Codes of numeric values; comparable across blocks."""
    if value.valid is None:
        return [value.data]
    zero = value.data.dtype.type(0)
    data = chunked.mapped(lambda valid, part: np.where(valid, part, zero), value.valid, value.data)
    return [data, value.valid.view(np.int8)]


def _arrow_codes(value: Values) -> Ints:
    if value.type.is_string:
        return string_ranks(value.data)
    seen: dict[object, int] = {}
    codes = np.empty(len(value), dtype=np.int64)
    for part in chunked.chunks(len(value), LISTS_ROWS):
        lists = value.part(part.start, part.stop).to_list()
        items = (None if item is None else tuple(item) for item in lists)
        codes[part] = [seen.setdefault(item, len(seen)) for item in items]
    return codes


# Aggregates


@dataclass(frozen=True)
class Members:
    """The group of each row, the number of groups, and how many matches each row stands for."""

    groups: Ints
    count: int
    weight: Ints | None

    @cached_property
    def sizes(self) -> Ints:
        """How many matches each group has."""
        return add_up(self.groups, self.count, self.weight)

    def keep(self, valid: Mask) -> Members:
        if self.weight is None:
            return Members(chunked.compress(valid, self.groups)[0], self.count, None)
        groups, weight = chunked.compress(valid, self.groups, self.weight)
        return Members(groups, self.count, weight)


def _aggregate(
    expression: Aggregate, frame: MatchFrame, evaluator: Evaluator, members: Members
) -> Values:
    if isinstance(expression.argument, WholeEntity):
        if expression.function == "count":
            return Values(expression.type, members.sizes)
        entities = frame.columns[expression.argument.variable]
        return Values(expression.type, _different(Values(INTEGER, entities), members))
    value = evaluator.comparable(expression.argument, frame)
    if isinstance(value, Literal):
        value = repeated(value, frame.rows)
    valid = value.is_valid()
    if valid is not None:
        members = members.keep(valid)
    if expression.function == "count":
        return Values(expression.type, members.sizes)
    if expression.function == "count_distinct":
        kept = value if valid is None else value.take(chunked.nonzero(valid))
        return Values(expression.type, _different(kept, members))
    if valid is not None:
        value = value.take(chunked.nonzero(valid))
    if expression.function in ("min", "max"):
        return extreme(expression, value, members.groups, members.count)
    return _sum(expression, value.data, members)


def _different(value: Values, members: Members) -> Ints:
    """How many different values, none of them null, each group has."""
    codes = number_codes(value) if value.is_numpy else [_arrow_codes(value)]
    _, first = group_rows([members.groups, *codes], len(value))
    return chunked.bincount(chunked.take(members.groups, first), members.count)


def extreme(expression: Aggregate, value: Values, groups: Ints, count: int) -> Values:
    """The smallest or largest value of each group; null for a group without values."""
    ranks = value.data if value.is_numpy else string_ranks(value.data)
    if ranks.dtype == np.bool_:
        ranks = ranks.view(np.int8)
    order = chunked.order((groups, ranks))
    ends = np.searchsorted(chunked.take(groups, order), np.arange(count + 1))
    present = ends[1:] > ends[:-1]
    places = ends[:-1] if expression.function == "min" else ends[1:] - 1
    kind = replace(value.type, nullable=True)
    if not len(order):
        return repeated(Literal(None, kind), count)
    rows = order[np.where(present, places, 0)]
    found = value.take(rows)
    if present.all():
        return found
    return _with_nulls(found, present, kind)


def _with_nulls(values: Values, present: Mask, kind: Any) -> Values:
    if values.dictionary is not None:
        return Values(kind, np.where(present, values.data, -1), None, values.dictionary)
    if values.is_numpy:
        return Values(kind, values.data, present)
    return Values(kind, pc.if_else(pa.array(present), values.data, None))


def _sum(expression: Aggregate, data: Ints, members: Members) -> Values:
    groups, count = members.groups, members.count
    totals: list[Any]
    if data.dtype.kind == "f":
        totals = _float_sums(data, groups, count)
    else:
        totals = integer_sums(data, groups, count, members.weight)
    return sum_or_mean(expression, totals, members.sizes)


def sum_or_mean(expression: Aggregate, totals: list[Any], sizes: Ints) -> Values:
    """The sums, or averages, of groups of these sizes; null for an empty group."""
    present = sizes > 0
    if expression.function == "avg":
        pairs = zip(totals, sizes.tolist(), strict=True)
        totals = [total / size if size else 0.0 for total, size in pairs]
    result = np.array([float(total) for total in totals], dtype=np.float64)
    return Values(expression.type, result, None if present.all() else present)


def _float_sums(data: Ints, groups: Ints, count: int) -> list[float]:
    """Correctly rounded sums: the same in every order."""
    order = chunked.order((groups,))
    ends = np.searchsorted(chunked.take(groups, order), np.arange(count + 1))
    numbers = chunked.take(data, order)
    found: list[float] = []
    for part in chunked.output_chunks(ends[1:], FLOAT_ROWS):
        start, stop = int(ends[part.start]), int(ends[part.stop])
        if part.stop - part.start == 1:
            pieces = chunked.chunks(stop - start, FLOAT_ROWS)
            floats = (numbers[start:stop][piece].astype(np.float64).tolist() for piece in pieces)
            found.append(math.fsum(chain.from_iterable(floats)))
            continue
        several = numbers[start:stop].astype(np.float64).tolist()
        bounds = (ends[part.start : part.stop + 1] - start).tolist()
        found += [math.fsum(several[low:high]) for low, high in pairwise(bounds)]
    return found


def integer_sums(data: Ints, groups: Ints, count: int, weight: Ints | None) -> list[Any]:
    if not len(data):
        return [0] * count
    largest = max(abs(int(data.max())), abs(int(data.min())))
    repeats = len(data) if weight is None else int(weight.sum())
    if largest * repeats < _EXACT_FLOAT_MAX and len(data) <= chunked.LONG_ROWS:
        numbers = data if weight is None else data.astype(np.int64) * weight
        return list(np.bincount(groups, weights=numbers, minlength=count).astype(np.int64).tolist())
    if largest * repeats <= INT64_MAX:
        if weight is not None:
            data = chunked.mapped(lambda part, times: part.astype(np.int64) * times, data, weight)
        return list(chunked.sums(groups, data, count).tolist())
    exact = [0] * count
    for part in chunked.chunks(len(data), FLOAT_ROWS):
        weights = [1] * (part.stop - part.start) if weight is None else weight[part].tolist()
        pairs = zip(data[part].tolist(), groups[part].tolist(), weights, strict=True)
        for number, at, times in pairs:
            exact[at] += number * times
    return exact
