"""Differences between two schemas, by identity of types and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType

What = Literal["added", "removed", "renamed", "changed"]


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A type or property that was added, removed, renamed or changed."""

    what: What
    kind: str
    type_name: str
    property: str | None = None
    was: str | None = None

    def to_json(self) -> dict[str, Any]:
        body = {
            "change": self.what,
            "kind": self.kind,
            "type_name": self.type_name,
            "property": self.property,
            "was": self.was,
        }
        return {name: value for name, value in body.items() if value is not None}

    def __str__(self) -> str:
        name = self.type_name if self.property is None else f"{self.type_name}.{self.property}"
        was = "" if self.was is None else f" (was {self.was})"
        return f"{self.what} {self.kind} {name}{was}"


def schema_changes(old: AcceptedSchema, new: AcceptedSchema) -> list[SchemaDifference]:
    """All differences between two schemas, in the order of names."""
    befores, afters = _by_incarnation(old), _by_incarnation(new)
    found = [
        SchemaDifference("removed", t.kind, t.name)
        for incarnation, t in befores.items()
        if incarnation not in afters
    ]
    for incarnation, after in afters.items():
        before = befores.get(incarnation)
        if before is None:
            found.append(SchemaDifference("added", after.kind, after.name))
        else:
            found += _of_type(before, after)
    return sorted(found, key=lambda c: (c.kind, c.type_name, c.property or "", c.what))


def _of_type(before: NodeType | EdgeType, after: NodeType | EdgeType) -> Iterator[SchemaDifference]:
    if before.name != after.name:
        yield SchemaDifference("renamed", after.kind, after.name, was=before.name)
    olds = {item.property_id: item for item in before.properties.values()}
    news = {item.property_id: item for item in after.properties.values()}
    for identity, item in news.items():
        was = olds.get(identity)
        if was is None:
            yield SchemaDifference("added", after.kind, after.name, item.name)
            continue
        if was.name != item.name:
            yield SchemaDifference("renamed", after.kind, after.name, item.name, was.name)
        if was.type != item.type:
            yield SchemaDifference("changed", after.kind, after.name, item.name, str(was.type))
    for identity, item in olds.items():
        if identity not in news:
            yield SchemaDifference("removed", after.kind, after.name, item.name)


def _by_incarnation(schema: AcceptedSchema) -> Mapping[str, NodeType | EdgeType]:
    return {item.incarnation: item for item in schema.types()}
