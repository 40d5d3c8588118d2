"""The accepted schema: types, properties and constraints, resolved and with their ids.

Names are labels; storage and history refer to ``type_id``, ``property_id`` and ``incarnation``.
Values are immutable, compare by content, and are stored as JSON. The *shape* of a schema is what
its text declares, without ids; graphs with the same schema text have the same shape hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Final

from omnigraph.errors import CorruptData, FormatUnsupported, TypeNotFound
from omnigraph.lang.schema.parse.ast import TypeKind
from omnigraph.lang.schema.parts import (
    ANY_NUMBER,
    NO_ORIGIN,
    Check,
    Columns,
    CustomAnnotation,
    EdgeCardinality,
    Json,
    Origin,
    Property,
    Range,
    TableColumn,
    read_annotations,
)
from omnigraph.lang.syntax import Diagnostic, did_you_mean
from omnigraph.model.types import STRING, PropertyType

SCHEMA_FORMAT: Final = 1
"""Version of the JSON form of an accepted schema."""

ID: Final = "id"
SRC: Final = "src"
DST: Final = "dst"
"""Columns of the ends of an edge. On a node type both are ordinary property names: use
``system_columns`` and ``endpoints`` of the type, or ``TableColumn.is_system``, to tell."""


@dataclass(frozen=True, slots=True)
class _Type:
    """The base of interfaces, node types and edge types."""

    kind: ClassVar[TypeKind]
    endpoints: ClassVar[Mapping[str, str]] = {}
    """The columns of the ends of an edge, with the names that users see."""

    _: KW_ONLY
    name: str
    properties: Mapping[str, Property]
    """In name order."""
    unique: tuple[Columns, ...] = ()
    indexes: tuple[Columns, ...] = ()
    """The columns of declared indexes; a key is also an index."""
    type_id: str = ""
    origin: Origin = NO_ORIGIN
    key: str = field(init=False, repr=False, compare=False)
    """The type key, such as ``node:Person``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.kind}:{self.name}")

    def shape(self) -> Json:
        body: Json = {
            "name": self.name,
            "properties": [item.shape() for item in self.properties.values()],
        }
        if self.unique:
            body["unique"] = [list(columns) for columns in self.unique]
        if self.indexes:
            body["indexes"] = [list(columns) for columns in self.indexes]
        return body

    def to_json(self) -> Json:
        return {
            **self.shape(),
            "properties": [item.to_json() for item in self.properties.values()],
            "type_id": self.type_id,
            "origin": list(self.origin),
        }

    @staticmethod
    def _common(body: Json) -> Json:
        properties = [Property.from_json(item) for item in body["properties"]]
        return {
            "name": body["name"],
            "properties": {item.name: item for item in properties},
            "unique": _columns(body, "unique"),
            "indexes": _columns(body, "indexes"),
            "type_id": body["type_id"],
            "origin": Origin(*body["origin"]),
        }


@dataclass(frozen=True, slots=True)
class InterfaceType(_Type):
    """Properties that several node types have in common. An interface has no entities."""

    kind: ClassVar[TypeKind] = "interface"

    _: KW_ONLY
    keys: Columns = ()
    """Properties that become the key of a node type that does not declare them itself."""

    def shape(self) -> Json:
        body = _Type.shape(self)
        return {**body, "keys": list(self.keys)} if self.keys else body

    @classmethod
    def from_json(cls, body: Json) -> InterfaceType:
        return cls(**cls._common(body), keys=tuple(body.get("keys", ())))


@dataclass(frozen=True, slots=True)
class _DeclaredType(_Type):
    """A type with entities: it has a table, an incarnation and documentation."""

    system_columns: ClassVar[Columns]
    """Columns that are not properties, in table order."""

    _: KW_ONLY
    incarnation: str = ""
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[CustomAnnotation, ...] = ()

    def shape(self) -> Json:
        body = _Type.shape(self)
        if self.description is not None:
            body["description"] = self.description
        if self.instruction is not None:
            body["instruction"] = self.instruction
        if self.annotations:
            body["annotations"] = [item.to_json() for item in self.annotations]
        return body

    def to_json(self) -> Json:
        return {**_Type.to_json(self), "incarnation": self.incarnation}

    @staticmethod
    def _common(body: Json) -> Json:
        return {
            **_Type._common(body),
            "incarnation": body["incarnation"],
            "description": body.get("description"),
            "instruction": body.get("instruction"),
            "annotations": read_annotations(body),
        }

    def columns(self) -> tuple[TableColumn, ...]:
        """The table of this type: system columns, then properties in name order."""
        system = [TableColumn(name, PropertyType(STRING), None) for name in self.system_columns]
        declared = [
            TableColumn(item.name, item.type, item.property_id) for item in self.properties.values()
        ]
        return (*system, *declared)

    def shown_name(self, column: str) -> str:
        """The name of a column as users see it: ``from`` and ``to`` for the ends of an edge."""
        return self.endpoints.get(column, column)

    def column_of(self, word: str) -> str:
        """The column of a name that users see: the inverse of ``shown_name``."""
        return next((column for column, shown in self.endpoints.items() if shown == word), word)


@dataclass(frozen=True, slots=True)
class NodeType(_DeclaredType):
    kind: ClassVar[TypeKind] = "node"
    system_columns: ClassVar[Columns] = (ID,)

    _: KW_ONLY
    key_columns: Columns = ()
    """Members of the key in name order; see ``key_properties`` for the order of ids."""
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    implements: Columns = ()

    @property
    def key_properties(self) -> Columns:
        """Members of the key in the order that composite ids use; empty without a key."""
        if len(self.key_columns) < 2:
            return self.key_columns
        return tuple(sorted(self.key_columns, key=lambda name: self.properties[name].origin))

    @property
    def id_property(self) -> str | None:
        """The property whose values are the ids: a key of one plain string."""
        if len(self.key_columns) != 1:
            return None
        name = self.key_columns[0]
        return name if self.properties[name].type.is_plain_string else None

    def shape(self) -> Json:
        body = _DeclaredType.shape(self)
        if self.key_columns:
            body["key"] = list(self.key_columns)
        if self.ranges:
            body["ranges"] = [item.to_json() for item in self.ranges]
        if self.checks:
            body["checks"] = [[item.property, item.pattern] for item in self.checks]
        if self.implements:
            body["implements"] = list(self.implements)
        return body

    @classmethod
    def from_json(cls, body: Json) -> NodeType:
        return cls(
            **cls._common(body),
            key_columns=tuple(body.get("key", ())),
            ranges=tuple(Range.from_json(item) for item in body.get("ranges", ())),
            checks=tuple(Check(*item) for item in body.get("checks", ())),
            implements=tuple(body.get("implements", ())),
        )


@dataclass(frozen=True, slots=True)
class EdgeType(_DeclaredType):
    kind: ClassVar[TypeKind] = "edge"
    system_columns: ClassVar[Columns] = (ID, SRC, DST)
    endpoints: ClassVar[Mapping[str, str]] = {SRC: "from", DST: "to"}

    _: KW_ONLY
    source: str
    target: str
    cardinality: EdgeCardinality = ANY_NUMBER

    @property
    def key_properties(self) -> Columns:
        """Edges have no keys: always empty."""
        return ()

    def shape(self) -> Json:
        body = _DeclaredType.shape(self)
        body["source"] = self.source
        body["target"] = self.target
        body["cardinality"] = [self.cardinality.low, self.cardinality.high]
        return body

    @classmethod
    def from_json(cls, body: Json) -> EdgeType:
        return cls(
            **cls._common(body),
            source=body["source"],
            target=body["target"],
            cardinality=EdgeCardinality(*body["cardinality"]),
        )


@dataclass(frozen=True)
class AcceptedSchema:
    """The whole schema of a graph. Mappings are in name order."""

    source: str
    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    """Warnings and notes, such as rename hints without effect. Not part of the JSON form."""

    @cached_property
    def hash(self) -> str:
        """The hash of what the text declares, ``sha256:…``, without the assigned ids."""
        return canonical_hash(self.shape())

    @cached_property
    def digest(self) -> str:
        """The hash of the whole schema, including its source text and ids."""
        return canonical_hash(self.to_json())

    def shape(self) -> Json:
        """The canonical form of what the text declares, without ids."""
        return {
            "interfaces": [item.shape() for item in self.interfaces.values()],
            "nodes": [item.shape() for item in self.nodes.values()],
            "edges": [item.shape() for item in self.edges.values()],
        }

    def types(self) -> Iterator[NodeType | EdgeType]:
        """All types with entities: nodes, then edges, each in name order."""
        yield from self.nodes.values()
        yield from self.edges.values()

    def type(self, key: str) -> NodeType | EdgeType:
        """The type of a type key such as ``node:Person``."""
        kind, _, name = key.partition(":")
        found: NodeType | EdgeType | None = None
        if kind == "node":
            found = self.nodes.get(name)
        elif kind == "edge":
            found = self.edges.get(name)
        if found is None:
            known = [item.key for item in self.types()]
            hint = did_you_mean(key, known)
            raise TypeNotFound(f"there is no type `{key}`" + (f"; {hint}" if hint else ""))
        return found

    def with_type(self, item: NodeType | EdgeType) -> AcceptedSchema:
        """The schema with this type added, or in place of the type of the same name."""
        if isinstance(item, NodeType):
            return replace(self, nodes={**self.nodes, item.name: item})
        return replace(self, edges={**self.edges, item.name: item})

    def edge(self, word: str) -> EdgeType | None:
        """The edge type of this name, ignoring case."""
        return self._edges_folded.get(word.lower())

    @cached_property
    def _edges_folded(self) -> dict[str, EdgeType]:
        return {name.lower(): item for name, item in self.edges.items()}

    def to_json(self) -> Json:
        return {
            "format": SCHEMA_FORMAT,
            "hash": self.hash,
            "source": self.source,
            "interfaces": [item.to_json() for item in self.interfaces.values()],
            "nodes": [item.to_json() for item in self.nodes.values()],
            "edges": [item.to_json() for item in self.edges.values()],
        }

    @classmethod
    def from_json(cls, body: Json) -> AcceptedSchema:
        """The inverse of ``to_json``; raises ``CorruptData`` if the hash does not match."""
        if body.get("format") != SCHEMA_FORMAT:
            raise FormatUnsupported(f"unknown schema format {body.get('format')!r}")
        try:
            schema = cls._read(body)
            intact = schema.hash == body["hash"]
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise CorruptData(f"the stored schema cannot be read: {problem!r}") from problem
        if not intact:
            raise CorruptData("the stored schema does not match its hash")
        return schema

    @classmethod
    def _read(cls, body: Json) -> AcceptedSchema:
        interfaces = [InterfaceType.from_json(item) for item in body["interfaces"]]
        nodes = [NodeType.from_json(item) for item in body["nodes"]]
        edges = [EdgeType.from_json(item) for item in body["edges"]]
        return cls(
            source=body["source"],
            interfaces={item.name: item for item in interfaces},
            nodes={item.name: item for item in nodes},
            edges={item.name: item for item in edges},
        )


def canonical_hash(body: Json) -> str:
    """The SHA-256 of canonical JSON: sorted members, no spaces, no escaped characters."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def _columns(body: Json, name: str) -> tuple[Columns, ...]:
    return tuple(tuple(columns) for columns in body.get(name, ()))
