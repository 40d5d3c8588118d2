"""Random valid schemas, for tests of anything that takes one.

A generated schema is a small model that can be written down in many ways: other order, other
spelling of the same constraint, comments and white space in every gap. All of them mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

_WORDS: Final = (
    *("age", "body", "city", "code", "day", "email", "grade", "handle", "kind", "level", "mood"),
    *("name", "note", "owner", "price", "rank", "size", "slug", "tag", "title", "unit", "vec"),
    *("node", "edge", "interface", "enum", "implements", "_x", "_row_id", "true", "card"),
)
_TYPE_WORDS: Final = (
    *("Album", "Book", "City", "Device", "Event", "File", "Garden", "House", "Item", "Job"),
    *("Kiosk", "Lamp", "Museum", "Node", "Order", "Person", "Queue", "Room", "String", "Vector"),
)
_MEMBERS: Final = ("a", "b", "3d", "x-y", "-", "__", "Low", "true", "9", "a1-B2")
_SINGLE: Final = ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
_PATTERNS: Final = ("^[a-z]+$", "\\\\d{2,4}", "(?i)x|y", '\\"', "")
_COMMENTS: Final = ("// c\n", "/* c */", "/**/", "/* two\n lines */", "// node X {\n", "//\n")


@dataclass(slots=True)
class PropertyModel:
    """A property. ``sugar`` holds constraint words that may also be written in the body."""

    name: str
    type: str
    members: tuple[str, ...] = ()
    nullable: bool = False
    sugar: list[str] = field(default_factory=list)
    annotations: list[str] = field(default_factory=list)

    @property
    def single(self) -> bool:
        return self.type in _SINGLE or self.type == "enum"

    def type_text(self, rng: Random | None) -> str:
        members = list(self.members)
        if rng is not None:
            rng.shuffle(members)
        base = f"enum({', '.join(members)})" if self.type == "enum" else self.type
        return base + "?" if self.nullable else base


@dataclass(slots=True)
class TypeModel:
    """One declaration."""

    kind: str
    name: str
    header: str = ""
    annotations: list[str] = field(default_factory=list)
    implements: tuple[str, ...] = ()
    properties: list[PropertyModel] = field(default_factory=list)
    constraints: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    """Word, columns, and what follows the columns."""


@dataclass(slots=True)
class SchemaModel:
    """A whole schema that can be written in many ways."""

    types: list[TypeModel]

    def text(self, rng: Random | None = None) -> str:
        """The schema as text; with ``rng`` in another order and with noise in every gap."""
        types = list(self.types)
        if rng is not None:
            rng.shuffle(types)
        return "".join(_declaration(item, rng) for item in types)


def generate_schema(rng: Random, *, types_max: int = 6) -> SchemaModel:
    """A random valid schema. The same random state gives the same schema."""
    names = rng.sample(_TYPE_WORDS, rng.randint(0, types_max))
    cut = rng.randint(0, len(names) // 3)
    interfaces = [_interface(rng, name) for name in names[:cut]]
    nodes = [_node(rng, name, interfaces) for name in names[cut:]]
    edges = []
    if nodes:
        for name in rng.sample(_TYPE_WORDS, rng.randint(0, types_max)):
            edges.append(_edge(rng, name, [item.name for item in nodes]))
    return SchemaModel([*interfaces, *nodes, *edges])


def _interface(rng: Random, name: str) -> TypeModel:
    properties = _properties(rng, rng.sample(_WORDS, rng.randint(0, 3)))
    for item in properties:
        if item.single:
            item.sugar = [word for word in ("unique", "index") if rng.random() < 0.3]
    return TypeModel("interface", name, properties=properties)


def _node(rng: Random, name: str, interfaces: Sequence[TypeModel]) -> TypeModel:
    used = [rng.choice(interfaces)] if interfaces and rng.random() < 0.6 else []
    taken = {item.name for parent in used for item in parent.properties}
    words = [word for word in rng.sample(_WORDS, rng.randint(0, 7)) if word not in taken]
    properties = _properties(rng, words)
    model = TypeModel(
        "node",
        name,
        annotations=_type_annotations(rng),
        implements=tuple(item.name for item in used for _ in range(rng.randint(1, 2))),
        properties=properties,
    )
    _constrain(rng, model)
    keys = [item.name for item in properties if item.single and not item.nullable]
    if keys and rng.random() < 0.7:
        members = tuple(rng.sample(keys, min(len(keys), rng.randint(1, 3))))
        model.constraints.append(("key", members, ""))
    for item in properties:
        if item.type[0] in "IUF" and rng.random() < 0.4:
            bounds = rng.choice(("0..10", "..5", "-3.50..", "-1..1", "1..500.0"))
            model.constraints.append(("range", (item.name,), f", {bounds}"))
        if item.type in ("String", "enum") and rng.random() < 0.3:
            pattern = rng.choice(_PATTERNS)
            model.constraints.append(("check", (item.name,), f', "{pattern}"'))
    texts = [item.name for item in properties if item.type == "String"]
    for item in properties:
        if item.type.startswith("Vector") and texts and rng.random() < 0.5:
            model_name = rng.choice(("", ', model="m-1"'))
            item.annotations.append(f'@embed("{rng.choice(texts)}"{model_name})')
    return model


def _edge(rng: Random, name: str, nodes: Sequence[str]) -> TypeModel:
    card = rng.choice(("", "", " @card(0..2)", " @card(1..)", " @card(2..2)"))
    words = rng.sample(_WORDS, rng.randint(0, 3))
    model = TypeModel(
        "edge",
        name,
        header=f": {rng.choice(nodes)} -> {rng.choice(nodes)}{card}",
        annotations=_type_annotations(rng),
        properties=_properties(rng, words),
    )
    _constrain(rng, model)
    if rng.random() < 0.3:
        model.constraints.append(("unique", ("src", "dst"), ""))
    return model


def _properties(rng: Random, names: Sequence[str]) -> list[PropertyModel]:
    found = []
    for name in names:
        kind = rng.choice((*_SINGLE, "enum", "list", "vector", "Blob"))
        members: tuple[str, ...] = ()
        if kind == "enum":
            members = tuple(rng.sample(_MEMBERS, rng.randint(1, 4)))
            if rng.random() < 0.2:
                members += tuple(f"long-member-{i}" for i in range(rng.randint(2, 12)))
        elif kind == "list":
            kind = f"[{rng.choice(_SINGLE)}]"
        elif kind == "vector":
            kind = f"Vector({rng.randint(1, 4096)})"
        annotations = rng.sample(
            (
                rng.choice(('@description("d\\n\\"q\\"")', f'@description("{"long " * 12}")')),
                *('@owner("me", since=3)', "@flag", "@weight(1.50)"),
            ),
            rng.choice((0, 0, 1, 2)),
        )
        found.append(
            PropertyModel(name, kind, members, rng.random() < 0.5, annotations=annotations)
        )
    return found


def _type_annotations(rng: Random) -> list[str]:
    choices = ('@description("über")', '@instruction("use it")', "@team(core)", "@pinned(true)")
    return rng.sample(choices, rng.choice((0, 0, 1, 2)))


def _constrain(rng: Random, model: TypeModel) -> None:
    """Unique and index constraints, as annotations or in the body."""
    single = [item for item in model.properties if item.single]
    for item in single:
        item.sugar = [word for word in ("unique", "index") if rng.random() < 0.2]
    for word in ("unique", "index"):
        if single and rng.random() < 0.4:
            members = rng.sample(single, min(len(single), rng.randint(1, 3)))
            model.constraints.append((word, tuple(item.name for item in members), ""))


def _declaration(model: TypeModel, rng: Random | None) -> str:
    """A declaration as text; noise goes wherever the grammar has a gap."""
    annotations, properties = list(model.annotations), list(model.properties)
    constraints = list(model.constraints)
    lines: list[str] = []
    if rng is not None:
        rng.shuffle(annotations)
        rng.shuffle(properties)
    for item in properties:
        sugar = list(item.sugar)
        for word in item.sugar:
            if rng is not None and model.kind != "interface" and rng.random() < 0.5:
                sugar.remove(word)
                constraints.append((word, (item.name,), ""))
        notes = [*item.annotations, *(f"@{word}" for word in sugar)]
        if rng is not None:
            rng.shuffle(notes)
        lines.append(" ".join((f"{item.name}: {item.type_text(rng)}", *notes)))
    for word, columns, rest in constraints:
        shown = list(columns)
        if rng is not None:
            rng.shuffle(shown)
        lines.append(f"@{word}({', '.join(shown)}{rest})")
    if rng is not None:
        rng.shuffle(lines)
    implements = f" implements {', '.join(model.implements)}" if model.implements else ""
    head = f"{model.kind} {model.name}{model.header}"
    head = " ".join((head, *annotations)) + implements
    gap = _noise(rng)
    if model.kind == "edge" and not lines and (rng is None or rng.random() < 0.5):
        return f"{head}{gap}\n"
    return f"{head} {{{gap}" + "".join(f"\n  {line}{_noise(rng)}" for line in lines) + "\n}\n"


def _noise(rng: Random | None) -> str:
    """Nothing, white space or a comment."""
    if rng is None or rng.random() < 0.6:
        return ""
    return rng.choice(("\n\n", "\t", " \r\n", *(f" {comment}" for comment in _COMMENTS)))
