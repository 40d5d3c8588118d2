"""The syntax of property types: scalars, lists, enums and vectors, each with an optional ``?``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from omnigraph.lang.schema.parse.ast import TypeUse
from omnigraph.lang.syntax import Token, TokenStream
from omnigraph.lang.syntax.lexer import INTEGER, NAME, TYPE_NAME
from omnigraph.model.types import F32, SCALARS, STRING, VECTOR_DIMENSIONS_MAX, PropertyType

TYPE_WORDS: Final = (*SCALARS, "Vector", "enum")
_ENUM_VALUE: Final = re.compile(r"[A-Za-z0-9_-]+")


def parse_type(stream: TokenStream) -> TypeUse:
    """A type at the current token."""
    start = stream.current
    if stream.accept("["):
        kind = _list(stream)
    elif stream.at_word("enum"):
        kind = _enum(stream)
    elif start.text == "Vector":
        kind = _vector(stream)
    else:
        kind = PropertyType(SCALARS[_scalar(stream).text])
    if stream.accept("?"):
        kind = replace(kind, nullable=True)
    return TypeUse(kind, stream.span_from(start))


def bounded_integer(stream: TokenStream, largest: int, code: str) -> int:
    """A whole number of at most ``largest``; a larger one is reported and replaced by it."""
    token = stream.expect(INTEGER)
    value = int(token.text)
    if value > largest:
        stream.diagnostics.error(code, f"{value} is more than {largest}", token.span)
        return largest
    return value


def _list(stream: TokenStream) -> PropertyType:
    """The type of a list, after its opening bracket."""
    if stream.at("[") or stream.current.text in ("enum", "Vector"):
        stream.try_for("a scalar type")
        stream.fail("a list holds scalars, not enums, vectors or lists", code="S11")
    kind = PropertyType(SCALARS[_scalar(stream).text], is_list=True)
    stream.expect("]")
    return kind


def _scalar(stream: TokenStream) -> Token:
    token = stream.current
    if token.text not in SCALARS:
        stream.try_for("a type")
        word = token.kind in (NAME, TYPE_NAME)
        stream.fail(
            f"unknown type `{token.text}`" if word else None,
            hint=stream.diagnostics.did_you_mean(token.text, TYPE_WORDS) if word else None,
            remedy=f"The types are {', '.join(SCALARS)}, Vector(n), enum(…) and [scalar].",
        )
    return stream.advance()


def _enum(stream: TokenStream) -> PropertyType:
    stream.advance()
    stream.expect("(")
    members = [_enum_value(stream)]
    while stream.accept(","):
        members.append(_enum_value(stream))
    stream.expect(")")
    seen: set[str] = set()
    for member in members:
        if member.text in seen:
            message = f"enum member `{member.text}` is given twice"
            stream.diagnostics.error("S12", message, member.span, remedy="Remove one of them.")
        seen.add(member.text)
    return PropertyType(STRING, enum=tuple(sorted(seen)))


def _enum_value(stream: TokenStream) -> Token:
    value = stream.accept_pattern(_ENUM_VALUE)
    if value is None:
        stream.try_for("an enum member of letters, digits, `_` and `-`")
        stream.fail()
    return value


def _vector(stream: TokenStream) -> PropertyType:
    stream.advance()
    stream.expect("(")
    place = stream.current.span
    dimensions = bounded_integer(stream, VECTOR_DIMENSIONS_MAX, "S10")
    if dimensions == 0:
        message = "the length of a vector must be greater than zero"
        stream.diagnostics.error("S10", message, place, remedy="Give the number of dimensions.")
    stream.expect(")")
    return PropertyType(F32, dimensions=dimensions)
