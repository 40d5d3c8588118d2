"""Moments as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def shown_time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(" ", "seconds")
