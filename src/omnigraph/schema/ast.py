"""What a schema text says, exactly as written.

Every part knows its place in the text. Nothing here is checked against anything else: names may be
unknown, annotations may make no sense where they stand. That is the business of ``resolve``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.syntax import Source, Span
from omnigraph.types import PropertyType

Value = str | int | float | bool
ConstraintKind = Literal["key", "unique", "index", "range", "check"]
TypeKind = Literal["interface", "node", "edge"]


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an annotation: a literal, or a bare name that stands for its own text."""

    value: Value
    span: Span
    keyword: Name | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    name: Name
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TypeUse:
    """The type of a property, as written."""

    type: PropertyType
    span: Span


@dataclass(frozen=True, slots=True)
class PropertyDecl:
    name: Name
    type: TypeUse
    annotations: tuple[Annotation, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ConstraintDecl:
    """``@key(a, b)``, ``@range(a, 0..9)``, ``@check(a, "re")``: a constraint in a body."""

    kind: ConstraintKind
    properties: tuple[Name, ...]
    span: Span
    low: float | None = None
    high: float | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Cardinality:
    low: int
    high: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class InterfaceDecl:
    name: Name
    annotations: tuple[Annotation, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class NodeDecl:
    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EdgeDecl:
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None
    annotations: tuple[Annotation, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A whole schema text, its declarations by kind and in the order written."""

    source: Source
    interfaces: tuple[InterfaceDecl, ...]
    nodes: tuple[NodeDecl, ...]
    edges: tuple[EdgeDecl, ...]
    complete: bool = True
    """False when a declaration was left out because it could not be read."""
