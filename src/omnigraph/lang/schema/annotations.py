"""The meaning of annotations, and where they are allowed.

Converts the annotations of one property or type to values and reports invalid ones. Consistency
with other properties and types is checked in ``resolve``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.errors import InvalidValue
from omnigraph.lang.schema.change.members import MemberHint
from omnigraph.lang.schema.parse.ast import Annotation, PropertyDecl, TypeKind, Value
from omnigraph.lang.schema.parse.parser import CONSTRAINT_WORDS
from omnigraph.lang.schema.parts import (
    METRICS,
    PARTITIONS_MAX,
    CustomAnnotation,
    Embed,
    VectorOptions,
)
from omnigraph.lang.syntax import Diagnostics, Span

SUGAR: Final = ("key", "unique", "index")
"""Constraints that may be written as an annotation of one property."""

RENAME_MEMBER: Final = "rename_member"
"""The annotation that renames an enum member; it may occur several times on a property."""

ONCE: Final = frozenset(
    (*SUGAR, "embed", "description", "instruction", "rename_from", "default", "vector")
)
"""Annotations with a meaning, each allowed once per declaration. All others are stored as they
are."""


@dataclass(frozen=True, slots=True)
class Hint:
    """``@rename_from``: the former name of a type or property."""

    old: str
    span: Span
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class PropertyNotes:
    """The values of the annotations of a property."""

    description: str | None = None
    embed: Embed | None = None
    embed_span: Span | None = None
    hint: Hint | None = None
    sugar: tuple[tuple[str, Span], ...] = ()
    custom: tuple[CustomAnnotation, ...] = ()
    default: Value | None = None
    members: tuple[MemberHint, ...] = ()
    vector: VectorOptions = field(default_factory=VectorOptions)


@dataclass(frozen=True, slots=True)
class TypeNotes:
    """The values of the annotations of a node or edge type."""

    description: str | None = None
    instruction: str | None = None
    hint: Hint | None = None
    custom: tuple[CustomAnnotation, ...] = ()


def property_notes(
    declaration: PropertyDecl, kind: TypeKind, diagnostics: Diagnostics
) -> PropertyNotes:
    known = _known(declaration.annotations, diagnostics)
    for word in ("range", "check"):
        _needs_arguments(declaration.annotations, word, diagnostics)
    if "instruction" in known:
        diagnostics.error(
            "S60",
            "`@instruction` cannot stand on a property",
            known["instruction"].span,
            remedy="Use `@description`, or put the instruction on the type.",
        )
    sugar = tuple((word, known[word].span) for word in SUGAR if word in known)
    embed = known.get("embed")
    return PropertyNotes(
        description=_text(known.get("description"), "S60", diagnostics),
        embed=_embed(embed, declaration, kind, diagnostics) if embed else None,
        embed_span=embed.span if embed else None,
        hint=_hint(known.get("rename_from"), diagnostics),
        sugar=sugar,
        custom=_custom(declaration.annotations),
        default=_default(known.get("default"), declaration, diagnostics),
        members=tuple(_members(declaration, diagnostics)),
        vector=_vector(known.get("vector"), declaration, diagnostics),
    )


def type_notes(annotations: Sequence[Annotation], diagnostics: Diagnostics) -> TypeNotes:
    known = _known(annotations, diagnostics)
    for annotation in annotations:
        word = annotation.name.text
        if word in CONSTRAINT_WORDS:
            diagnostics.error(
                "S19",
                f"`@{word}` cannot stand on a type",
                annotation.span,
                remedy=f"Put it on a property, or write `@{word}(…)` in the body.",
            )
        elif word == "embed":
            diagnostics.error(
                "S18",
                "`@embed` cannot stand on a type",
                annotation.span,
                remedy="Put it on the Vector property that holds the embedding.",
            )
        elif word == "default":
            _default_error(annotation.span, "`@default` cannot stand on a type", diagnostics)
        elif word == "vector":
            _vector_error(annotation.span, "`@vector` cannot stand on a type", diagnostics)
    return TypeNotes(
        description=_text(known.get("description"), "S60", diagnostics),
        instruction=_text(known.get("instruction"), "S60", diagnostics),
        hint=_hint(known.get("rename_from"), diagnostics),
        custom=_custom(annotations),
    )


def _known(annotations: Sequence[Annotation], diagnostics: Diagnostics) -> dict[str, Annotation]:
    """The annotations that have a meaning, by name; repeated ones are reported."""
    known: dict[str, Annotation] = {}
    for annotation in annotations:
        word = annotation.name.text
        if word == "card":
            diagnostics.error(
                "S25",
                "`@card` needs bounds and stands directly after the target of an edge",
                annotation.span,
                remedy="Write for example `edge Owns: Person -> Car @card(0..3)`.",
            )
        elif word in known:
            code = {"embed": "S18", "rename_from": "S61", "default": "S62", "vector": "S63"}.get(
                word, "S60"
            )
            diagnostics.error(
                "S19" if word in SUGAR else code,
                f"`@{word}` is given twice",
                annotation.span,
                remedy="Remove one of them.",
            )
        elif word in ONCE:
            known[word] = annotation
    return known


def _needs_arguments(
    annotations: Sequence[Annotation], word: str, diagnostics: Diagnostics
) -> None:
    code, example = {"range": ("S23", "age, 0..120"), "check": ("S24", 'code, "^[A-Z]+$"')}[word]
    for annotation in annotations:
        if annotation.name.text == word:
            diagnostics.error(
                code,
                f"`@{word}` needs arguments",
                annotation.span,
                remedy=f"Write it in the body, for example `@{word}({example})`.",
            )


def _text(annotation: Annotation | None, code: str, diagnostics: Diagnostics) -> str | None:
    """The string of a documentation annotation, which must not be blank."""
    if annotation is None:
        return None
    arguments = annotation.arguments
    if len(arguments) == 1 and isinstance(arguments[0].value, str) and arguments[0].value.strip():
        return arguments[0].value
    word = annotation.name.text
    diagnostics.error(
        code,
        f"`@{word}` takes exactly one text, and it must not be blank",
        annotation.span,
        remedy=f'Write `@{word}("…")`.',
    )
    return None


def _hint(annotation: Annotation | None, diagnostics: Diagnostics) -> Hint | None:
    old = _text(annotation, "S61", diagnostics)
    return None if annotation is None or old is None else Hint(old, annotation.span)


def _members(declaration: PropertyDecl, diagnostics: Diagnostics) -> Iterator[MemberHint]:
    """The renamed members of an enum; the former names are checked against the accepted schema."""
    for annotation in declaration.annotations:
        if annotation.name.text != RENAME_MEMBER:
            continue
        given = [argument.value for argument in annotation.arguments]
        words = [a.keyword.text if a.keyword else None for a in annotation.arguments]
        fits = words == [None, "to"] and all(isinstance(value, str) for value in given)
        if fits and declaration.type.type.enum is not None:
            yield MemberHint(str(given[0]), str(given[1]), annotation.span)
        else:
            diagnostics.error(
                "S61",
                "`@rename_member` stands on an enum and takes the old name and the new one",
                annotation.span,
                remedy='Write for example `@rename_member("done", to="closed")`.',
            )


def _embed(
    annotation: Annotation, declaration: PropertyDecl, kind: TypeKind, diagnostics: Diagnostics
) -> Embed | None:
    """The source and model of an embedding; ``resolve`` checks that the source exists."""
    if kind == "edge":
        diagnostics.error("S26", "`@embed` cannot stand on an edge", annotation.span)
        return None
    if not declaration.type.type.is_vector:
        message = f"`@embed` needs a Vector property, `{declaration.name.text}` is not one"
        _embed_error(annotation.span, message, diagnostics)
        return None
    source = annotation.arguments[0].value if annotation.arguments else None
    if not isinstance(source, str) or not source.strip():
        _embed_error(annotation.span, "`@embed` needs the name of a source property", diagnostics)
        return None
    model: str | None = None
    for argument in annotation.arguments[1:]:
        keyword = argument.keyword.text if argument.keyword else ""
        if keyword != "model":
            span = argument.keyword.span if argument.keyword else argument.span
            message = f"`@embed` has no argument `{keyword}`"
            _embed_error(span, message, diagnostics, hint="did you mean `model`?")
        elif model is not None or not isinstance(argument.value, str) or not argument.value.strip():
            _embed_error(argument.span, "`model` takes one text, once", diagnostics)
        else:
            model = argument.value
    return Embed(source, model)


def _embed_error(
    span: Span, message: str, diagnostics: Diagnostics, hint: str | None = None
) -> None:
    diagnostics.error(
        "S18",
        message,
        span,
        hint=hint,
        remedy='Write for example `vec: Vector(384) @embed(title, model="m")`.',
    )


def _default(
    annotation: Annotation | None, declaration: PropertyDecl, diagnostics: Diagnostics
) -> Value | None:
    """The default value, which must be a valid value of the property."""
    if annotation is None:
        return None
    kind = declaration.type.type
    name, arguments = declaration.name.text, annotation.arguments
    if kind.nullable or kind.is_list or kind.is_vector or kind.is_blob:
        message = f"`@default` needs a single required value, `{name}` is `{kind}`"
        _default_error(annotation.span, message, diagnostics)
    elif len(arguments) != 1 or arguments[0].keyword is not None:
        _default_error(annotation.span, "`@default` takes exactly one value", diagnostics)
    else:
        try:
            kind.accept(arguments[0].value)
        except InvalidValue as problem:
            message = f"the default of `{name}` does not fit: {problem.message}"
            _default_error(arguments[0].span, message, diagnostics)
        else:
            return arguments[0].value
    return None


def _default_error(span: Span, message: str, diagnostics: Diagnostics) -> None:
    remedy = "Write for example `level: I32 @default(1)`; without a default, use `?`."
    diagnostics.error("S62", message, span, remedy=remedy)


def _vector(
    annotation: Annotation | None, declaration: PropertyDecl, diagnostics: Diagnostics
) -> VectorOptions:
    """``@vector(metric, partitions=n)``."""
    if annotation is None:
        return VectorOptions()
    if not declaration.type.type.is_vector:
        message = f"`@vector` needs a Vector property, `{declaration.name.text}` is not one"
        _vector_error(annotation.span, message, diagnostics)
        return VectorOptions()
    first, *others = annotation.arguments or (None,)
    metric = next((m for m in METRICS if first is not None and m == first.value), None)
    if metric is None:
        message = f"`@vector` needs a metric: {', '.join(METRICS)}"
        _vector_error(annotation.span, message, diagnostics)
        return VectorOptions()
    partitions = 1
    for argument in others:
        given = argument.value
        whole = isinstance(given, int) and not isinstance(given, bool)
        keyword = argument.keyword.text if argument.keyword else ""
        if keyword != "partitions" or not whole or not 1 <= int(given) <= PARTITIONS_MAX:
            message = f"`@vector` takes partitions=1 to partitions={PARTITIONS_MAX}"
            _vector_error(argument.span, message, diagnostics)
        else:
            partitions = int(given)
    return VectorOptions(metric, partitions)


def _vector_error(span: Span, message: str, diagnostics: Diagnostics) -> None:
    remedy = "Write for example `vec: Vector(384) @vector(cosine, partitions=16) @index`."
    diagnostics.error("S63", message, span, remedy=remedy)


def _custom(annotations: Sequence[Annotation]) -> tuple[CustomAnnotation, ...]:
    """Annotations without a meaning to Omnigraph, sorted, so that their order has no effect."""
    found = []
    for annotation in annotations:
        word = annotation.name.text
        if word in (*ONCE, *CONSTRAINT_WORDS, "card", RENAME_MEMBER):
            continue
        value = annotation.arguments[0].value if annotation.arguments else None
        keywords = tuple(
            (argument.keyword.text, argument.value)
            for argument in annotation.arguments[1:]
            if argument.keyword
        )
        found.append(CustomAnnotation(word, value, keywords))
    return tuple(sorted(found, key=lambda item: (item.name, repr(item))))
