"""Dataclasses of other packages, completed when something is asked of them.

``dataclass`` compiles several methods for every class, and a package may have dozens of classes of
which a short command uses two. While :func:`completed_later` is in effect, a class only notes that
it is to become a dataclass; the first value, comparison or look at its fields makes it one. Nobody
can tell the difference but by the clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

_METHODS: Final = ("__init__", "__repr__", "__eq__")
_ATTRIBUTES: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")

_dataclass: Final = dataclasses.dataclass
_completing = RLock()


@contextmanager
def completed_later() -> Iterator[None]:
    """For the import of a package."""
    dataclasses.dataclass = _later
    try:
        yield
    finally:
        dataclasses.dataclass = _dataclass


def _later(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return lambda cls: _later(cls, **options)
    if options.keys() - {"frozen"}:
        return _dataclass(cls, **options)
    return _postponed(cls, options)


def _postponed(cls: Any, options: dict[str, Any]) -> Any:
    placed: dict[str, Any] = {}

    def complete() -> None:
        with _completing:
            for name in placed:
                delattr(cls, name)
            if placed:
                placed.clear()
                _dataclass(cls, **options)

    methods = (*_METHODS, "__hash__") if options.get("frozen") else _METHODS
    own = vars(cls)
    if "__hash__" not in own and "__eq__" not in own and "__hash__" not in methods:
        placed["__hash__"] = None
    placed |= {name: _method(cls, name, complete) for name in methods if name not in own}
    placed |= {name: _Attribute(cls, name, complete) for name in _ATTRIBUTES}
    for name, one in placed.items():
        setattr(cls, name, one)
    return cls


def _method(cls: Any, name: str, complete: Callable[[], None]) -> Callable[..., Any]:
    def first(self: Any, *given: Any, **named: Any) -> Any:
        complete()
        return getattr(cls, name)(self, *given, **named)

    return first


class _Attribute:
    """Stands in a class for something that a dataclass has."""

    def __init__(self, cls: Any, name: str, complete: Callable[[], None]) -> None:
        self._cls = cls
        self._name = name
        self._complete = complete

    def __get__(self, instance: object, owner: object) -> Any:
        self._complete()
        return getattr(self._cls, self._name)
