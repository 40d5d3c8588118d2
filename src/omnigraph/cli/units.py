"""Sizes, durations and times as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from omnigraph.errors import InvalidInput

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def size_text(size: int) -> str:
    """A number of bytes, rounded to about three digits, with its unit."""
    value = float(size)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the last unit takes any number")


def seconds(text: str, flag: str) -> int:
    """``90``, ``90s``, ``15m``, ``12h``, ``7d`` or ``2w`` in seconds."""
    found = re.fullmatch(r"(\d{1,9})([smhdw]?)", text.strip())
    if found is None:
        raise InvalidInput(
            f"{flag} {text!r} is not a duration",
            remedy="Write a whole number and a unit: 90s, 15m, 12h, 7d or 2w.",
        )
    return int(found[1]) * _SECONDS[found[2]]


def shown_time(microseconds: int) -> str:
    """A time in UTC, to the second."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(" ", "seconds")
