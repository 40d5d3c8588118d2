"""Values that nobody should pass, and values that make a call get further than its first check."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import numpy as np

TEXTS = [
    "",
    " ",
    "main",
    "dev",
    "Person",
    "node:Person",
    "ana",
    "name",
    "\0",
    "a\0b",
    "\ud800",
    "bad \udcff",
    "\x1b[31m",
    "é😀",
    "%s{}%d",
    "'; drop",
    "a" * 5_000,
    "-1",
    "nan",
    "null",
    "{",
    "[]",
    "2024-01-01T00:00:00Z",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "tag:x",
    "query",
    "query q() { match { $p: Person } return { $p.name } }",
    "node X { y: Strng }",
]
NUMBERS = [0, 1, -1, 2, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, True]
FLOATS = [0.0, 0.5, -1.5, 1e308, float("nan"), float("inf"), float("-inf")]


def deep(levels: int) -> Any:
    """A list in a list, and so on: deeper than Python or JSON recurses."""
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


def odd_value(chance: random.Random) -> Any:
    """A value of any kind."""
    kind = chance.randrange(9)
    if kind <= 2:
        return chance.choice(TEXTS)
    if kind == 3:
        return chance.choice(NUMBERS)
    if kind == 4:
        return chance.choice(FLOATS)
    if kind == 5:
        return None
    if kind == 6:
        inner = [odd_value(chance) for _ in range(chance.randrange(3))]
        return chance.choice([list, tuple])(inner)
    if kind == 7:
        return {chance.choice(["a", "name", 1, None, "\ud800"]): odd_value(chance)}
    return chance.choice(
        [
            b"",
            b"\xff\x00",
            object(),
            {1, 2},
            range(3),
            1j,
            deep(3_000),
            decimal.Decimal("1.5"),
            datetime.date(2024, 1, 1),
            datetime.datetime(2024, 1, 1),
            datetime.timedelta(days=-1),
            datetime.timedelta(days=999_999_999),
            np.int64(3),
            np.float64("nan"),
            np.array([1, 2]),
            int,
            len,
        ]
    )


def odd_text(chance: random.Random) -> str:
    return chance.choice(TEXTS)
