"""Floats as text: the shortest decimal that reads back the same, at 64 or at 32 bits."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from omnigraph.errors import InvalidValue


def shortest_float(value: float, *, single: bool = False) -> str:
    """The shortest plain decimal that reads back as the same float, at 64 or 32 bits.

    Never an exponent, never a trailing ``.0``; both zeros are ``0``.
    """
    if not math.isfinite(value):
        raise InvalidValue("NaN and infinity have no canonical spelling")
    if value == 0:
        return "0"
    digits = _single_digits(value) if single else repr(value)
    if "e" in digits or "E" in digits:
        digits = format(Decimal(digits), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _single_digits(value: float) -> str:
    """The shortest digits that read back as this 32-bit float."""
    for precision in range(1, 9):
        shown = format(value, f".{precision}g")
        if round_single(float(shown)) == value:
            return shown
        if math.frexp(value)[0] in (0.5, -0.5):
            # Below a power of two floats are closer together than above it, so the next decimal
            # up may read back although the nearest decimal, which lies below, does not.
            step = Decimal(1).scaleb(Decimal(shown).adjusted() - precision + 1)
            above = Decimal(shown) + (step if value > 0 else -step)
            if round_single(float(above)) == value:
                return str(above)
    return format(value, ".9g")


def round_single(value: float) -> float:
    """The nearest 32-bit float; infinity beyond its range."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
