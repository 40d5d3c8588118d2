"""What has to change to get from one accepted schema to another.

Compares by identity, so renames are renames. Reads no data: whether a step is supported depends on
the two schemas alone. The order is fixed: interfaces, nodes, edges, each by name; within a type
rename, structure, documentation, properties, constraints; what goes away comes last of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from omnigraph.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.schema.parts import Columns, Property
from omnigraph.schema.steps import DropMode, Plan, Step, StepKind
from omnigraph.syntax import quote

REQUIRED_WITHOUT_VALUES: Final = "OG-MF-103"
TYPE_CHANGE: Final = "OG-MF-106"

_AnyType = InterfaceType | NodeType | EdgeType
_Same = TypeVar("_Same", InterfaceType, NodeType, EdgeType)


def plan_schema(
    accepted: AcceptedSchema, desired: AcceptedSchema, *, allow_data_loss: bool = False
) -> Plan:
    """The plan from ``accepted`` to ``desired``, which was accepted with the former as previous.

    With ``allow_data_loss`` drops are hard: the dropped data does not stay in older versions.
    """
    mode: DropMode = "hard" if allow_data_loss else "soft"
    ids = (_type_ids(accepted), _type_ids(desired))
    return Plan(
        (
            *_kind(accepted.interfaces, desired.interfaces, ids, mode),
            *_kind(accepted.nodes, desired.nodes, ids, mode),
            *_kind(accepted.edges, desired.edges, ids, mode),
        )
    )


def _type_ids(schema: AcceptedSchema) -> dict[str, str]:
    """Identities by type key, for everything that can be referred to by name."""
    return {
        item.key: item.type_id
        for types in (schema.interfaces, schema.nodes)
        for item in types.values()
    }


def _kind(
    accepted: Mapping[str, _Same],
    desired: Mapping[str, _Same],
    ids: tuple[dict[str, str], dict[str, str]],
    mode: DropMode,
) -> Iterator[Step]:
    known = {item.type_id: item for item in accepted.values()}
    for after in desired.values():
        before = known.pop(after.type_id, None)
        if before is None:
            yield Step(kind="add_type", type_kind=after.kind, type_name=after.name)
        else:
            yield from _TypeDiff(before, after, ids, mode).steps()
    for before in known.values():
        if before.kind == "interface":
            yield Step(
                kind="unsupported_change",
                type_kind="interface",
                type_name=before.name,
                reason="an interface cannot be removed or renamed",
            )
        else:
            yield Step(kind="drop_type", type_kind=before.kind, type_name=before.name, mode=mode)


class _TypeDiff:
    """The steps from one type to what it becomes."""

    def __init__(
        self,
        before: _AnyType,
        after: _AnyType,
        ids: tuple[dict[str, str], dict[str, str]],
        mode: DropMode,
    ) -> None:
        self.before = before
        self.after = after
        self.ids_before, self.ids_after = ids
        self.mode: DropMode = mode
        self.old_properties = {item.property_id: item for item in before.properties.values()}
        self.new_ids = {item.property_id for item in after.properties.values()}

    def step(self, kind: StepKind, property_name: str | None = None, **fields: Any) -> Step:
        return Step(
            kind=kind,
            type_kind=self.after.kind,
            type_name=self.after.name,
            property_name=property_name,
            **fields,
        )

    def refuse(
        self, reason: str, property_name: str | None = None, code: str | None = None
    ) -> Step:
        return self.step("unsupported_change", property_name, reason=reason, code=code)

    def steps(self) -> Iterator[Step]:
        if self.before.name != self.after.name:
            yield self.step("rename_type", renamed_from=self.before.name)
        yield from self.structure()
        yield from self.type_metadata()
        for item in self.after.properties.values():
            before = self.old_properties.get(item.property_id)
            if before is None:
                yield self.added(item)
            else:
                yield from self.changed(before, item)
        yield from self.dropped()
        yield from self.constraints()

    # The type itself

    def structure(self) -> Iterator[Step]:
        before, after = self.before, self.after
        if isinstance(before, NodeType) and isinstance(after, NodeType):
            implemented = {self.ids_before[f"interface:{name}"] for name in before.implements}
            if implemented != {self.ids_after[f"interface:{name}"] for name in after.implements}:
                yield self.refuse("the set of implemented interfaces cannot change")
        if isinstance(before, EdgeType) and isinstance(after, EdgeType):
            for end in ("source", "target"):
                old, new = getattr(before, end), getattr(after, end)
                if self.ids_before[f"node:{old}"] != self.ids_after[f"node:{new}"]:
                    yield self.refuse(f"the {end} cannot change from {old} to {new}")
            if before.cardinality != after.cardinality:
                yield self.refuse(
                    f"@card cannot change from {before.cardinality} to {after.cardinality}"
                )

    def type_metadata(self) -> Iterator[Step]:
        before, after = self.before, self.after
        if isinstance(before, InterfaceType) or isinstance(after, InterfaceType):
            return
        old, new = _documentation(before), _documentation(after)
        if old != new:
            yield self.step("update_type_metadata", annotations=new)
        if before.annotations != after.annotations:
            yield self.refuse(_annotation_change(before, after))

    # Properties

    def added(self, item: Property) -> Step:
        if item.type.nullable:
            return self.step("add_property", item.name, property_type=item.type)
        return self.refuse(
            "a new required property needs a value for the entities that exist already",
            item.name,
            REQUIRED_WITHOUT_VALUES,
        )

    def changed(self, before: Property, after: Property) -> Iterator[Step]:
        name = after.name
        if before.name != name:
            yield self.step("rename_property", name, renamed_from=before.name)
        yield from self.type_change(before, after)
        if before.description != after.description:
            notes = _noted(description=after.description)
            yield self.step("update_property_metadata", name, annotations=notes)
        if before.annotations != after.annotations:
            yield self.refuse(_annotation_change(before, after), name)
        if self.embedding(before, self.before) != self.embedding(after, self.after):
            yield self.refuse("the source or model of @embed cannot change", name)
        if before.inherited != after.inherited:
            ways = ("declared by the type", "inherited from an interface")
            was, will = (ways[item.inherited] for item in (before, after))
            yield self.refuse(f"it was {was} and cannot become {will}", name)

    def type_change(self, before: Property, after: Property) -> Iterator[Step]:
        if before.type == after.type:
            return
        old, new = before.type.enum, after.type.enum
        if old and new and before.type.nullable == after.type.nullable and set(old) <= set(new):
            added = tuple(value for value in new if value not in old)
            yield self.step("extend_enum", after.name, added_values=added)
        else:
            yield self.refuse(
                f"the type cannot change from {before.type} to {after.type}",
                after.name,
                TYPE_CHANGE,
            )

    def embedding(self, item: Property, owner: _AnyType) -> tuple[str, str | None] | None:
        """The source of an embedding by identity, and its model."""
        if item.embed is None:
            return None
        source = owner.properties.get(item.embed.source)
        return (source.property_id if source else item.embed.source, item.embed.model)

    def dropped(self) -> Iterator[Step]:
        for item in self.before.properties.values():
            if item.property_id not in self.new_ids:
                yield self.step("drop_property", item.name, mode=self.mode)

    # Constraints

    def constraints(self) -> Iterator[Step]:
        """Constraints compared by the identities of their members.

        One with a dropped member goes away with it, except a key: ids are made of it.
        """
        old, new = _constraints(self.before), _constraints(self.after)
        for identity, (kind, columns, shown) in old.items():
            if identity in new:
                continue
            declared = [self.before.properties.get(name) for name in columns]
            gone = any(item and item.property_id not in self.new_ids for item in declared)
            if kind == "key" or not gone:
                yield self.refuse(f"the constraint {shown} cannot be removed")
        for identity, (kind, columns, shown) in new.items():
            if identity in old:
                continue
            if kind == "index":
                yield self.step("add_constraint", index=columns)
            else:
                yield self.refuse(f"the constraint {shown} cannot be added to an existing type")


def _constraints(item: _AnyType) -> dict[object, tuple[str, Columns, str]]:
    """By identity: kind, column names, and how the constraint is written."""
    found: dict[object, tuple[str, Columns, str]] = {}

    def add(kind: str, columns: Columns, extra: object = None, shown: str = "") -> None:
        members = frozenset(
            item.properties[name].property_id if name in item.properties else name
            for name in columns
        )
        text = f"@{kind}({', '.join(columns)}{shown})"
        found[(kind, members, extra)] = (kind, columns, text)

    keys = [item.key_columns] if isinstance(item, NodeType) and item.key_columns else []
    if isinstance(item, InterfaceType):
        keys = [(name,) for name in item.keys]
    for columns in keys:
        add("key", columns)
    for columns in item.unique:
        add("unique", columns)
    for columns in item.indexes:
        if columns not in keys:
            add("index", columns)
    if isinstance(item, NodeType):
        for bounds in item.ranges:
            add("range", (bounds.property,), (bounds.low, bounds.high), f", {bounds}")
        for check in item.checks:
            add("check", (check.property,), check.pattern, f", {quote(check.pattern)}")
    return found


def _documentation(item: NodeType | EdgeType) -> tuple[tuple[str, str], ...]:
    return _noted(description=item.description, instruction=item.instruction)


def _noted(**notes: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in notes.items() if text is not None)


def _annotation_change(
    before: NodeType | EdgeType | Property, after: NodeType | EdgeType | Property
) -> str:
    differing = set(before.annotations) ^ set(after.annotations)
    names = sorted({f"@{item.name}" for item in differing})
    return f"the annotation {', '.join(names)} cannot change"
