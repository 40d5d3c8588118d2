"""A model of a graph whose schema changes: types and properties by identity, entities by value."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

WIDER = {"I32": "I64", "F32": "F64", "U32": "I64"}
SCALARS = ("I32", "I64", "F32", "U32", "String", "enum(x, y)")
FILLS: dict[str, Any] = {"I32": 7, "I64": 2**40, "F32": 0.5, "F64": 0.5, "U32": 7, "String": "s"}


@dataclass
class Prop:
    uid: int
    name: str
    type: str
    nullable: bool = True
    fill: Any = None
    default: Any = None

    @property
    def members(self) -> list[str]:
        """Of an enum, what it may be."""
        inside = self.type.removeprefix("enum(").removesuffix(")")
        return inside.split(", ") if self.type.startswith("enum(") else []

    def written(self) -> str:
        default = "" if self.default is None else f" @default({json.dumps(self.default)})"
        return f"{self.name}: {self.type}{'?' if self.nullable else ''}{default}"

    def value(self, rng: random.Random) -> Any:
        if self.nullable and rng.random() < 0.3:
            return None
        match self.type:
            case "I32" | "U32":
                return rng.randint(0, 99)
            case "I64":
                return rng.randint(0, 2**50)
            case "F32" | "F64":
                return rng.choice((0.5, 1.25, 4.0))
            case "String":
                return rng.choice(("red", "green", "blue"))
            case _:
                return rng.choice(self.members)


@dataclass
class Type:
    uid: int
    name: str
    props: dict[int, Prop] = field(default_factory=dict)
    rows: dict[str, dict[int, Any]] = field(default_factory=dict)
    """By id; each property by its identity. A dropped one keeps its values, as storage does."""
    hidden: dict[int, Prop] = field(default_factory=dict)

    def visible(self) -> dict[str, dict[str, Any]]:
        return {
            id: {"k": id, **{p.name: row.get(p.uid, p.fill) for p in self.props.values()}}
            for id, row in self.rows.items()
        }


@dataclass
class Edit:
    """One change of a schema: its text, the steps it must take, and what the text cannot say."""

    text: str
    steps: set[tuple[str, str]]
    backfill: dict[str, Any] = field(default_factory=dict)
    compute: dict[str, str] = field(default_factory=dict)
    undrop: tuple[str, ...] = ()
    refused: bool = False


@dataclass
class Model:
    """One state: everything that a branch holds."""

    types: dict[int, Type] = field(default_factory=dict)
    dropped: dict[int, Type] = field(default_factory=dict)

    def forget(self, uids: set[int], id: str) -> None:
        """As if an entity of some types had never been."""
        for uid in uids:
            for types in (self.types, self.dropped):
                if uid in types:
                    types[uid].rows.pop(id, None)

    def text(self, hints: dict[int, str] | None = None) -> str:
        found = hints or {}
        lines = []
        for owner in self.types.values():
            lines.append(f"node {owner.name}{_hint(found.get(owner.uid))} {{")
            lines.append("  k: String @key")
            for prop in owner.props.values():
                lines.append(f"  {prop.written()}{_hint(found.get(prop.uid))}")
            lines.append("}")
        return "\n".join(lines) + "\n"

    def visible(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {owner.name: owner.visible() for owner in self.types.values()}

    def copy(self) -> Model:
        return copy.deepcopy(self)


def _hint(old: str | None) -> str:
    if old is None or old.startswith("@"):
        return f" {old or ''}"
    return f' @rename_from("{old}")'


class Editor:
    """Makes random changes of a model, each as a schema text and the steps it stands for."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def uid(self) -> int:
        self.count += 1
        return self.count

    def start(self) -> Model:
        model = Model()
        for _ in range(2):
            owner = Type(self.uid(), f"T{self.count}")
            for _ in range(2):
                self._new_prop(owner)
            model.types[owner.uid] = owner
        return model

    def _new_prop(self, owner: Type, name: str | None = None) -> Prop:
        uid = self.uid()
        prop = Prop(uid, name or f"p{uid}", self.rng.choice(SCALARS))
        owner.props[uid] = prop
        return prop

    def edit(self, model: Model) -> Edit:
        """Change the model in place, unless the data forbids it."""
        owner = self.rng.choice(list(model.types.values()))
        makers = [
            self._add,
            self._add_filled,
            self._add_computed,
            self._add_default,
            self._rename,
            self._rename_member,
            self._drop,
            self._add_again,
            self._undrop,
            self._widen,
            self._relax,
            self._require,
            self._extend,
            self._add_type,
            self._rename_type,
            self._drop_type,
        ]
        while True:
            made = self.rng.choice(makers)(model, owner)
            if made is not None:
                return made

    # -- properties --------------------------------------------------------------------------------

    def _add(self, model: Model, owner: Type) -> Edit:
        prop = self._new_prop(owner)
        return Edit(model.text(), {("add_property", _of(owner, prop))})

    def _add_filled(self, model: Model, owner: Type) -> Edit:
        prop = self._new_prop(owner)
        prop.nullable = self.rng.random() < 0.5
        prop.fill = FILLS.get(prop.type, "x")
        given = {f"{owner.name}.{prop.name}": prop.fill}
        return Edit(model.text(), {("add_property", _of(owner, prop))}, given)

    def _add_computed(self, model: Model, owner: Type) -> Edit | None:
        source = self._some(owner, lambda p: p.type in ("I32", "U32", "I64", "String"))
        if source is None:
            return None
        prop = self._new_prop(owner)
        found = {id: row.get(source.uid, source.fill) for id, row in owner.rows.items()}
        if source.type == "String":
            prop.type, prop.nullable = "String", False
            text = f'coalesce({source.name}, "none") + "!"'
            values = {id: f"{value or 'none'}!" for id, value in found.items()}
        else:
            prop.type, text = "I64", f"({source.name} - 1) * 2"
            values = {id: None if v is None else (v - 1) * 2 for id, v in found.items()}
        for id, value in values.items():
            owner.rows[id][prop.uid] = value
        given = {f"{owner.name}.{prop.name}": text}
        return Edit(model.text(), {("add_property", _of(owner, prop))}, compute=given)

    def _add_default(self, model: Model, owner: Type) -> Edit:
        prop = self._new_prop(owner)
        prop.nullable = False
        prop.fill = prop.default = FILLS.get(prop.type, "x")
        return Edit(model.text(), {("add_property", _of(owner, prop))})

    def _rename_member(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner, lambda p: p.members)
        if prop is None:
            return None
        old, new = self.rng.choice(prop.members), f"m{self.uid()}"
        names = sorted(new if member == old else member for member in prop.members)
        prop.type = f"enum({', '.join(names)})"
        prop.fill = new if prop.fill == old else prop.fill
        steps = {("rename_enum_members", _of(owner, prop))}
        if prop.default == old:
            prop.default = new
            steps.add(("update_property_metadata", _of(owner, prop)))
        for row in owner.rows.values():
            if row.get(prop.uid) == old:
                row[prop.uid] = new
        return Edit(model.text({prop.uid: f'@rename_member("{old}", to="{new}")'}), steps)

    def _rename(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner)
        if prop is None:
            return None
        old, prop.name = prop.name, f"q{self.uid()}"
        return Edit(model.text({prop.uid: old}), {("rename_property", _of(owner, prop))})

    def _drop(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner)
        if prop is None:
            return None
        del owner.props[prop.uid]
        owner.hidden[prop.uid] = prop
        return Edit(model.text(), {("drop_property", _of(owner, prop))})

    def _add_again(self, model: Model, owner: Type) -> Edit | None:
        names = {p.name for p in owner.hidden.values()} - {p.name for p in owner.props.values()}
        if not names:
            return None
        prop = self._new_prop(owner, self.rng.choice(sorted(names)))
        return Edit(model.text(), {("add_property", _of(owner, prop))})

    def _undrop(self, model: Model, owner: Type) -> Edit | None:
        taken = {p.name for p in owner.props.values()}
        newest = {p.name: p for p in owner.hidden.values() if p.name not in taken}
        if not newest:
            return None
        prop = self.rng.choice(sorted(newest.values(), key=lambda p: p.uid))
        del owner.hidden[prop.uid]
        prop.nullable, prop.default = True, None
        owner.props[prop.uid] = prop
        step = ("undrop_property", _of(owner, prop))
        return Edit(model.text(), {step}, undrop=(f"{owner.name}.{prop.name}",))

    def _widen(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner, lambda p: p.type in WIDER)
        if prop is None:
            return None
        prop.type = WIDER[prop.type]
        return Edit(model.text(), {("change_property_type", _of(owner, prop))})

    def _relax(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner, lambda p: not p.nullable)
        if prop is None:
            return None
        steps = {("change_property_type", _of(owner, prop))}
        if prop.default is not None:
            steps.add(("update_property_metadata", _of(owner, prop)))
        prop.nullable, prop.default = True, None
        return Edit(model.text(), steps)

    def _require(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner, lambda p: p.nullable)
        if prop is None:
            return None
        prop.nullable = False
        text = model.text()
        refused = any(row.get(prop.uid, prop.fill) is None for row in owner.rows.values())
        prop.nullable = refused
        return Edit(text, {("change_property_type", _of(owner, prop))}, refused=refused)

    def _extend(self, model: Model, owner: Type) -> Edit | None:
        prop = self._some(owner, lambda p: len(p.members) == 2)
        if prop is None:
            return None
        prop.type = f"enum({', '.join(sorted([*prop.members, 'z']))})"
        return Edit(model.text(), {("extend_enum", _of(owner, prop))})

    def _some(self, owner: Type, fits: Any = lambda _: True) -> Prop | None:
        found = [prop for prop in owner.props.values() if fits(prop)]
        return self.rng.choice(found) if found else None

    # -- types -------------------------------------------------------------------------------------

    def _add_type(self, model: Model, owner: Type) -> Edit:
        gone = {t.name for t in model.dropped.values()} - {t.name for t in model.types.values()}
        uid = self.uid()
        again = bool(gone) and self.rng.random() < 0.5
        made = Type(uid, self.rng.choice(sorted(gone)) if again else f"T{uid}")
        self._new_prop(made)
        model.types[uid] = made
        return Edit(model.text(), {("add_type", f"node:{made.name}")})

    def _rename_type(self, model: Model, owner: Type) -> Edit:
        old, owner.name = owner.name, f"R{self.uid()}"
        return Edit(model.text({owner.uid: old}), {("rename_type", f"node:{owner.name}")})

    def _drop_type(self, model: Model, owner: Type) -> Edit | None:
        if len(model.types) < 2:
            return None
        model.dropped[owner.uid] = model.types.pop(owner.uid)
        return Edit(model.text(), {("drop_type", f"node:{owner.name}")})


def _of(owner: Type, prop: Prop) -> str:
    return f"node:{owner.name}.{prop.name}"
