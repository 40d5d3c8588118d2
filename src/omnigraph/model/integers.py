"""Whole numbers as people write them in flags and settings."""

from __future__ import annotations

from typing import Final

DIGITS_MAX: Final = 18
"""Every number of this many digits fits into 64 bits."""


def whole_number(text: str) -> int | None:
    """The integer of a string of ASCII digits; None for any other string."""
    plain = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    return int(text) if plain else None
