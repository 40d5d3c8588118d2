"""Violations of constraints, collected in a report that becomes one typed error.

Parsers and the evaluator add violations in a deterministic order. All are counted, but only the
first ones are kept, which bounds the memory of a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa

from omnigraph.errors import ConstraintViolation, InvalidData, KeyConflict, OmnigraphError

Rule = Literal[
    "syntax", "type", "required", "range", "check", "enum",
    "key", "exists", "unique", "endpoint", "cardinality",
]  # fmt: skip

VIOLATIONS_SHOWN_MAX: Final = 100
"""The number of violations that an error lists; all are counted."""

FILE: Final = "#file"
LINE: Final = "#line"
"""Extra columns with the file and line of a row. No property can have these names."""

NULLED: Final = "#nulled"
"""An extra column of partial loads: the indexes, among the columns of the type, of the properties
that a row sets to null. Other nulls mean that the property is not given."""

COUNT: Final = "#count"
"""An extra column of rows that stand for several equal ones: how many."""

_INPUT_RULES: Final = frozenset({"syntax", "type", "required"})


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation, and where it is."""

    rule: Rule
    message: str
    type_key: str | None = None
    id: str | None = None
    property: str | None = None
    file: str | None = None
    line: int | None = None
    columns: tuple[str, ...] = ()
    """The columns of a rule over several columns."""
    related: tuple[tuple[str, str], ...] = ()
    """Other entities of the violated rule, as type keys and ids."""
    depends_on: tuple[tuple[str, str], ...] = ()
    """Undecided entities (see ``TypeImage``), one of whose outcomes may remove this violation."""

    def __str__(self) -> str:
        place = f"{self.file or 'line'}:{self.line}" if self.line is not None else self.file
        return f"{place}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, Any]:
        kind, _, name = (self.type_key or "").partition(":")
        body = {
            "rule": self.rule,
            "message": self.message,
            "entity_kind": kind,
            "type_name": name,
            "id": self.id,
            "property": self.property,
            "file": self.file,
            "line": self.line,
        }
        return {name: value for name, value in body.items() if value not in (None, "")}


@dataclass(slots=True)
class Report:
    """Collects violations. ``files`` are the names that the ``#file`` column indexes.

    A file may be read in parts: then each part has its name in ``files``, and ``lines_before`` is
    the number of lines of the file before the part.
    """

    files: Sequence[str] | Mapping[int, str] = ()
    lines_before: Sequence[int] | Mapping[int, int] = ()
    shown_max: int = VIOLATIONS_SHOWN_MAX
    shown: list[Violation] = field(default_factory=list)
    total: int = 0
    rules: set[Rule] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def is_full(self) -> bool:
        """Whether further violations are only counted."""
        return len(self.shown) >= self.shown_max

    def add(self, violation: Violation) -> None:
        self.total += 1
        self.rules.add(violation.rule)
        if not self.is_full:
            self.shown.append(violation)

    def extend(self, violations: Iterable[Violation], total: int) -> None:
        """Add violations of one rule; ``total`` were found. Those that do not fit are dropped."""
        for violation in violations:
            self.rules.add(violation.rule)  # all have the same rule
            if self.is_full:
                break
            self.shown.append(violation)
        self.total += total

    def room(self) -> int:
        return max(self.shown_max - len(self.shown), 1)

    def place(self, rows: pa.Table, at: int) -> tuple[str | None, int | None]:
        """The file and line of a row, if they are known."""
        if LINE not in rows.column_names:
            return None, None
        part, line = rows[FILE][at].as_py(), rows[LINE][at].as_py()
        return self.files[part], line + (self.lines_before[part] if self.lines_before else 0)

    def raise_any(self) -> None:
        """Raise one error for all violations, if there are any."""
        if self:
            raise self._error()

    def _error(self) -> OmnigraphError:
        first = self.shown[0]
        violations = [violation.to_json() for violation in self.shown]
        if self.rules == {"exists"} and first.type_key is not None:
            return KeyConflict(first.type_key, first.id, violations=violations, total=self.total)
        kind = InvalidData if self.rules & _INPUT_RULES else ConstraintViolation
        more = f" (and {self.total - 1} more)" if self.total > 1 else ""
        return kind(f"{first}{more}", violations=violations, total=self.total)
