"""The plan of a schema change: the steps from one accepted schema to another.

Types and properties are matched by id, so a rename is one step. Reads no data: whether a step is
supported depends on the two schemas alone; a step that also depends on the stored data is marked
``validated``. The order is fixed: interfaces, nodes, edges, each by name; within a type rename,
structure, documentation, properties, constraints; drops come last within their kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from omnigraph.lang.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.change.members import renamed_values
from omnigraph.lang.schema.change.steps import (
    DropMode,
    SchemaPlan,
    SchemaStep,
    StepConstraint,
    StepKind,
)
from omnigraph.lang.schema.parts import Columns, EdgeCardinality, Property, VectorOptions
from omnigraph.lang.syntax import quote
from omnigraph.model.types import PropertyType

REQUIRED_WITHOUT_VALUES: Final = "OG-MF-103"
TYPE_CHANGE: Final = "OG-MF-106"
WIDENINGS: Final = frozenset(
    (("I32", "I64"), ("U32", "U64"), ("U32", "I64"), ("F32", "F64")),
)
"""The number types that each number type can be widened to without changing a value."""

_AnyType = InterfaceType | NodeType | EdgeType
_Same = TypeVar("_Same", InterfaceType, NodeType, EdgeType)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a plan depends on besides the two schemas.

    ``filled`` are new properties (such as ``node:Person.age``) for which a value was given;
    ``empty`` the keys of accepted types without entities; ``revived`` the dropped types and
    properties that are restored, by id.
    """

    mode: DropMode = "soft"
    filled: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    revived: Mapping[str, NodeType | EdgeType | Property] = field(default_factory=dict)


def plan_schema(
    accepted: AcceptedSchema,
    desired: AcceptedSchema,
    *,
    allow_data_loss: bool = False,
    facts: PlanFacts | None = None,
) -> SchemaPlan:
    """The plan from ``accepted`` to ``desired``, whose ids were assigned relative to ``accepted``.

    With ``allow_data_loss`` drops are hard: the dropped data does not stay in older versions.
    """
    known = facts or PlanFacts("hard" if allow_data_loss else "soft")
    revived = {t.key: t.type_id for t in known.revived.values() if not isinstance(t, Property)}
    ids = ({**_type_ids(accepted), **revived}, _type_ids(desired))
    return SchemaPlan(
        (
            *_kind(accepted.interfaces, desired.interfaces, ids, known),
            *_kind(accepted.nodes, desired.nodes, ids, known),
            *_kind(accepted.edges, desired.edges, ids, known),
        )
    )


def _type_ids(schema: AcceptedSchema) -> dict[str, str]:
    """The ids of interfaces, node types and edge types by type key."""
    return {
        item.key: item.type_id
        for types in (schema.interfaces, schema.nodes)
        for item in types.values()
    }


def _kind(
    accepted: Mapping[str, _Same],
    desired: Mapping[str, _Same],
    ids: tuple[dict[str, str], dict[str, str]],
    facts: PlanFacts,
) -> Iterator[SchemaStep]:
    known = {item.type_id: item for item in accepted.values()}
    for after in desired.values():
        before: _AnyType | None = known.pop(after.type_id, None)
        if before is None:
            revived = facts.revived.get(after.type_id)
            kind: StepKind = "add_type" if revived is None else "undrop_type"
            yield SchemaStep(kind=kind, type_kind=after.kind, type_name=after.name)
            before = None if isinstance(revived, Property) else revived
        if before is not None:
            yield from _TypeDiff(before, after, ids, facts).steps()
    for gone in known.values():
        yield SchemaStep(
            kind="drop_type", type_kind=gone.kind, type_name=gone.name, mode=facts.mode
        )


class _TypeDiff:
    """The steps from one version of a type to another."""

    def __init__(
        self,
        before: _AnyType,
        after: _AnyType,
        ids: tuple[dict[str, str], dict[str, str]],
        facts: PlanFacts,
    ) -> None:
        self.before = before
        self.after = after
        self.ids_before, self.ids_after = ids
        self.facts = facts
        self.old_properties = {item.property_id: item for item in before.properties.values()}
        self.new_ids = {item.property_id for item in after.properties.values()}

    def step(self, kind: StepKind, property_name: str | None = None, **fields: Any) -> SchemaStep:
        return SchemaStep(
            kind=kind,
            type_kind=self.after.kind,
            type_name=self.after.name,
            property_name=property_name,
            **fields,
        )

    def refuse(
        self, reason: str, property_name: str | None = None, code: str | None = None
    ) -> SchemaStep:
        return self.step("unsupported_change", property_name, reason=reason, code=code)

    def steps(self) -> Iterator[SchemaStep]:
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

    def structure(self) -> Iterator[SchemaStep]:
        before, after = self.before, self.after
        if isinstance(before, NodeType) and isinstance(after, NodeType):
            # Interfaces are compared by id; one that was removed has only a name.
            implemented = {self.ids_before.get(f"interface:{name}") for name in before.implements}
            if implemented != {self.ids_after[f"interface:{name}"] for name in after.implements}:
                yield self.step("change_interfaces", implements=after.implements)
        if isinstance(before, EdgeType) and isinstance(after, EdgeType):
            for end in ("source", "target"):
                old, new = getattr(before, end), getattr(after, end)
                if self.ids_before.get(f"node:{old}") != self.ids_after[f"node:{new}"]:
                    yield self.refuse(f"the {end} cannot change from {old} to {new}")
            if before.cardinality != after.cardinality:
                shown = (str(before.cardinality), str(after.cardinality))
                stricter = is_stricter(before.cardinality, after.cardinality)
                yield self.step("change_cardinality", cardinality=shown, validated=stricter)

    def type_metadata(self) -> Iterator[SchemaStep]:
        before, after = self.before, self.after
        if isinstance(before, InterfaceType) or isinstance(after, InterfaceType):
            return
        old, new = _documentation(before), _documentation(after)
        if old != new:
            yield self.step("update_type_metadata", annotations=new)
        if before.annotations != after.annotations:
            yield self.refuse(_annotation_change(before, after))

    def added(self, item: Property) -> SchemaStep:
        needs_value = not item.type.nullable and self.after.kind != "interface"
        revived = self.facts.revived.get(item.property_id)
        if isinstance(revived, Property):
            if revived.type.required() != item.type.required():
                return self.refuse(
                    f"it was {revived.type} when it was dropped and cannot be restored as"
                    f" {item.type}",
                    item.name,
                    TYPE_CHANGE,
                )
            return self.step(
                "undrop_property", item.name, property_type=item.type, validated=needs_value
            )
        given = f"{self.after.key}.{item.name}" in self.facts.filled
        valued = given or item.default is not None
        if needs_value and not valued and self.before.key not in self.facts.empty:
            return self.refuse(
                "a new required property needs a value for existing entities",
                item.name,
                REQUIRED_WITHOUT_VALUES,
            )
        return self.step("add_property", item.name, property_type=item.type)

    def changed(self, before: Property, after: Property) -> Iterator[SchemaStep]:
        name = after.name
        if before.name != name:
            yield self.step("rename_property", name, renamed_from=before.name)
        yield from self.type_change(before, after)
        if _property_metadata(before) != _property_metadata(after):
            yield self.step("update_property_metadata", name, annotations=_property_metadata(after))
        if before.annotations != after.annotations:
            yield self.refuse(_annotation_change(before, after), name)
        if self.embedding(before, self.before) != self.embedding(after, self.after):
            yield self.refuse("the source or model of @embed cannot change", name)

    def type_change(self, before: Property, after: Property) -> Iterator[SchemaStep]:
        renamed = renamed_values(before, after)
        if renamed:
            pairs = tuple(sorted(renamed.items()))
            yield self.step("rename_enum_members", after.name, renamed_values=pairs)
            members = (renamed.get(member, member) for member in before.type.enum or ())
            before = replace(before, type=replace(before.type, enum=tuple(sorted(members))))
        if before.type == after.type:
            return
        old, new = before.type.enum, after.type.enum
        if old and new and before.type.nullable == after.type.nullable and set(old) <= set(new):
            added = tuple(value for value in new if value not in old)
            yield self.step("extend_enum", after.name, added_values=added)
        elif self.may_become(before.type, after.type, after.name):
            yield self.step(
                "change_property_type",
                after.name,
                old_type=before.type,
                property_type=after.type,
                validated=is_narrower(before.type, after.type),
            )
        else:
            yield self.refuse(
                f"the type cannot change from {before.type} to {after.type}",
                after.name,
                TYPE_CHANGE,
            )

    def may_become(self, old: PropertyType, new: PropertyType, name: str) -> bool:
        """Whether stored values can be kept: nullability or enum members differ, or it is wider."""
        same_form = (old.is_list, old.is_vector) == (new.is_list, new.is_vector)
        if old.enum is not None or new.enum is not None:
            return same_form and old.enum is not None and new.enum is not None
        if old.required() == new.required():
            return True
        owner = self.after
        in_key = isinstance(owner, NodeType) and name in owner.key_columns
        if in_key and old.scalar.name == "F32":
            return False  # ids contain the shortest spelling, which depends on the width
        return same_form and (old.scalar.name, new.scalar.name) in WIDENINGS

    def embedding(self, item: Property, owner: _AnyType) -> tuple[str, str | None] | None:
        """The id of the source property of an embedding, and its model."""
        if item.embed is None:
            return None
        source = owner.properties.get(item.embed.source)
        return (source.property_id if source else item.embed.source, item.embed.model)

    def dropped(self) -> Iterator[SchemaStep]:
        for item in self.before.properties.values():
            if item.property_id not in self.new_ids:
                yield self.step("drop_property", item.name, mode=self.facts.mode)

    def constraints(self) -> Iterator[SchemaStep]:
        """Constraints, compared by the ids of their members.

        Dropping a property also drops its constraints, except a key, from which ids are computed.
        """
        old, new = _constraints(self.before), _constraints(self.after)
        for identity, (kind, columns, shown) in old.items():
            if identity in new:
                continue
            declared = [self.before.properties.get(name) for name in columns]
            gone = any(item and item.property_id not in self.new_ids for item in declared)
            if kind == "key":
                yield self.refuse(f"the constraint {shown} cannot be removed")
            elif not gone:
                stated = StepConstraint(kind, columns, shown)
                yield self.step("drop_constraint", constraint=stated)
        for identity, (kind, columns, shown) in new.items():
            if identity in old:
                continue
            if kind == "key":
                yield self.refuse(f"the constraint {shown} cannot be added to an existing type")
            else:
                stated = StepConstraint(kind, columns, shown)
                checked = kind != "index" and self.after.kind != "interface"
                yield self.step("add_constraint", constraint=stated, validated=checked)


def is_narrower(old: PropertyType, new: PropertyType) -> bool:
    """Whether some value of the old type is not allowed by the new one."""
    members = old.enum is not None and not set(old.enum) <= set(new.enum or ())
    return members or (old.nullable and not new.nullable)


def is_stricter(old: EdgeCardinality, new: EdgeCardinality) -> bool:
    """Whether some number of edges that was allowed is not allowed any more."""
    fewer = new.high is not None and (old.high is None or new.high < old.high)
    return fewer or new.low > old.low


def _constraints(item: _AnyType) -> dict[object, tuple[str, Columns, str]]:
    """Kind, column names and spelling of each constraint, by kind and the ids of its members."""
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


def _property_metadata(item: Property) -> tuple[tuple[str, str], ...]:
    """The annotations of a property that do not affect stored values."""
    vector = None
    if item.vector != VectorOptions():
        vector = f"{item.vector.metric}, partitions={item.vector.partitions}"
    default = None if item.default is None else str(item.default)
    return _noted(description=item.description, default=default, vector=vector)


def _noted(**notes: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in notes.items() if text is not None)


def _annotation_change(
    before: NodeType | EdgeType | Property, after: NodeType | EdgeType | Property
) -> str:
    differing = set(before.annotations) ^ set(after.annotations)
    names = sorted({f"@{item.name}" for item in differing})
    return f"the annotation {', '.join(names)} cannot change"
