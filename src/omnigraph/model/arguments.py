"""Checks of arguments: a wrong type is an ``InvalidInput`` that names the argument.

Public methods pass every argument through one of these functions before they use it. They check
types, that texts are valid UTF-8, and that whole numbers fit into 64 bits. What a value means is
checked by the code that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from omnigraph.errors import InvalidInput

T = TypeVar("T")

_WHOLE_MAX: Final = 2**63 - 1


def text(name: str, value: object) -> str:
    """The value, if it is a text."""
    if not isinstance(value, str):
        raise _wrong_type(name, value, "text")
    _check_utf8(name, value)
    return value


def optional_text(name: str, value: object) -> str | None:
    """The value, if it is a text or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong_type(name, value, "text or None")
    return text(name, value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """The items of the value, if it is an iterable of texts; a text is not one."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _wrong_type(name, value, "a list")
    items = tuple(value)
    _check_items(name, items)
    return items


def optional_texts(name: str, value: object) -> tuple[str, ...] | None:
    """The items of the value, if it is an iterable of texts, or None."""
    return None if value is None else texts(name, value)


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """The value, if it is a mapping whose keys are texts."""
    if not isinstance(value, Mapping):
        raise _wrong_type(name, value, "a mapping")
    _check_items(name, value)
    return value


def optional_mapping(name: str, value: object) -> Mapping[str, Any] | None:
    """The value, if it is a mapping whose keys are texts, or None."""
    return None if value is None else mapping(name, value)


def mappings(name: str, value: object) -> tuple[Mapping[str, Any], ...]:
    """The items of the value, if it is an iterable of mappings."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _wrong_type(name, value, "a list of mappings")
    return tuple(mapping(name, item) for item in value)


def whole(name: str, value: object) -> int:
    """The value, if it is a whole number of 64 bits."""
    if not isinstance(value, int):
        raise _wrong_type(name, value, "a whole number")
    if not -_WHOLE_MAX - 1 <= value <= _WHOLE_MAX:
        raise InvalidInput(
            f"`{name}` does not fit into 64 bits", remedy=f"`{name}` must have 64 bits at most."
        )
    return value


def optional_whole(name: str, value: object) -> int | None:
    """The value, if it is a whole number of 64 bits or None."""
    return None if value is None else whole(name, value)


def number(name: str, value: object) -> float:
    """The value, if it is a number."""
    if isinstance(value, float):
        return value
    if not isinstance(value, int):
        raise _wrong_type(name, value, "a number")
    return whole(name, value)


def optional_number(name: str, value: object) -> float | None:
    """The value, if it is a number or None."""
    return None if value is None else number(name, value)


def truth(name: str, value: object) -> bool:
    """Whether the value is true; an array, for example, is neither true nor false."""
    try:
        return bool(value)
    except Exception as error:
        raise _wrong_type(name, value, "True or False") from error


def path(name: str, value: object) -> str:
    """The path or URI that a text or a path object spells."""
    if isinstance(value, bytes) or not isinstance(value, str | os.PathLike):
        raise _wrong_type(name, value, "text or a path")
    return text(name, value) if isinstance(value, str) else os.fspath(value)


def optional_path(name: str, value: object) -> str | None:
    """The path or URI that a text or a path object spells, or None."""
    return None if value is None else path(name, value)


def instance(name: str, value: object, kind: type[T]) -> T:
    """The value, if it is of a class."""
    if not isinstance(value, kind):
        raise _wrong_type(name, value, kind.__name__)
    return value


def optional_instance(name: str, value: object, kind: type[T]) -> T | None:
    """The value, if it is of a class or None."""
    return None if value is None else instance(name, value, kind)


def optional_function(name: str, value: T) -> T:
    """The value, if it can be called or is None."""
    if value is not None and not callable(value):
        raise _wrong_type(name, value, "a function or None")
    return value


def utf8_problem(value: str) -> str | None:
    """Where a text cannot be encoded as UTF-8 (a lone surrogate); None when it can."""
    if value.isascii():
        return None
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"it has {value[error.start]!a} at {error.start}"
    return None


def _check_items(name: str, items: Iterable[object]) -> None:
    for item in items:
        if not isinstance(item, str):
            raise InvalidInput(
                f"`{name}` contains {type(item).__name__}",
                remedy=f"`{name}` must contain texts only.",
            )
        _check_utf8(name, item)


def _check_utf8(name: str, value: str) -> None:
    problem = utf8_problem(value)
    if problem is not None:
        raise InvalidInput(
            f"`{name}` is not valid UTF-8: {problem}", remedy=f"Give `{name}` in UTF-8."
        )


def _wrong_type(name: str, value: object, expected: str) -> InvalidInput:
    return InvalidInput(
        f"`{name}` must be {expected}, not {type(value).__name__}",
        remedy=f"Pass {expected} as `{name}`.",
    )
