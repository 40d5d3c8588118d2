"""Three-way merge of schemas; types and properties are matched by id.

Every attribute (a name, a type, a constraint, the existence of a declaration) is merged on its own:
the side that changed it wins, and if both changed it differently, that is a conflict. The merged
schema must be expressible as a valid text. Reads no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from omnigraph.errors import LanguageError
from omnigraph.lang.schema.accept import accept_schema
from omnigraph.lang.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.parts import Check, Columns, Property, Range
from omnigraph.lang.schema.render import render_schema

_AnyType = InterfaceType | NodeType | EdgeType
_Same = TypeVar("_Same", InterfaceType, NodeType, EdgeType)
_FACTS = ("name", "description", "instruction", "annotations", "cardinality")
_PROPERTY_FACTS = (
    "name",
    "type",
    "description",
    "embed",
    "annotations",
    "inherited",
    "default",
    "vector",
    "fill",
    "computed",
    "renamed",
)


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """A merge of the schemas of base, source and target, and its conflicts."""

    base: AcceptedSchema
    source: AcceptedSchema
    target: AcceptedSchema
    conflicts: list[str] = field(default_factory=list)

    def run(self) -> AcceptedSchema | None:
        """The merged schema; None when there are conflicts."""
        interfaces = self._kind(lambda schema: schema.interfaces)
        nodes = self._kind(lambda schema: schema.nodes)
        edges = self._kind(lambda schema: schema.edges)
        names = {item.type_id: item.name for item in (*interfaces.values(), *nodes.values())}
        merged = AcceptedSchema(
            source="",
            interfaces=interfaces,
            nodes={n: self._implementing(item, names) for n, item in nodes.items()},
            edges={n: self._ended(item, names) for n, item in edges.items()},
        )
        if self.conflicts:
            return None
        return self._written(merged)

    def _written(self, merged: AcceptedSchema) -> AcceptedSchema | None:
        """The merged schema with its text; a text that the language refuses is a conflict."""
        text = render_schema(merged)
        try:
            accepted = accept_schema(text, previous=merged, mint=_nothing_new)
        except LanguageError as error:
            self.conflicts.append(f"the merged schema is not valid: {error.message}")
            return None
        if accepted.hash != merged.hash:
            self.conflicts.append("the merged schema cannot be written as a schema text")
            return None
        return replace(accepted, warnings=())

    def _kind(self, of: Callable[[AcceptedSchema], Mapping[str, _Same]]) -> dict[str, _Same]:
        base: dict[str, _Same] = _by_id(of(self.base))
        source: dict[str, _Same] = _by_id(of(self.source))
        target: dict[str, _Same] = _by_id(of(self.target))
        found: list[_Same] = []
        for identity in dict.fromkeys((*target, *source)):
            one = self._type(base.get(identity), source.get(identity), target.get(identity))
            if one is not None:
                found.append(one)
        by_name: dict[str, _Same] = {}
        for item in sorted(found, key=lambda item: item.name):
            if item.name in by_name:
                self.conflicts.append(f"{item.key} is a different type on each side")
            by_name[item.name] = item
        return by_name

    def _type(self, base: _Same | None, source: _Same | None, target: _Same | None) -> _Same | None:
        if source is None or target is None:
            left = source or target
            assert left is not None
            if base is None:
                return left
            if left != base:
                self.conflicts.append(f"{base.key}: one side dropped it, the other changed it")
            return None
        if base is None or source in (target, base):
            return target
        return source if target == base else self._merged(base, source, target)

    def _merged(self, base: _Same, source: _Same, target: _Same) -> _Same:
        key = target.key
        facts = self._facts(key, _FACTS, base, source, target)
        properties = self._properties(key, base, source, target)
        names = {item.property_id: name for name, item in properties.items()}
        names |= {column: column for column in target.endpoints}
        sides = [(item, _ids(item)) for item in (base, source, target)]

        def groups(name: str) -> tuple[Columns, ...]:
            kept = _three_way(*(_grouped(getattr(i, name), ids) for i, ids in sides))
            return tuple(sorted(_named(kept, names)))

        changes: dict[str, Any] = {
            **facts,
            "properties": properties,
            "unique": groups("unique"),
            "indexes": groups("indexes"),
        }
        if isinstance(target, InterfaceType):
            changes["keys"] = tuple(columns[0] for columns in groups("keys"))
        if isinstance(target, NodeType):
            changes["key_columns"] = tuple(
                name for columns in groups("key_columns") for name in columns
            )
            changes |= _rules(sides, names)
        return replace(target, **changes)

    def _properties(
        self, key: str, base: _AnyType, source: _AnyType, target: _AnyType
    ) -> dict[str, Property]:
        olds, theirs, ours = (
            {item.property_id: item for item in side.properties.values()}
            for side in (base, source, target)
        )
        found: dict[str, Property] = {}
        for identity in dict.fromkeys((*ours, *theirs)):
            old, their, our = olds.get(identity), theirs.get(identity), ours.get(identity)
            if their is None or our is None:
                left = their or our
                assert left is not None
                if old is not None:
                    if left != old:
                        what = f"{key}.{old.name}"
                        self.conflicts.append(f"{what}: one side dropped it, the other changed it")
                    continue
                one = left
            elif old is None or their == our:
                one = our
            else:
                where = f"{key}.{our.name}"
                one = replace(our, **self._facts(where, _PROPERTY_FACTS, old, their, our))
            if one.name in found:
                self.conflicts.append(f"{key}.{one.name} is a different property on each side")
            found[one.name] = one
        return dict(sorted(found.items()))

    def _facts(
        self, where: str, names: Iterable[str], base: Any, source: Any, target: Any
    ) -> dict[str, Any]:
        """Merge each named attribute of a type or property separately."""
        found = {}
        for name in names:
            if not hasattr(target, name):
                continue
            old, their, our = (getattr(side, name) for side in (base, source, target))
            if old != their != our != old:
                self.conflicts.append(f"{where}: both sides changed its {name}")
            found[name] = our if their == old else their
        return found

    def _implementing(self, item: NodeType, names: Mapping[str, str]) -> NodeType:
        sides = [
            frozenset(schema.interfaces[name].type_id for name in found.implements)
            for schema in (self.base, self.source, self.target)
            for found in schema.nodes.values()
            if found.type_id == item.type_id
        ]
        if len(sides) < 3:
            return item
        kept = _three_way(*sides)
        return replace(item, implements=tuple(sorted(names[i] for i in kept if i in names)))

    def _ended(self, item: EdgeType, names: Mapping[str, str]) -> EdgeType:
        ends = next(
            (schema.nodes[found.source].type_id, schema.nodes[found.target].type_id)
            for schema in (self.target, self.source)
            for found in schema.edges.values()
            if found.type_id == item.type_id
        )
        if not names.keys() >= set(ends):
            self.conflicts.append(f"{item.key} needs a node type that one side dropped")
            return item
        return replace(item, source=names[ends[0]], target=names[ends[1]])


def merge_schemas(
    base: AcceptedSchema, source: AcceptedSchema, target: AcceptedSchema
) -> tuple[AcceptedSchema | None, list[str]]:
    """The merged schema, or None and the conflicts."""
    work = SchemaMerge(base, source, target)
    return work.run(), work.conflicts


def _by_id(types: Mapping[str, _Same]) -> dict[str, _Same]:
    return {item.type_id: item for item in types.values()}


def _ids(item: _AnyType) -> dict[str, str]:
    return {name: declared.property_id for name, declared in item.properties.items()}


def _grouped(groups: Iterable[Columns | str], ids: Mapping[str, str]) -> frozenset[Any]:
    """Groups of columns as sets of property ids."""
    as_tuples = ((group,) if isinstance(group, str) else group for group in groups)
    return frozenset(frozenset(ids.get(name, name) for name in group) for group in as_tuples)


def _named(groups: Iterable[frozenset[str]], names: Mapping[str, str]) -> Iterator[Columns]:
    """Groups of property ids as column names; groups with a dropped property are left out."""
    for group in groups:
        found = [names[identity] for identity in group if identity in names]
        if len(found) == len(group):
            yield tuple(sorted(found))


def _rules(sides: list[tuple[Any, dict[str, str]]], names: Mapping[str, str]) -> dict[str, Any]:
    ranges = _three_way(
        *(frozenset((ids[r.property], r.low, r.high) for r in item.ranges) for item, ids in sides)
    )
    checks = _three_way(
        *(frozenset((ids[c.property], c.pattern) for c in item.checks) for item, ids in sides)
    )
    bounds = [Range(names[i], low, high) for i, low, high in ranges if i in names]
    patterns = [Check(names[i], pattern) for i, pattern in checks if i in names]
    return {
        "ranges": tuple(sorted(bounds, key=lambda r: (r.property, str(r)))),
        "checks": tuple(sorted(patterns, key=lambda c: (c.property, c.pattern))),
    }


def _three_way(base: frozenset[Any], source: frozenset[Any], target: frozenset[Any]) -> set[Any]:
    """The base set with the additions and removals of both sides."""
    return (set(source) & set(target)) | (set(source) - base) | (set(target) - base)


def _nothing_new() -> str:
    raise AssertionError("every id of a merged schema comes from one of its sides")
