"""Arguments of public methods, checked against their annotations before anything else happens.

A wrong type is a typed error that names the argument, instead of whatever the first line that uses
it would raise. Checked is what is cheap: plain types, that texts are UTF-8 and whole numbers have
64 bits. What a value means is the business of the method. Annotations that name neither one of
``_TYPES`` nor a class of the function's own module are not looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import timedelta
from functools import wraps
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar

from omnigraph.errors import InvalidInput

P = ParamSpec("P")
Returned = TypeVar("Returned")
Class = TypeVar("Class", bound=type)

_NONE: Final = type(None)
_TYPES: Final[Mapping[str, type]] = {
    "None": _NONE,
    "str": str,
    "bytes": bytes,
    "int": int,
    "float": float,
    "bool": object,  # anything that is true or false
    "timedelta": timedelta,
    "os.PathLike": os.PathLike,
    "tuple": tuple,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "Iterable": Iterable,
}
_WORDS: Final = {
    "None": "None",
    "str": "text",
    "bytes": "bytes",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "timedelta": "a timedelta",
    "os.PathLike": "a path",
    "tuple": "a tuple",
    "Mapping": "a mapping",
    "Sequence": "a list",
    "Iterable": "a list",
}
_PART: Final = re.compile(r"([\w.]+)(?:\[(.*)\])?")
_WHOLE_MAX: Final = 2**63 - 1


class Expected:
    """What an annotation such as ``Sequence[str] | None`` asks for."""

    __slots__ = ("_of_texts", "_types", "_words")

    def __init__(self, types: Mapping[str, type], *, of_texts: bool) -> None:
        numbers = (int,) if "float" in types else ()
        self._types = (*types.values(), *numbers)
        self._words = " or ".join(_WORDS.get(name, name) for name in types)
        self._of_texts = of_texts

    @classmethod
    def of(cls, annotation: str, known: Mapping[str, Any]) -> Expected | None:
        """None when the annotation says something that is not checked here."""
        types: dict[str, type] = {}
        of_texts = False
        for part in _split(annotation):
            found = _PART.fullmatch(part.strip())
            kind: Any = None if found is None else _TYPES.get(found[1], known.get(found[1]))
            if found is None or not _is_class(kind):
                return None
            types[found[1]] = kind
            inner = (found[2] or "").partition(",")[0]
            of_texts = of_texts or (inner == "str" and kind is not os.PathLike)
        return cls(types, of_texts=of_texts)

    def check(self, name: str, value: Any) -> None:
        if value is None and _NONE in self._types:
            return
        if object in self._types:
            _check_truth(name, value)
            return
        letters = isinstance(value, str | bytes) and type(value) not in self._types
        if letters or not isinstance(value, self._types):
            raise InvalidInput(
                f"`{name}` is {type(value).__name__}", remedy=f"`{name}` must be {self._words}."
            )
        if isinstance(value, str):
            _check_text(name, value)
        elif isinstance(value, int):
            if not -_WHOLE_MAX - 1 <= value <= _WHOLE_MAX:
                raise InvalidInput(
                    f"`{name}` is too large a number", remedy=f"`{name}` must have 64 bits at most."
                )
        elif self._of_texts and isinstance(value, list | tuple | bytes | Set | Mapping):
            for item in value:
                if not isinstance(item, str):
                    raise InvalidInput(
                        f"`{name}` contains {type(item).__name__}",
                        remedy=f"`{name}` must contain texts only.",
                    )
                _check_text(name, item)


def _check_truth(name: str, value: Any) -> None:
    try:
        bool(value)
    except Exception as error:  # an array, for example
        raise InvalidInput(
            f"`{name}` is {type(value).__name__}", remedy=f"`{name}` must be True or False."
        ) from error


def _is_class(kind: Any) -> bool:
    """Whether something is a class that values can be asked for; some protocols are not."""
    if not isinstance(kind, type):
        return False
    try:
        isinstance(None, kind)
    except TypeError:
        return False
    return True


def _split(annotation: str) -> list[str]:
    """The alternatives of an annotation; a bar inside brackets belongs to what is inside."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append(annotation[start:at])
            start = at + 1
    return [*parts, annotation[start:]]


def utf8_problem(text: str) -> str | None:
    """Where a text cannot be UTF-8 (a lone surrogate); None when it can."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"it has {text[error.start]!a} at {error.start}"
    return None


def _check_text(name: str, text: str) -> None:
    problem = utf8_problem(text)
    if problem is not None:
        raise InvalidInput(
            f"`{name}` is not valid UTF-8: {problem}", remedy=f"Give `{name}` in UTF-8."
        )


def checked(function: Callable[P, Returned]) -> Callable[P, Returned]:
    """The function with its arguments checked."""
    inner: Any = function
    while hasattr(inner, "__wrapped__"):  # a context manager, for example
        inner = inner.__wrapped__
    code = inner.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    expected: dict[str, Expected] = {}
    for name in (*names, *code.co_varnames[len(names) : len(names) + code.co_kwonlyargcount]):
        found = Expected.of(str(inner.__annotations__.get(name, "")), inner.__globals__)
        if found is not None:
            expected[name] = found

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Returned:
        for name, value in zip(names, args, strict=False):
            if name in expected:
                expected[name].check(name, value)
        for name, value in kwargs.items():
            if name in expected:
                expected[name].check(name, value)
        return function(*args, **kwargs)

    return call


def checked_methods(cls: Class) -> Class:
    """A class whose public methods, inherited ones included, check their arguments."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base)
    for name, method in found.items():
        if not name.startswith("_") and isinstance(method, FunctionType):
            setattr(cls, name, checked(method))
    return cls
