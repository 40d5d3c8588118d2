"""Random conditions over the edge values of every type, as text with a hole for the variable."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from omnigraph.model.calendar import format_date, format_instant
from tests.predicates.model import NUMBERS, VALUES, Stored

HOLE: Final = "@@"
"""Stands before a property: ``$n.`` in a query, nothing in a mutation."""
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_TEXTS: Final = ("String", "Enum")


def literal(kind: str, value: Stored) -> str:
    """A value as query text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == "Date":
        return f'date("{format_date(int(value))}")'
    if kind == "DateTime":
        return f'datetime("{format_instant(int(value))}")'
    if isinstance(value, str):
        return json.dumps(value.replace("\0", ""), ensure_ascii=False)
    if isinstance(value, float):
        assert math.isfinite(value)
    return repr(value)


@dataclass
class ConditionMaker:
    """Makes conditions from a seed."""

    rng: Random

    def condition(self, depth: int = 0) -> str:
        shape = self.rng.random() if depth < 3 else 1.0
        if shape < 0.2:
            word = self.rng.choice((" and ", " or "))
            parts = [self.condition(depth + 1) for _ in range(self.rng.randint(2, 3))]
            return "(" + word.join(parts) + ")"
        if shape < 0.3:
            return f"not {self.condition(depth + 1)}"
        if shape < 0.4:
            return f"(({self.condition(depth + 1)}) is {self.rng.choice(('', 'not '))}null)"
        if shape < 0.45:
            parts = [self.condition(depth + 1) for _ in range(3)]
            return f"case {{ when {parts[0]} then {parts[1]} else {parts[2]} }}"
        return self._comparison()

    def _comparison(self) -> str:
        kind = self.rng.choice(list(VALUES))
        shape = self.rng.random()
        if shape < 0.15:
            return f"{self._property(kind)} is {self.rng.choice(('', 'not '))}null"
        if shape < 0.3:
            items = ", ".join(self._literal(kind) for _ in range(self.rng.randint(0, 3)))
            return f"{self._property(kind)} in [{items}]"
        if shape < 0.35 and kind != "Enum":
            return f"{self._literal(kind)} in {HOLE}l{kind}"
        operator = self.rng.choice(_COMPARISONS)
        return f"({self.value(kind)} {operator} {self.value(kind)})"

    def value(self, kind: str) -> str:
        """A value of a type, made of a property or a literal."""
        known = self._property(kind) if self.rng.random() < 0.7 else self._literal(kind)
        other = self._literal(kind)
        choices = [known, known, f"coalesce({self._property(kind)}, {other})"]
        choices += [f"least({known}, {self._property(kind)})"]
        if kind in NUMBERS:
            operator = self.rng.choice("+-*" if kind not in ("F32", "F64") else "+-*/")
            choices += [f"({self._property(kind)} {operator} {self.rng.randint(0, 2)})"]
            choices += [f"floor({self._property(kind)})"]
        if kind in _TEXTS:
            choices += [f"lower({known})", f"concat({known}, {other})", f"substring({known}, 1)"]
        return self.rng.choice(choices)

    def _property(self, kind: str) -> str:
        return f"{HOLE}{self.rng.choice('px')}{kind}"

    def _literal(self, kind: str) -> str:
        value: Any = self.rng.choice(VALUES[kind])
        return literal(kind, value)


def in_query(condition: str) -> str:
    return condition.replace(HOLE, "$n.")


def in_mutation(condition: str) -> str:
    return condition.replace(HOLE, "")
