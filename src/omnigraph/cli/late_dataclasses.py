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
    return _dataclass(cls, **options) if options else _postponed(cls)


def _postponed(cls: Any) -> Any:
    own = dict(vars(cls))
    state: dict[str, bool] = {}

    def complete() -> None:
        with _completing:
            if not state:
                state["complete"] = True
                _take_over(cls, own)

    for name in _METHODS:
        if name not in own:
            setattr(cls, name, _method(cls, name, complete))
    for name in _ATTRIBUTES:
        setattr(cls, name, _Attribute(cls, name, complete))
    if "__hash__" not in own and "__eq__" not in own:
        cls.__hash__ = None
    return cls


def _take_over(cls: Any, own: dict[str, Any]) -> None:
    """Make a dataclass of a copy and take what it has got: nothing is missing in between."""
    body = {name: one for name, one in own.items() if name not in ("__dict__", "__weakref__")}
    made = vars(_dataclass(type(cls)(cls.__name__, cls.__bases__, body)))
    for name, one in made.items():
        if name not in ("__dict__", "__weakref__") and own.get(name) is not one:
            setattr(cls, name, one)
    for name in own.keys() - made.keys() - {"__dict__", "__weakref__"}:
        delattr(cls, name)


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
        return vars(self._cls)[self._name]
