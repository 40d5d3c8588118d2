"""Evaluation of expressions on frames.

Evaluates a typed expression to one value per row, and fetches properties only for the entities in
the frame. Conditions evaluate to truth values: unknown is not true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from omnigraph.engine.exec.match_frame import BLOCK_ROWS, MatchFrame, block_slices
from omnigraph.engine.limits import Check
from omnigraph.engine.tables.probe import EntityTable
from omnigraph.lang.query.typed_expressions import (
    Bm25,
    Compare,
    Constant,
    CurrentTime,
    Expression,
    Fusion,
    Nearest,
    NullValue,
    ParameterValue,
    PropertyOf,
    Ranking,
    TextMatch,
    is_constant,
)
from omnigraph.predicates import chunked
from omnigraph.predicates.compare import Operand, compare
from omnigraph.predicates.expressions import as_column, evaluate, true_rows
from omnigraph.predicates.values import Ints, Literal, Mask, Values

WHOLE_ROWS: Final = 1 << 20
"""Rows that are compared with one value in a single call."""


class Searches(Protocol):
    """Text and vector search."""

    def matches(self, search: TextMatch, table: EntityTable, entities: Ints) -> Mask: ...

    def scores(self, ranking: Ranking, table: EntityTable, entities: Ints) -> Values: ...


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates expressions of one execution, with everything they may refer to."""

    tables: Mapping[str, EntityTable]
    parameters: Mapping[str, Any]
    now_ms: int
    search: Searches
    check: Check

    def with_tables(self, more: Mapping[str, EntityTable]) -> Evaluator:
        """The same with more variables."""
        tables = {**self.tables, **more}
        return Evaluator(tables, self.parameters, self.now_ms, self.search, self.check)

    def value(self, expression: Expression, frame: MatchFrame) -> Operand:
        """The value of an expression in every row, or one literal for all of them."""
        match expression:
            case PropertyOf():
                ordinals = frame.columns[expression.variable]
                return self.tables[expression.variable].gather(expression.property, ordinals)
            case TextMatch():
                found = self.truth(expression, frame)
                opposite = replace(expression, negated=not expression.negated)
                return Values(expression.type, found, found | self.truth(opposite, frame))
            case Nearest() | Bm25() | Fusion():
                first = expression.first if isinstance(expression, Fusion) else expression
                name = first.field.variable
                return self.search.scores(expression, self.tables[name], frame.columns[name])
            case Constant() | ParameterValue() | CurrentTime() | NullValue():
                return self.literal(expression)
            case _:
                return evaluate(expression, FrameLeaves(self, frame))

    def column(self, expression: Expression, frame: MatchFrame) -> Values:
        """The same with one value for each row."""
        return as_column(self.value(expression, frame), frame.rows)

    def comparable(self, expression: Expression, frame: MatchFrame) -> Operand:
        """The same for sorting and grouping. Where there are more rows than entities, strings are
        dictionary codes, which are faster to gather and compare.
        """
        if isinstance(expression, PropertyOf) and expression.type.is_string:
            table = self.tables[expression.variable]
            if table.favours_whole_columns(frame.rows):
                words = table.whole().dictionary_column(expression.property)
                return words.take(frame.columns[expression.variable])
        return self.value(expression, frame)

    def literal(self, expression: Expression) -> Literal:
        """The value of a constant or parameter."""
        match expression:
            case Constant():
                return Literal(expression.value, expression.type)
            case ParameterValue():
                return Literal(self.parameters[expression.name], expression.type)
            case CurrentTime():
                return Literal(self.now_ms, expression.type)
            case NullValue():
                return Literal(None, expression.type)
            case _:
                raise AssertionError(f"{type(expression).__name__} is not a value")

    def _compared(self, condition: Compare, frame: MatchFrame) -> Mask:
        left = self.value(condition.left, frame)
        right = self.value(condition.right, frame)
        return compare(condition.operator, left, right, frame.rows)

    def _in_blocks(self, condition: Expression, frame: MatchFrame) -> Mask:
        """Test block by block: the values of all parts for all rows take too much memory."""
        found = []
        for rows in block_slices(frame.rows):
            self.check()
            found.append(self._test(condition, frame.part(rows)))
        return chunked.concatenate(found)

    def _test(self, condition: Expression, frame: MatchFrame) -> Mask:
        if isinstance(condition, Compare):
            return self._compared(condition, frame)
        return true_rows(condition, FrameLeaves(self, frame))

    def truth(self, condition: Expression, frame: MatchFrame) -> Mask:
        """Which rows satisfy a condition."""
        if isinstance(condition, Compare):
            one_by_one = not (is_constant(condition.left) or is_constant(condition.right))
            if frame.rows > (BLOCK_ROWS if one_by_one else WHOLE_ROWS):
                return self._in_blocks(condition, frame)
            return self._compared(condition, frame)
        if isinstance(condition, TextMatch):
            name = condition.field.variable
            return self.search.matches(condition, self.tables[name], frame.columns[name])
        if frame.rows > BLOCK_ROWS:
            return self._in_blocks(condition, frame)
        return self._test(condition, frame)


@dataclass(frozen=True, slots=True)
class FrameLeaves:
    """The rows of a frame for the evaluator of expressions."""

    evaluator: Evaluator
    frame: MatchFrame

    @property
    def rows(self) -> int:
        return self.frame.rows

    def leaf(self, expression: Expression) -> Operand:
        return self.evaluator.value(expression, self.frame)

    def some(self, rows: Ints) -> FrameLeaves:
        return FrameLeaves(self.evaluator, self.frame.take(rows))
