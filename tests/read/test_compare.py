"""Comparisons of columns by value, where types differ."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

from omnigraph.query.expressions import FLOAT, INTEGER
from omnigraph.read.compare import compare
from omnigraph.read.values import Values

OPERATORS: dict[Any, Any] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WHOLE = [0, -3, 2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1]
FLOATS = [0.0, -0.0, -2.5, 2.0**53, -(2.0**53), 2.0**63, -(2.0**63), 2.0**62, math.inf, math.nan]


@pytest.mark.parametrize("symbol", OPERATORS)
def test_whole_numbers_and_floats_are_compared_exactly(symbol: Any) -> None:
    pairs = [(a, b) for a in WHOLE for b in FLOATS]
    whole = Values(INTEGER, np.array([a for a, _ in pairs], dtype=np.int64))
    floats = Values(FLOAT, np.array([b for _, b in pairs]))
    meant = OPERATORS[symbol]
    found = compare(symbol, whole, floats, len(pairs)).tolist()
    assert found == [meant(a, b) for a, b in pairs]
    found = compare(symbol, floats, whole, len(pairs)).tolist()
    assert found == [meant(b, a) for a, b in pairs]


def test_the_largest_unsigned_number_is_less_than_the_next_float() -> None:
    whole = Values(INTEGER, np.array([2**64 - 1], dtype=np.uint64))
    assert compare("<", whole, Values(FLOAT, np.array([2.0**64])), 1).tolist() == [True]
