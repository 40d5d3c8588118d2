"""Pushed-down filters: SQL text that keeps at least the rows a condition matches.

An index can serve such a filter. Callers evaluate the condition again on the returned rows, so a
filter may keep too much but never too little. Where no such filter exists, the table is scanned.
"""

from __future__ import annotations

from typing import Any

from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.lookup import literal


def lookup_filter(
    column: str, kind: PropertyType, operator: ComparisonOperator, value: Any
) -> str | None:
    """The filter of an equality with a string or a whole number; None for everything else.

    Floats are never looked up: the table compares an F32 column with a 64-bit literal.
    """
    if operator != "=" or not kind.is_single or kind.scalar.family not in ("string", "integer"):
        return None
    asked = literal(kind.arrow_type(), value)
    return None if asked is None else f"`{column}` = {asked}"
