"""The steps of a schema change, as values.

``SchemaStep.to_json`` shows which fields each kind of step has. Names are the new ones.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal

from omnigraph.lang.schema.parse.ast import TypeKind
from omnigraph.model.types import PropertyType

StepKind = Literal[
    "add_type",
    "rename_type",
    "add_property",
    "rename_property",
    "change_property_type",
    "add_constraint",
    "drop_constraint",
    "extend_enum",
    "rename_enum_members",
    "change_cardinality",
    "change_interfaces",
    "update_type_metadata",
    "update_property_metadata",
    "drop_type",
    "drop_property",
    "undrop_type",
    "undrop_property",
    "unsupported_change",
]
DropMode = Literal["soft", "hard"]

_OF_PROPERTY: Final = frozenset(
    (
        "add_property",
        "rename_property",
        "change_property_type",
        "extend_enum",
        "rename_enum_members",
        "update_property_metadata",
        "drop_property",
        "undrop_property",
    )
)


@dataclass(frozen=True, slots=True)
class StepConstraint:
    """An added or removed constraint: its kind, its properties and its spelling in a schema."""

    kind: str
    properties: tuple[str, ...]
    text: str

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"kind": self.kind, "properties": list(self.properties)}
        return body if self.kind == "index" else {**body, "text": self.text}


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One step. Which of the optional fields are set follows from ``kind``."""

    _: KW_ONLY
    kind: StepKind
    type_kind: TypeKind
    type_name: str
    property_name: str | None = None
    renamed_from: str | None = None
    property_type: PropertyType | None = None
    added_values: tuple[str, ...] = ()
    renamed_values: tuple[tuple[str, str], ...] = ()
    old_type: PropertyType | None = None
    constraint: StepConstraint | None = None
    cardinality: tuple[str, str] | None = None
    """The allowed numbers of edges per source, before and after."""
    implements: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    """The new documentation, by annotation name."""
    mode: DropMode = "soft"
    validated: bool = False
    """Whether the step is possible only if existing entities satisfy it."""
    reason: str | None = None
    code: str | None = None

    @property
    def entity(self) -> str:
        """The type or property that the step changes, such as ``node:Person.age``."""
        owner = f"{self.type_kind}:{self.type_name}"
        return f"{owner}.{self.property_name}" if self.property_name else owner

    def to_json(self) -> dict[str, Any]:
        if self.kind == "unsupported_change":
            body: dict[str, Any] = {"kind": self.kind, "entity": self.entity, "reason": self.reason}
            return {**body, "code": self.code} if self.code else body
        told = {"kind": self.kind, "type_kind": self.type_kind, **self._fields()}
        return {**told, "validated": True} if self.validated else told

    def _fields(self) -> dict[str, Any]:
        owner = {"type_name": self.type_name}
        named = {**owner, "property_name": self.property_name}
        match self.kind:
            case "rename_type":
                return {"from": self.renamed_from, "to": self.type_name}
            case "rename_property":
                return {**owner, "from": self.renamed_from, "to": self.property_name}
            case "add_property" | "undrop_property":
                assert self.property_type is not None
                return {**named, "property_type": self.property_type.to_json()}
            case "change_property_type":
                assert self.old_type is not None
                assert self.property_type is not None
                types = {"from": self.old_type.to_json(), "to": self.property_type.to_json()}
                return {**named, **types}
            case "extend_enum":
                return {**named, "added_values": list(self.added_values)}
            case "rename_enum_members":
                pairs = [{"from": old, "to": new} for old, new in self.renamed_values]
                return {**named, "renamed_values": pairs}
            case "add_constraint" | "drop_constraint":
                assert self.constraint is not None
                return {**owner, "constraint": self.constraint.to_json()}
            case "change_cardinality":
                assert self.cardinality is not None
                return {**owner, "from": self.cardinality[0], "to": self.cardinality[1]}
            case "change_interfaces":
                return {**owner, "implements": list(self.implements)}
            case "update_type_metadata":
                return {"name": self.type_name, "annotations": self._annotations()}
            case "update_property_metadata":
                return {**named, "annotations": self._annotations()}
            case "drop_type":
                return {"name": self.type_name, "mode": self.mode}
            case "drop_property":
                return {**named, "mode": self.mode}
            case _:
                return {"name": self.type_name}

    def _annotations(self) -> list[dict[str, str]]:
        return [{"name": name, "value": value} for name, value in self.annotations]

    def describe(self) -> str:
        """The step in words."""
        what = f"{self.type_kind} type {self.type_name}"
        if self.kind in _OF_PROPERTY:
            what = f"property {self.type_name}.{self.property_name}"
        said = self._said(what)
        return f"{said} (if the stored data allows it)" if self.validated else said

    def _said(self, what: str) -> str:
        match self.kind:
            case "add_property":
                return f"add {what}: {self.property_type}"
            case "rename_type" | "rename_property":
                return f"rename {self.renamed_from} to {what}"
            case "change_property_type":
                return f"change {what} from {self.old_type} to {self.property_type}"
            case "extend_enum":
                return f"extend {what} by {', '.join(self.added_values)}"
            case "rename_enum_members":
                pairs = ", ".join(f"{old} to {new}" for old, new in self.renamed_values)
                return f"rename members of {what}: {pairs}"
            case "add_constraint" | "drop_constraint":
                return self._said_of_constraint(what)
            case "change_cardinality":
                assert self.cardinality is not None
                return f"change @card of {what} from {self.cardinality[0]} to {self.cardinality[1]}"
            case "change_interfaces":
                return f"let {what} implement {', '.join(self.implements) or 'no interface'}"
            case "update_type_metadata" | "update_property_metadata":
                return f"change the documentation of {what}"
            case "drop_type" | "drop_property":
                data = "kept in older versions" if self.mode == "soft" else "removed everywhere"
                return f"drop {what} (data {data})"
            case "undrop_type" | "undrop_property":
                return f"bring back {what}"
            case "unsupported_change":
                code = f"[{self.code}] " if self.code else ""
                return f"not supported: {code}{self.entity}: {self.reason}"
            case _:
                return f"add {what}"

    def _said_of_constraint(self, what: str) -> str:
        assert self.constraint is not None
        if self.constraint.kind == "index" and self.kind == "add_constraint":
            return f"declare an index on {what}: {', '.join(self.constraint.properties)}"
        verb = "add" if self.kind == "add_constraint" else "remove"
        return f"{verb} {self.constraint.text} of {what}"


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """All steps from one accepted schema to another, in the order they are applied."""

    steps: tuple[SchemaStep, ...]

    @property
    def supported(self) -> bool:
        return all(step.kind != "unsupported_change" for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}
