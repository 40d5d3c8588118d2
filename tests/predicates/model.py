"""Conditions by brute force: plain Python numbers and bytes, and values at the edges of types."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

Stored = bool | int | float | str | None

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SINGLE_MAX: Final = 3.4028234663852886e38
INTEGERS: Final = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}
NUMBERS: Final = (*INTEGERS, "F32", "F64")
MEMBERS: Final = ("Zoo", "a", "ab", "b")

_WHOLE: Final = sorted(
    {0, 1, 2, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**53 + 1}
    | {2**53 + 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1}
    | {-1, -(2**24) - 1, -(2**31), -(2**31) - 1, -(2**53) - 1, -(2**63)}
)
_FRACTIONS: Final = [
    *(0.1, 0.10000000149011612, 1 / 3, 2.5, -2.5, 0.0, -0.0, 1e-45, 5e-324, 1e300, -1e300),
    *(SINGLE_MAX, 2.0**53, 2.0**53 + 2, 2.0**63, 2.0**64, -(2.0**63), 16777217.0, 9.5e18),
]
_TEXTS: Final = [
    *("", "a", "A", "a\0b", "a\0", "Z", "z", "é", "e\u0301", "\uffff", "\U0001f600", "'"),
    *("o''x", "\\", "%", "a_b", "a\nb", '"', "`", "x" * 300, "null", "NaN", "0.1"),
]

VALUES: Final[Mapping[str, list[Stored]]] = {
    **{
        kind: [value for value in _WHOLE if low <= value <= high]
        for kind, (low, high) in INTEGERS.items()
    },
    "F32": [value for value in _FRACTIONS if abs(value) <= SINGLE_MAX],
    "F64": list(_FRACTIONS),
    "Bool": [False, True],
    "String": list(_TEXTS),
    "Enum": list(MEMBERS),
    "Date": [-719_162, -1, 0, 1, 19_782, 2_932_896],
    "DateTime": [-62_135_596_800_000, -1, 0, 1, 1_709_208_000_000, 253_402_300_799_999],
}
"""Values to store and to ask for: days for a Date, milliseconds for a DateTime."""


def stored(kind: str, value: Stored) -> Stored:
    """What a property of a type holds when this is written to it."""
    return single(value) if kind == "F32" and isinstance(value, int | float) else value


def single(value: float) -> float:
    """The nearest 32-bit float."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def satisfies(kind: str, held: Stored, op: str, asked: Stored) -> bool:
    """Whether a stored value satisfies a condition with a literal or a parameter (Q-46 to Q-48)."""
    if held is None or asked is None:
        return False
    if kind == "F32":
        assert isinstance(asked, int | float)
        asked = single(asked)
    return OPERATORS[op](*(_plain(side) for side in (held, asked)))


def satisfies_pair(kinds: tuple[str, str], held: tuple[Stored, Stored], op: str) -> bool:
    """The same for two properties: whole numbers with floats as 64-bit floats."""
    if None in held:
        return False
    left, right = held
    if len({kind in INTEGERS for kind in kinds}) == 2:
        left, right = float(left), float(right)  # type: ignore[arg-type]
    return OPERATORS[op](_plain(left), _plain(right))


def _plain(value: Stored) -> Any:
    return value.encode() if isinstance(value, str) else value
