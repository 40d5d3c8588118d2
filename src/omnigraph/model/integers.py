"""Whole numbers as people write them in flags and settings."""

from __future__ import annotations

from typing import Final

DIGITS_MAX: Final = 18
"""What fits into 64 bits whatever the digits."""


def whole_number(text: str) -> int | None:
    """The integer that a text of plain digits spells; None for any other text."""
    plain = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    return int(text) if plain else None
