"""The abstract syntax tree of a schema text.

Every node has its position in the text. The tree is only syntactically correct: ``resolve`` checks
that names are known and that annotations are allowed where they occur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.syntax import Source, Span
from omnigraph.model.types import PropertyType

Value = str | int | float | bool
ConstraintKind = Literal["key", "unique", "index", "range", "check"]
TypeKind = Literal["interface", "node", "edge"]


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an annotation: a literal, or a bare name, whose value is its text."""

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
    """A whole schema text: its declarations by kind, in text order."""

    source: Source
    interfaces: tuple[InterfaceDecl, ...]
    nodes: tuple[NodeDecl, ...]
    edges: tuple[EdgeDecl, ...]
    complete: bool = True
    """False if a declaration with a syntax error was left out."""
