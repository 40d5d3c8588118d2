"""Grouping a large frame block by block.

Everything computed for one block is small enough for the processor's cache; computed for all rows
at once it would be written to memory and read again, several times over. Each block is grouped on
its own, and what was found in all of them is grouped once more. What was not chosen of a block is
a group that nobody looks at: quicker than to gather what was. Where groups are as many as rows,
or what is computed cannot be put together from parts, everything is grouped at once.
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
    adds_floats,
    extreme,
    group_at_once,
    integer_sums,
    number_codes,
    sum_or_mean,
)
from omnigraph.engine.exec.evaluate import Evaluator
from omnigraph.engine.exec.frame import (
    BLOCK_ROWS,
    Frame,
    add_up,
    block_slices,
    dense_codes,
    first_rows_of,
    group_rows,
)
from omnigraph.engine.exec.tally import Tally, tally
from omnigraph.lang.query.plan.logical import Group
from omnigraph.lang.query.typed_expressions import Aggregate, Expression, WholeEntity
from omnigraph.model.types import PropertyType
from omnigraph.predicates.values import Ints, Literal, Mask, Values, repeated

ROWS_PER_GROUP_MIN: Final = 8
"""In blocks with more groups than this allows, grouping twice is no gain."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An aggregate over the groups of one block: how many values each has, and what they make."""

    sizes: Ints
    made: Values | Ints | None = None

    def of(self, groups: Ints) -> _Found:
        """The same for some of the groups."""
        return _Found(self.sizes[groups], None if self.made is None else self.made.take(groups))


@dataclass(frozen=True, slots=True)
class _Part:
    """The groups of one block: the codes of their keys, their first rows, their aggregates."""

    keys: Sequence[Ints]
    first: Ints
    found: Sequence[_Found]


def group(output: Group, frame: Frame, evaluator: Evaluator) -> Grouped:
    """Group the matches of a frame, in blocks if it is large and that can be done."""
    if frame.rows > BLOCK_ROWS and not any(adds_floats(a.expression) for a in output.aggregates):
        origin, chosen = frame.origin()
        parts = _Grouping.of(output, evaluator).parts(origin, chosen)
        if parts is not None:
            return _together(output, origin, parts)
    return group_at_once(output, frame, evaluator)


@dataclass(frozen=True, slots=True)
class _Grouping:
    """What is asked of every block."""

    keys: Sequence[Expression]
    aggregates: Sequence[Aggregate]
    arguments: Sequence[Expression]
    """What the aggregates are about, each once."""
    places: Sequence[int]
    """Where among those the argument of each aggregate is."""
    evaluator: Evaluator

    @classmethod
    def of(cls, output: Group, evaluator: Evaluator) -> _Grouping:
        keys = [item.expression for item in output.keys]
        asked = [a.expression for a in output.aggregates if isinstance(a.expression, Aggregate)]
        arguments = list(dict.fromkeys(item.argument for item in asked))
        places = [arguments.index(item.argument) for item in asked]
        return cls(keys, asked, arguments, places, evaluator)

    def parts(self, frame: Frame, chosen: Mask | None) -> list[_Part] | None:
        parts: list[_Part] = []
        for rows in block_slices(frame.rows):
            block = frame.part(rows)
            part = self._part(block, None if chosen is None else chosen[rows], rows.start)
            if part is None or len(part.first) * ROWS_PER_GROUP_MIN > BLOCK_ROWS:
                return None
            parts.append(part)
        return parts

    def _part(self, block: Frame, chosen: Mask | None, start: int) -> _Part | None:
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
        tallies = self._tallies(block, members)
        sizes = next((known.sizes for known in tallies if known is not None), None)
        if sizes is None:
            sizes = members.sizes
        first = first_rows_of(members.groups, members.count, sizes)
        present = np.flatnonzero(sizes[:count])
        present = present[np.argsort(first[present], kind="stable")]
        first = first[present]
        found: list[_Found] = []
        for expression, place in zip(self.aggregates, self.places, strict=True):
            known = tallies[place]
            if known is not None:
                one: _Found | None = _counted(expression, known)
            elif isinstance(expression.argument, WholeEntity):
                one = _Found(sizes)
            else:
                one = _aggregate(expression, block, self.evaluator, members)
            if one is None:
                return None
            found.append(one.of(present))
        return _Part([key[first] for key in keys], first + start, found)

    def _tallies(self, block: Frame, members: Members) -> list[Tally | None]:
        """How often each value of each argument occurs, where there are few different ones."""
        found: list[Tally | None] = []
        for argument in self.arguments:
            counted = None
            if members.weight is None and not isinstance(argument, WholeEntity):
                value = self.evaluator.value(argument, block)
                if isinstance(value, Values) and value.is_numpy:
                    valid = value.is_valid()
                    if valid is None or valid.all():
                        counted = tally(value, members.groups, members.count)
            found.append(counted)
        return found


def _counted(expression: Aggregate, known: Tally) -> _Found:
    match expression.function:
        case "count":
            return _Found(known.sizes)
        case "min":
            return _Found(known.sizes, known.smallest())
        case "max":
            return _Found(known.sizes, known.largest())
        case _:
            return _Found(known.sizes, known.sums())


def _codes(expression: Expression, block: Frame, evaluator: Evaluator) -> list[Ints] | None:
    """Columns of numbers that are equal where the key is, in this block or another."""
    if isinstance(expression, WholeEntity):
        return [block.columns[expression.variable]]
    value = evaluator.value(expression, block)
    if isinstance(value, Literal):
        return []
    return number_codes(value) if value.is_numpy else None


def _aggregate(
    expression: Aggregate, block: Frame, evaluator: Evaluator, members: Members
) -> _Found | None:
    value = evaluator.value(expression.argument, block)
    if isinstance(value, Literal) or not value.is_numpy:
        return None
    valid = value.is_valid()
    if valid is not None and not valid.all():
        members, value = members.keep(valid), value.take(np.flatnonzero(valid))
    if expression.function == "count":
        return _Found(members.sizes)
    if not len(value):
        return _Found(members.sizes)
    if expression.function in ("min", "max"):
        return _Found(members.sizes, extreme(expression, value, members.groups, members.count))
    totals = integer_sums(value.data, members.groups, members.count, members.weight)
    if any(abs(total) > INT64_MAX for total in totals):
        return None
    return _Found(members.sizes, np.array(totals, dtype=np.int64))


# Putting parts together


def _together(output: Group, frame: Frame, parts: Sequence[_Part]) -> Grouped:
    first = np.concatenate([part.first for part in parts])
    keys = [np.concatenate(columns) for columns in zip(*(p.keys for p in parts), strict=True)]
    groups, places = group_rows(keys, len(first))
    count = len(places)
    found: list[tuple[Expression, Values]] = []
    for at, item in enumerate(output.aggregates):
        assert isinstance(item.expression, Aggregate)
        pieces = [part.found[at] for part in parts]
        found.append((item.expression, _merged(item.expression, pieces, groups, count)))
    return Grouped(count, frame.take(first[places]), found)


def _merged(expression: Aggregate, pieces: list[_Found], groups: Ints, count: int) -> Values:
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
    return extreme(expression, Values(values[0].type, data, None, values[0].words), every, count)
