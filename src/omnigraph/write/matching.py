"""Which entities a mutation's ``where`` means.

Numbers compare by value whatever their types; null, on either side, never matches. The exact answer
is always computed on Arrow columns; a filter is also handed to the table where it can only help, so
that an index serves a look-up by key.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.query.ast import ComparisonOperator
from omnigraph.storage.arrays import as_array, as_integers
from omnigraph.storage.locating import value_filter
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    import pyarrow as pa

_FUNCTIONS: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_PYTHON: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """``column operator value``, with the value a stored one."""

    column: str
    kind: PropertyType
    operator: ComparisonOperator
    value: Any

    @property
    def can_match(self) -> bool:
        return self.value is not None

    def filter(self) -> str | None:
        """A filter that keeps at least what matches, or None when only a scan will do."""
        import pyarrow as pa

        family = self.kind.scalar.family
        if self.operator != "=":
            return None
        if family == "string":
            return value_filter(self.column, pa.array([self.value], pa.string()))
        if family == "integer" and isinstance(self.value, int) and abs(self.value) < 2**31:
            return value_filter(self.column, pa.array([self.value], pa.int64()))
        return None

    def mask(self, rows: pa.Table) -> Any:
        """Which rows match; null counts as no."""
        import pyarrow.compute as pc

        values = as_array(rows[self.column])
        family = self.kind.scalar.family
        if family in ("integer", "float"):
            mask = _compare_numbers(values, family, self.operator, self.value)
        else:
            mask = _compare(_ordered(values, family), self.operator, _plain(self.value))
        return pc.fill_null(mask, False)


def _compare_numbers(values: Any, family: str, op: str, value: float) -> Any:
    """Any number with any number, without losing digits of either."""
    import pyarrow as pa

    if family == "float":
        return _compare(values.cast(pa.float64()), op, float(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return _constant(values, _PYTHON[op](0, value))
        if value != math.floor(value):
            if op in ("=", "!="):
                return _constant(values, op == "!=")
            # Between two whole numbers: below it means at most the lower one.
            op = "<=" if op in ("<", "<=") else ">"
        value = math.floor(value)
    low, high = (-(2**63), 2**63 - 1) if pa.types.is_signed_integer(values.type) else (0, 2**64 - 1)
    if not low <= value <= high:
        return _constant(values, _PYTHON[op](0, value))
    wide = pa.int64() if low else pa.uint64()
    return _compare(values.cast(wide), op, pa.scalar(value, wide))


def _compare(values: Any, op: str, value: Any) -> Any:
    import pyarrow.compute as pc

    return getattr(pc, _FUNCTIONS[op])(values, value)


def _constant(values: Any, answer: bool) -> Any:
    """The same answer for every value; null never matches."""
    import pyarrow.compute as pc

    return pc.and_(pc.is_valid(values), answer)


def _ordered(values: Any, family: str) -> Any:
    """Values of a type that Arrow can put in order."""
    import pyarrow as pa

    return values.cast(pa.int8()) if family == "bool" else as_integers(values, family)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
