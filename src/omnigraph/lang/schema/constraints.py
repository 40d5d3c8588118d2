"""Checks the constraints of one type against its properties and makes them canonical.

The input are constraints as written (in a body, as an annotation, or copied from an interface). The
output are sorted column lists, ranges and checks, so that spelling and order do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.schema.parse.ast import ConstraintDecl, ConstraintKind, TypeKind
from omnigraph.lang.schema.parts import Check, Columns, Property, Range
from omnigraph.lang.schema.pattern import pattern_problem
from omnigraph.lang.syntax import Diagnostics, Span


@dataclass(frozen=True, slots=True)
class ConstraintUse:
    """One constraint of a type: from its body, an annotation or an interface."""

    kind: ConstraintKind
    columns: Columns
    span: Span
    spans: tuple[Span, ...] = ()
    """The position of each column name; empty if the constraint is an annotation."""
    declaration: ConstraintDecl | None = None
    interface: str | None = None

    @property
    def sugar(self) -> bool:
        return not self.spans

    def place(self, index: int) -> Span:
        return self.spans[index] if self.spans else self.span


def written(declaration: ConstraintDecl) -> ConstraintUse:
    """A body constraint as a use."""
    return ConstraintUse(
        declaration.kind,
        tuple(name.text for name in declaration.properties),
        declaration.span,
        tuple(name.span for name in declaration.properties),
        declaration,
    )


@dataclass(frozen=True, slots=True)
class Constraints:
    """The canonical constraints of a type."""

    key: Columns
    unique: tuple[Columns, ...]
    indexes: tuple[Columns, ...]
    ranges: tuple[Range, ...]
    checks: tuple[Check, ...]


def canonical(
    uses: Sequence[ConstraintUse],
    owner: str,
    kind: TypeKind,
    properties: Mapping[str, Property],
    diagnostics: Diagnostics,
) -> Constraints:
    """Check every use and bring them into canonical form; ``owner`` names the type in messages."""
    checker = _Checker(owner, kind, properties, diagnostics)
    for use in uses:
        checker.add(use)
    if checker.keys:
        checker.indexes.add(checker.keys)
    return Constraints(
        key=checker.keys,
        unique=tuple(sorted(checker.unique)),
        indexes=tuple(sorted(checker.indexes)),
        ranges=tuple(sorted(checker.ranges, key=lambda item: (item.property, str(item)))),
        checks=tuple(sorted(checker.checks, key=lambda item: (item.property, item.pattern))),
    )


class _Checker:
    def __init__(
        self,
        owner: str,
        kind: TypeKind,
        properties: Mapping[str, Property],
        diagnostics: Diagnostics,
    ) -> None:
        self.owner = owner
        self.kind = kind
        self.properties = properties
        self.diagnostics = diagnostics
        self.keys: Columns = ()
        self.unique: set[Columns] = set()
        self.indexes: set[Columns] = set()
        self.ranges: set[Range] = set()
        self.checks: set[Check] = set()

    def add(self, use: ConstraintUse) -> None:
        if self.kind == "edge" and use.kind in ("key", "range", "check"):
            self.error("S26", f"`@{use.kind}` cannot stand on an edge", use.span)
            return
        members = [self.member(use, index) for index in range(len(use.columns))]
        if any(known is False for known in members):
            return
        columns = tuple(sorted(set(use.columns)))
        if use.kind == "key":
            self.key(use, columns)
        elif use.kind == "unique":
            self.unique.add(columns)
        elif use.kind == "index":
            self.indexes.add(columns)
        elif use.declaration is not None:
            self.one_property(use.declaration)

    def member(self, use: ConstraintUse, index: int) -> bool:
        """Whether a column exists and may be part of this constraint; reports if not."""
        name, span = use.columns[index], use.place(index)
        if name in self.endpoints():
            return True
        declared = self.properties.get(name)
        if declared is None:
            self.error(
                _CODES[use.kind],
                f"`@{use.kind}` names `{name}`, which {self.owner} does not have",
                span,
                hint=self.diagnostics.did_you_mean(name, (*self.properties, *self.endpoints())),
            )
            return False
        problem = _member_problem(use, declared)
        if problem is None:
            return True
        self.error(
            _CODES[use.kind],
            f"`{name}` is {problem} and cannot be part of `@{use.kind}`",
            span,
            remedy=_REMEDIES.get(use.kind),
        )
        return False

    def endpoints(self) -> tuple[str, ...]:
        """Columns of an edge that ``@unique`` and ``@index`` may name like properties."""
        return tuple(EdgeType.endpoints) if self.kind == "edge" else ()

    def key(self, use: ConstraintUse, columns: Columns) -> None:
        if self.keys:
            where = f" (from interface {use.interface})" if use.interface else ""
            self.error(
                "S20",
                f"{self.owner} has more than one `@key`{where}",
                use.span,
                remedy="For a key of several properties write `@key(a, b)` once, in the body.",
            )
        else:
            self.keys = columns

    def one_property(self, declaration: ConstraintDecl) -> None:
        """``@range`` and ``@check``."""
        name = declaration.properties[0].text
        if declaration.kind == "range":
            low, high = declaration.low, declaration.high
            if low is not None and high is not None and low > high:
                self.error(
                    "S23",
                    "the lower bound of this range is above the upper one: nothing would fit",
                    declaration.span,
                    remedy="Swap the bounds.",
                )
            self.ranges.add(Range(name, _plain_zero(low), _plain_zero(high)))
            return
        pattern = declaration.pattern or ""
        problem = pattern_problem(pattern)
        if problem is not None:
            self.error(
                "S24",
                f"the pattern cannot be used: {problem}",
                declaration.span,
                remedy="Use linear-time syntax: no look-around and no back-references.",
            )
        self.checks.add(Check(name, pattern))

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.diagnostics.error(code, message, span, hint=hint, remedy=remedy)


_CODES: Final[Mapping[ConstraintKind, str]] = {
    "key": "S20",
    "unique": "S21",
    "index": "S22",
    "range": "S23",
    "check": "S24",
}
_REMEDIES: Final[Mapping[ConstraintKind, str]] = {
    "key": "A key is made of required properties that each hold one value.",
    "unique": "Uniqueness is made of properties that each hold one value.",
    "range": "A range needs one number per entity.",
    "check": "A check needs one String or enum per entity.",
}


def _plain_zero(bound: float | None) -> float | None:
    """The bound with -0.0 turned into 0.0, so that both spell the same shape."""
    return None if bound is None else bound + 0.0


def _member_problem(use: ConstraintUse, declared: Property) -> str | None:
    """Why this property cannot be a member of this constraint; None if it can."""
    kind = declared.type
    shape = "a Blob" if kind.is_blob else "a list" if kind.is_list else None
    if use.kind in ("key", "unique", "range", "check") and kind.is_vector:
        shape = "a vector"
    if use.kind == "index":
        # A list may be named in a body constraint; no index is built for it.
        return shape if kind.is_blob or (kind.is_list and use.sugar) else None
    if shape is not None:
        return shape
    if use.kind == "key" and kind.nullable:
        return "nullable"
    if use.kind == "range" and not kind.is_numeric:
        return "not a number"
    if use.kind == "check" and not kind.is_string:
        return "not a string"
    return None
