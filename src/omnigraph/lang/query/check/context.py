"""What every part of the checker shares: the catalog, the parameters, the findings, the scopes.

Owns how a problem is reported (each one once, in the order the rules are checked) and how a
variable is looked up. An invalid part is None, and parts that depend on it report nothing, so that
one mistake gives one message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from omnigraph.lang.query.typed_expressions import EntityType, ParameterValue
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.source import Span
from omnigraph.model.types import PropertyType

NAMES_LISTED_MAX: Final = 12
"""How many known names a message lists when none is close to the wrong one."""


@dataclass(frozen=True, slots=True)
class Context:
    """The state of checking one query."""

    schema: AcceptedSchema
    diagnostics: Diagnostics
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    unusable: set[str] = field(default_factory=set)
    """Parameters whose declaration is wrong: known, reported, and of no type."""

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.diagnostics.error(code, message, span, expected=expected, hint=hint, remedy=remedy)

    def report_unknown(
        self,
        code: str,
        message: str,
        span: Span,
        name: str,
        known: Iterable[str],
        *,
        remedy: str | None = None,
    ) -> None:
        """Report a name that does not exist, with the closest one that does, or with all."""
        expected: tuple[str, ...] = ()
        hint = self.diagnostics.did_you_mean(name, known)
        if hint is None and isinstance(known, Collection):
            expected = tuple(f"`{item}`" for item in islice(known, NAMES_LISTED_MAX))
        self.diagnostics.error(code, message, span, expected=expected, hint=hint, remedy=remedy)


@dataclass(frozen=True, slots=True)
class BindingScope:
    """The variables of one block, inside those of the blocks around it.

    ``unknown`` holds variables whose type could not be told; the reason is reported elsewhere.
    ``hidden`` holds those that only a negation inside this block binds.
    """

    outer: BindingScope | None = None
    local: dict[str, EntityType] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    written: EntityType | None = None
    """In a mutation: the type that a bare name is a property of."""
    fields: Mapping[str, PropertyType] | None = None
    """Its properties, and for edges the words for the ends; None where no entity is read."""

    def find(self, variable: str) -> EntityType | None:
        scope: BindingScope | None = self
        while scope is not None:
            if variable in scope.local:
                return scope.local[variable]
            scope = scope.outer
        return None

    def is_unknown(self, variable: str) -> bool:
        scope: BindingScope | None = self
        while scope is not None:
            if variable in scope.unknown:
                return True
            scope = scope.outer
        return False

    def is_outer(self, variable: str) -> bool:
        """Whether a variable is bound by a block around this one."""
        return self.outer is not None and self.outer.find(variable) is not None

    def names(self) -> Iterator[str]:
        scope: BindingScope | None = self
        while scope is not None:
            yield from scope.local
            scope = scope.outer
