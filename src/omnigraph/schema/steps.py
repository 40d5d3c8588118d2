"""The steps of a schema change, as data.

What each kind of step carries is what its JSON form shows; names are the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.schema.ast import TypeKind
from omnigraph.types import PropertyType

StepKind = Literal[
    "add_type",
    "rename_type",
    "add_property",
    "rename_property",
    "add_constraint",
    "extend_enum",
    "update_type_metadata",
    "update_property_metadata",
    "drop_type",
    "drop_property",
    "unsupported_change",
]
DropMode = Literal["soft", "hard"]

_OF_PROPERTY: Final = frozenset(
    ("add_property", "rename_property", "extend_enum", "update_property_metadata", "drop_property")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. Which of the optional fields are set follows from ``kind``."""

    kind: StepKind
    type_kind: TypeKind
    type_name: str
    property_name: str | None = None
    renamed_from: str | None = None
    property_type: PropertyType | None = None
    added_values: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    """Columns of the index that ``add_constraint`` declares."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Documentation as it will be, by annotation name."""
    mode: DropMode = "soft"
    reason: str | None = None
    code: str | None = None

    @property
    def entity(self) -> str:
        """What the step is about, such as ``node:Person.age``."""
        owner = f"{self.type_kind}:{self.type_name}"
        return f"{owner}.{self.property_name}" if self.property_name else owner

    def to_json(self) -> dict[str, Any]:
        if self.kind == "unsupported_change":
            body: dict[str, Any] = {"kind": self.kind, "entity": self.entity, "reason": self.reason}
            return {**body, "code": self.code} if self.code else body
        return {"kind": self.kind, "type_kind": self.type_kind, **self._fields()}

    def _fields(self) -> dict[str, Any]:
        owner = {"type_name": self.type_name}
        named = {**owner, "property_name": self.property_name}
        match self.kind:
            case "rename_type":
                return {"from": self.renamed_from, "to": self.type_name}
            case "rename_property":
                return {**owner, "from": self.renamed_from, "to": self.property_name}
            case "add_property":
                assert self.property_type is not None
                return {**named, "property_type": self.property_type.to_json()}
            case "extend_enum":
                return {**named, "added_values": list(self.added_values)}
            case "add_constraint":
                return {**owner, "constraint": {"kind": "index", "properties": list(self.index)}}
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
        match self.kind:
            case "add_property":
                return f"add {what}: {self.property_type}"
            case "rename_type" | "rename_property":
                return f"rename {self.renamed_from} to {what}"
            case "extend_enum":
                return f"extend {what} by {', '.join(self.added_values)}"
            case "add_constraint":
                return f"declare an index on {what}: {', '.join(self.index)}"
            case "update_type_metadata" | "update_property_metadata":
                return f"change the documentation of {what}"
            case "drop_type" | "drop_property":
                data = "kept in older versions" if self.mode == "soft" else "removed everywhere"
                return f"drop {what} (data {data})"
            case "unsupported_change":
                code = f"[{self.code}] " if self.code else ""
                return f"not supported: {code}{self.entity}: {self.reason}"
            case _:
                return f"add {what}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps from one accepted schema to another, in the order they are applied."""

    steps: tuple[Step, ...]

    @property
    def supported(self) -> bool:
        return all(step.kind != "unsupported_change" for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}
