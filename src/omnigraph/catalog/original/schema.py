"""The schema of an original: read from its files, and derived for states before the last change.

The original stores one schema for the whole graph, in three files: the text, its compiled form and
the hash of that. What was declared before a schema change is not kept. The tables are, so the
schema of an older state is the stored one without what its tables do not have, with columns under
their older names where ``@rename_from`` tells them, and with columns that were dropped since.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from omnigraph.catalog.original.layout import (
    SCHEMA_COMPILED,
    SCHEMA_SOURCE,
    SCHEMA_STATE,
)
from omnigraph.errors import CorruptData, LanguageError, ObjectNotFound, OmnigraphError
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, Property, accept_schema
from omnigraph.lang.schema.render import render_schema
from omnigraph.model.ids import encode_ulid
from omnigraph.model.types import F32, SCALARS, PropertyType
from omnigraph.storage.objects.store import ObjectStore

_SPACE: Final = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_STATE_FORMAT: Final = 1
_ULID_BYTES: Final = 16


@dataclass(frozen=True)
class OriginalSchema:
    """The stored schema, and what its types and properties were called before."""

    accepted: AcceptedSchema
    type_names: Mapping[str, str]
    """Type keys by what they were before."""
    property_names: Mapping[tuple[str, str], str]
    """Properties by their type key and what they were called before."""
    seed: str

    def at(self, tables: Mapping[str, pa.Schema]) -> AcceptedSchema:
        """The schema of a state with these tables."""
        found = {key: self._type(key, columns) for key, columns in tables.items()}
        nodes = {t.name: t for t in found.values() if isinstance(t, NodeType)}
        edges = {
            t.name: replace(t, source=ends[0], target=ends[1])
            for t in found.values()
            if isinstance(t, EdgeType) and (ends := self._ends(t, nodes)) is not None
        }
        if dict(self.accepted.nodes) == nodes and dict(self.accepted.edges) == edges:
            return self.accepted
        derived = AcceptedSchema("", self.accepted.interfaces, nodes, edges)
        return replace(derived, source=render_schema(derived))

    def identities_of(self, key: str) -> tuple[str, str]:
        """The identity of a type of any state, and that of its lifetime."""
        owner = self._owner(key)
        if owner is None:
            return self._identity(key), self._identity(f"{key} lifetime")
        return owner.type_id, owner.incarnation

    def _owner(self, key: str) -> NodeType | EdgeType | None:
        """The declared type that a type of any state is, by its name then or now."""
        return self._declared(key) or self._declared(self.type_names.get(key, ""))

    def _ends(self, edge: EdgeType, nodes: Mapping[str, NodeType]) -> tuple[str, str] | None:
        """What an edge type connected when there were these node types; None when unknown."""
        source, target = (
            self._older_nodes.get(n, n) if n not in nodes else n for n in (edge.source, edge.target)
        )
        return (source, target) if {source, target} <= nodes.keys() else None

    @cached_property
    def _older_nodes(self) -> dict[str, str]:
        """What node types were called before, by the name they have."""
        hints = (
            (new.partition(":")[2], old.partition(":")) for old, new in self.type_names.items()
        )
        return {new: name for new, (kind, _, name) in hints if kind == "node"}

    def _type(self, key: str, stored: pa.Schema) -> NodeType | EdgeType | None:
        kind, _, name = key.partition(":")
        owner = self._owner(key)
        columns = {field.name: field for field in stored}
        for column in (EdgeType if kind == "edge" else NodeType).system_columns:
            columns.pop(column, None)
        if owner is None:
            if kind == "edge":
                return None  # of a dropped edge type nothing says what it connected
            properties = {c: self._dropped(key, columns[c]) for c in sorted(columns)}
            type_id, lifetime = self.identities_of(key)
            return NodeType(name=name, properties=properties, type_id=type_id, incarnation=lifetime)
        older = {new: old for (of, old), new in self.property_names.items() if of == owner.key}
        names = {
            declared: column
            for declared in owner.properties
            if (column := declared if declared in columns else older.get(declared, "")) in columns
        }
        properties = {
            column: _as_stored(owner.properties[declared], columns[column], names)
            or self._dropped(key, columns[column])
            for declared, column in names.items()
        }
        for column in columns.keys() - properties.keys():
            properties[column] = self._dropped(key, columns[column])
        return _as_it_was(owner, name, dict(sorted(properties.items())), names)

    def _declared(self, key: str) -> NodeType | EdgeType | None:
        kind, _, name = key.partition(":")
        return (self.accepted.nodes if kind == "node" else self.accepted.edges).get(name)

    def _dropped(self, key: str, field: pa.Field) -> Property:
        """A property that the stored schema does not have any more."""
        return Property(
            name=field.name,
            type=_type_of(field),
            property_id=self._identity(f"{key}.{field.name} {field.type}"),
        )

    def _identity(self, what: str) -> str:
        return identity(f"{self.seed} {what}")


def identity(text: str) -> str:
    """An identity that every reader of one graph derives in the same way."""
    digest = hashlib.sha256(text.encode()).digest()[:_ULID_BYTES]
    return encode_ulid(int.from_bytes(digest, "big"))


def identities(seed: str) -> Callable[[], str]:
    """Mints the identities of a schema: the same ones for the same seed."""
    made = 0

    def mint() -> str:
        nonlocal made
        made += 1
        return identity(f"{seed} {made}")

    return mint


def read_schema(objects: ObjectStore, seed: str) -> OriginalSchema:
    """The stored schema; raises when its files are missing, damaged or disagree."""
    text = _text(objects, SCHEMA_SOURCE)
    compiled = _compiled(objects)
    try:
        accepted = accept_schema(text, name=SCHEMA_SOURCE, mint=identities(seed))
    except LanguageError as problem:
        raise CorruptData(
            f"{SCHEMA_SOURCE} of {objects.location.uri} is not a schema: {problem.message}",
            details={"path": SCHEMA_SOURCE},
        ) from problem
    types: dict[str, str] = {}
    properties: dict[tuple[str, str], str] = {}
    if compiled is not None:
        try:
            _require_agreement(accepted, compiled)
            for key, item in _items(compiled):
                kind = key.partition(":")[0]
                types |= {f"{kind}:{old}": key for old in _renamed(item)}
                for declared in item["properties"]:
                    properties |= {(key, old): declared["name"] for old in _renamed(declared)}
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise _damaged(SCHEMA_COMPILED, f"a part is missing or odd: {problem!r}") from problem
    return OriginalSchema(accepted, types, properties, seed)


def _compiled(objects: ObjectStore) -> dict[str, Any] | None:
    """The compiled schema; None where the graph is older than compiled schemas."""
    there = [objects.exists(name) for name in (SCHEMA_COMPILED, SCHEMA_STATE)]
    if there == [False, False]:
        return None
    text = _text(objects, SCHEMA_COMPILED)
    try:
        compiled = json.loads(text)
        state = json.loads(_text(objects, SCHEMA_STATE))
        recorded, written = state["schema_ir_hash"], state["format_version"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _damaged(f"{SCHEMA_COMPILED} or {SCHEMA_STATE}", str(problem)) from problem
    if written != _STATE_FORMAT:
        raise _damaged(SCHEMA_STATE, f"it has the unknown format {written!r}")
    compact = _SPACE.sub(lambda found: found[1] or "", text)
    if recorded != f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}":
        raise _damaged(SCHEMA_COMPILED, f"it does not have the hash that {SCHEMA_STATE} records")
    if not isinstance(compiled, dict):
        raise _damaged(SCHEMA_COMPILED, "it is not an object")
    return compiled


def _require_agreement(accepted: AcceptedSchema, compiled: Mapping[str, Any]) -> None:
    """Raise when text and compiled form do not declare the same types and properties."""
    declared = {t.key: {p.name: p.type for p in t.properties.values()} for t in accepted.types()}
    recorded = {
        key: {p["name"]: _recorded_type(p["prop_type"]) for p in item["properties"]}
        for key, item in _items(compiled)
    }
    if declared != recorded:
        keys = sorted(k for k in declared.keys() | recorded if declared.get(k) != recorded.get(k))
        raise _damaged(SCHEMA_SOURCE, f"{SCHEMA_COMPILED} has another {', '.join(keys)}")


def _items(compiled: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The node and edge types of a compiled schema by type key."""
    for kind in ("node", "edge"):
        for item in compiled[f"{kind}s"]:
            yield f"{kind}:{item['name']}", item


def _recorded_type(body: Mapping[str, Any]) -> PropertyType:
    scalar = body["scalar"]
    name = f"Vector({scalar['Vector']})" if isinstance(scalar, dict) else scalar
    return PropertyType.from_json({**body, "scalar": name})


def _renamed(item: Mapping[str, Any]) -> list[str]:
    """What ``@rename_from`` of a declaration names."""
    return [a["value"] for a in item["annotations"] if a["name"] == "rename_from" and a["value"]]


def _text(objects: ObjectStore, name: str) -> str:
    try:
        return objects.get(name).decode()
    except ObjectNotFound as missing:
        raise _damaged(name, "it is missing") from missing
    except UnicodeDecodeError as problem:
        raise _damaged(name, "it is not UTF-8") from problem


def _damaged(name: str, problem: str) -> OmnigraphError:
    return CorruptData(
        f"the schema file {name} cannot be used: {problem}",
        remedy="Restore the schema files from a backup; nothing was changed.",
        details={"path": name},
    )


def _as_stored(declared: Property, field: pa.Field, names: Mapping[str, str]) -> Property | None:
    """A property as an older state stores it; None when its type was another one."""
    if not declared.type.is_blob and declared.type.arrow_type() != field.type:
        return None
    type_ = replace(declared.type, nullable=bool(field.nullable))
    embed = declared.embed
    if embed is not None and embed.source not in names:
        embed = None
    return replace(declared, name=field.name, type=type_, embed=embed)


def _as_it_was(
    owner: NodeType | EdgeType,
    name: str,
    properties: dict[str, Property],
    names: Mapping[str, str],
) -> NodeType | EdgeType:
    """A type under its older name, with these properties and the constraints they allow."""
    if name == owner.name and properties == dict(owner.properties):
        return owner

    def kept(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(names[c] for c in g) for g in groups if all(c in names for c in g))

    declared = {c: replace(p, inherited=False) for c, p in properties.items()}
    unique, indexes = kept(owner.unique), kept(owner.indexes)
    if isinstance(owner, EdgeType):
        return replace(owner, name=name, properties=declared, unique=unique, indexes=indexes)
    return replace(
        owner,
        name=name,
        properties=declared,
        unique=unique,
        indexes=indexes,
        key_columns=next(iter(kept((owner.key_columns,))), ()),
        ranges=tuple(
            replace(r, property=names[r.property]) for r in owner.ranges if r.property in names
        ),
        checks=tuple(
            replace(c, property=names[c.property]) for c in owner.checks if c.property in names
        ),
        implements=(),
    )


def _type_of(field: pa.Field) -> PropertyType:
    """The type of a column that no declaration describes."""
    type_, nullable = field.type, bool(field.nullable)
    if pa.types.is_fixed_size_list(type_) and type_.value_type == pa.float32():
        return PropertyType(F32, nullable=nullable, dimensions=type_.list_size)
    is_list = pa.types.is_list(type_)
    item = type_.value_type if is_list else type_
    for scalar in SCALARS.values():
        if scalar.family != "blob" and scalar.arrow_type() == item:
            return PropertyType(scalar, nullable=nullable, is_list=is_list)
    raise CorruptData(f"the column {field.name} has the type {type_}, which no property has")
