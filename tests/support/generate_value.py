"""Random values of property types, as query literals and as JSON.

Values stay small and repeat often, so that generated queries meet generated data.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from omnigraph.lang.syntax.lexer import quote
from omnigraph.model.calendar import format_date, format_instant
from omnigraph.model.types import PropertyType

_TEXTS: Final = ("", "a", "b", "ab", "copper kettle", 'say "hi"', "back\\slash", "é\n", "%", "_")
_DAYS_MAX: Final = 20_000


def random_literal(kind: PropertyType, random: Random) -> str:
    """A literal of a type. Blobs have none, and numbers are never negative."""
    if kind.is_vector or kind.is_list:
        count = kind.dimensions if kind.dimensions is not None else random.randint(0, 3)
        return "[" + ", ".join(_literal(kind, random) for _ in range(count)) + "]"
    return _literal(kind, random)


def _literal(kind: PropertyType, random: Random) -> str:
    value = _value(kind, random)
    family = kind.scalar.family
    if family == "bool":
        return "true" if value else "false"
    if family in ("date", "datetime"):
        return f'{family}("{value}")'
    return quote(value) if isinstance(value, str) else str(value)


def random_value(kind: PropertyType, random: Random) -> Any:
    """A JSON value that a parameter of this type accepts."""
    if kind.is_vector or kind.is_list:
        count = kind.dimensions if kind.dimensions is not None else random.randint(0, 3)
        return [_value(kind, random) for _ in range(count)]
    return _value(kind, random)


def _value(kind: PropertyType, random: Random) -> Any:
    match kind.scalar.family:
        case "string":
            return random.choice(kind.enum if kind.enum is not None else _TEXTS)
        case "bool":
            return random.random() < 0.5
        case "integer":
            return random.randint(0, 50)
        case "float":
            return random.randint(0, 40) / 4
        case "date":
            return format_date(random.randint(0, _DAYS_MAX))
        case "datetime":
            return format_instant(random.randint(0, _DAYS_MAX) * 86_400_000)
        case "blob":
            return random.choice(("base64:aGk=", "base64:"))
