"""Checks of arguments: a wrong type is an ``InvalidInput`` that names the argument.

Public methods pass every argument through one of these functions before they use it. They check
types, that strings are valid UTF-8, and that whole numbers fit into 64 bits. What a value means is
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
    """The value, if it is a string."""
    if not isinstance(value, str):
        raise _wrong_type(name, value, "a string")
    _check_utf8(name, value)
    return value


def optional_text(name: str, value: object) -> str | None:
    """The value, if it is a string or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong_type(name, value, "a string or None")
    return text(name, value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """The items of the value, if it is an iterable of strings but not itself a string."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _wrong_type(name, value, "a list of strings")
    items = tuple(value)
    _check_items(name, items)
    return items


def optional_texts(name: str, value: object) -> tuple[str, ...] | None:
    """The items of the value, if it is an iterable of strings, or None."""
    return None if value is None else texts(name, value)


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """The value, if it is a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise _wrong_type(name, value, "a mapping")
    _check_items(name, value)
    return value


def optional_mapping(name: str, value: object) -> Mapping[str, Any] | None:
    """The value, if it is a mapping whose keys are strings, or None."""
    return None if value is None else mapping(name, value)


def mappings(name: str, value: object) -> tuple[Mapping[str, Any], ...]:
    """The items of the value, if it is an iterable of mappings."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _wrong_type(name, value, "a list of mappings")
    return tuple(mapping(name, item) for item in value)


def whole(name: str, value: object) -> int:
    """The value, if it is a whole number that fits into 64 bits."""
    if not isinstance(value, int):
        raise _wrong_type(name, value, "a whole number")
    if not -_WHOLE_MAX - 1 <= value <= _WHOLE_MAX:
        raise InvalidInput(
            f"`{name}` does not fit into 64 bits",
            remedy=f"Pass a number from -2^63 to 2^63-1 as `{name}`.",
        )
    return value


def optional_whole(name: str, value: object) -> int | None:
    """The value, if it is a whole number that fits into 64 bits, or None."""
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
    """The truth value of the argument; refuses objects without one, for example arrays."""
    try:
        return bool(value)
    except Exception as error:
        raise _wrong_type(name, value, "True or False") from error


def path(name: str, value: object) -> str:
    """The argument, a string or a path object, as a string."""
    if isinstance(value, bytes) or not isinstance(value, str | os.PathLike):
        raise _wrong_type(name, value, "a string or a path")
    return text(name, value) if isinstance(value, str) else os.fspath(value)


def optional_path(name: str, value: object) -> str | None:
    """The argument, a string, a path object or None, as a string or None."""
    return None if value is None else path(name, value)


def instance(name: str, value: object, kind: type[T]) -> T:
    """The value, if it is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise _wrong_type(name, value, kind.__name__)
    return value


def optional_instance(name: str, value: object, kind: type[T]) -> T | None:
    """The value, if it is an instance of ``kind`` or None."""
    return None if value is None else instance(name, value, kind)


def optional_function(name: str, value: T) -> T:
    """The value, if it is callable or None."""
    if value is not None and not callable(value):
        raise _wrong_type(name, value, "a function or None")
    return value


def utf8_problem(value: str) -> str | None:
    """The lone surrogate that makes a string invalid UTF-8; None if it is valid."""
    if value.isascii():
        return None
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"it has {value[error.start]!a} at position {error.start}"
    return None


def _check_items(name: str, items: Iterable[object]) -> None:
    for item in items:
        if not isinstance(item, str):
            raise InvalidInput(
                f"`{name}` must contain only strings, but has an item of type "
                f"{type(item).__name__}",
                remedy=f"Pass only strings in `{name}`.",
            )
        _check_utf8(name, item)


def _check_utf8(name: str, value: str) -> None:
    problem = utf8_problem(value)
    if problem is not None:
        raise InvalidInput(
            f"`{name}` is not valid UTF-8: {problem}",
            remedy=f"Pass `{name}` as valid UTF-8, without lone surrogates.",
        )


def _wrong_type(name: str, value: object, expected: str) -> InvalidInput:
    return InvalidInput(
        f"`{name}` must be {expected}, not {type(value).__name__}",
        remedy=f"Pass {expected} as `{name}`.",
    )
