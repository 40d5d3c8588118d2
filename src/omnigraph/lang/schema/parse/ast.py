"""What a schema text says, exactly as written.

Every part knows its place in the text. Nothing here is checked against anything else: names may be
unknown, annotations may make no sense where they stand. That is the business of ``resolve``. The
nodes are named tuples, because a parser makes thousands of them and every start of the program
defines their classes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from omnigraph.lang.syntax import Source, Span
from omnigraph.model.types import PropertyType

Value = str | int | float | bool
ConstraintKind = Literal["key", "unique", "index", "range", "check"]
TypeKind = Literal["interface", "node", "edge"]


class Name(NamedTuple):
    text: str
    span: Span


class Argument(NamedTuple):
    """One argument of an annotation: a literal, or a bare name that stands for its own text."""

    value: Value
    span: Span
    keyword: Name | None = None


class Annotation(NamedTuple):
    name: Name
    arguments: tuple[Argument, ...]
    span: Span


class TypeUse(NamedTuple):
    """The type of a property, as written."""

    type: PropertyType
    span: Span


class PropertyDecl(NamedTuple):
    name: Name
    type: TypeUse
    annotations: tuple[Annotation, ...]
    span: Span


class ConstraintDecl(NamedTuple):
    """``@key(a, b)``, ``@range(a, 0..9)``, ``@check(a, "re")``: a constraint in a body."""

    kind: ConstraintKind
    properties: tuple[Name, ...]
    span: Span
    low: float | None = None
    high: float | None = None
    pattern: str | None = None


class Cardinality(NamedTuple):
    low: int
    high: int | None
    span: Span


class InterfaceDecl(NamedTuple):
    name: Name
    annotations: tuple[Annotation, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


class NodeDecl(NamedTuple):
    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


class EdgeDecl(NamedTuple):
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None
    annotations: tuple[Annotation, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...]
    span: Span


class SchemaFile(NamedTuple):
    """A whole schema text, its declarations by kind and in the order written."""

    source: Source
    interfaces: tuple[InterfaceDecl, ...]
    nodes: tuple[NodeDecl, ...]
    edges: tuple[EdgeDecl, ...]
    complete: bool = True
    """False when a declaration was left out because it could not be read."""
