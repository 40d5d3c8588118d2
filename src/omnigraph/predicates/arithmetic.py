"""Arithmetic on columns: within one number type, exact or an error.

Whole numbers that leave their type, divisions by zero and floats that are not finite fail with
``CalculationFailed``; null gives null and never fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CalculationFailed
from omnigraph.lang.query.typed_expressions import Calculation, Expression, Opposite, to_text
from omnigraph.model.types import PropertyType
from omnigraph.predicates.compare import Operand
from omnigraph.predicates.values import Literal, Mask, Values, column_values, repeated

_CHECKED: Final = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_FLOATS: Final = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}


def calculate(expression: Calculation, sides: Sequence[Operand], rows: int) -> Values:
    """``left operator right``, both of the type of the expression."""
    kind = expression.type
    left, right = (repeated(s, rows) if isinstance(s, Literal) else s for s in sides)
    valid = _both(left.valid, right.valid)
    if expression.operator in ("/", "%"):
        divisor = right.data if valid is None else right.data[valid]
        if not np.all(divisor):
            raise _failed(expression, "divides by zero")
    if kind.scalar.family == "float":
        with np.errstate(all="ignore"):
            found = _FLOATS[expression.operator](left.data, right.data)
        return finite(expression, Values(kind, found, valid))
    if expression.operator == "%":
        by = right.data if valid is None else np.where(valid, right.data, right.data.dtype.type(1))
        return Values(kind, np.fmod(left.data, by), valid)
    try:
        made = getattr(pc, _CHECKED[expression.operator])(left.to_arrow(), right.to_arrow())
    except pa.ArrowInvalid:
        raise _failed(expression, f"does not fit {kind.required()}") from None
    return column_values(made, kind)


def opposite(expression: Opposite, operand: Values) -> Values:
    """The numbers with the other sign."""
    try:
        return column_values(pc.negate_checked(operand.to_arrow()), expression.type)
    except pa.ArrowInvalid:
        raise _failed(expression, f"does not fit {expression.type.required()}") from None


def finite(expression: Expression, found: Values) -> Values:
    """The values, none of which may be infinite or undefined."""
    known = found.data if found.valid is None else found.data[found.valid]
    if not np.isfinite(known).all():
        kind = expression.type
        assert isinstance(kind, PropertyType)
        raise _failed(expression, f"is not a finite {kind.required()}")
    return found


def _failed(expression: Expression, problem: str) -> CalculationFailed:
    return CalculationFailed(f"`{to_text(expression)}` {problem}")


def _both(left: Mask | None, right: Mask | None) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left & right
