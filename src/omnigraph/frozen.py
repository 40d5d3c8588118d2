"""Values: frozen, slotted dataclasses that cost next to nothing until many of them are made.

``dataclass`` compiles six methods for every class at import. A short command imports some hundred
and fifty classes and makes a few values of a third of them, so that compiling took longer than
answering. ``@frozen`` shares all methods but ``__init__``, and compiles that one for classes of
which several values are made. What works with dataclasses works here, too: ``fields``, ``replace``,
``field``, ``KW_ONLY``, patterns, pickling. A class that inherits from one of these is decorated
like it. It must never grow features that ``dataclass`` has not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform

COMPILED_AFTER: Final = 12
"""Values of one class: to compile ``__init__`` takes as long as to make so many without."""

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_T]) -> type[_T]:
    """Make a class a frozen, slotted dataclass."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass composes one, at length
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    found = fields(made)
    compared = _getter([item.name for item in found if item.compare])
    shown = [item.name for item in found if item.repr]
    fill, left = _filler(made), COMPILED_AFTER

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0 or not fill(self, given, named):
            made.__init__ = _compiled_init(made)
            made.__init__(self, *given, **named)

    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(compared(self) == compared(other))

    def __hash__(self: Any) -> int:
        return hash(compared(self))

    def __repr__(self: Any) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({parts})"

    own = vars(cls)
    for method in (__init__, __eq__, __hash__, __repr__):
        if method.__name__ not in own or own[method.__name__] is None:
            setattr(made, method.__name__, method)
    made.__setattr__ = made.__delattr__ = _refuse
    made.__getstate__, made.__setstate__ = _get_state, _set_state
    frozen_class: type[_T] = made
    return frozen_class


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _filler(made: Any) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]:
    """What sets the fields of a new value; False where that takes the real ``__init__``, be it
    for a field that is not just given or to say what is wrong with the arguments.
    """
    all_fields = fields(made)
    plain = all(item.init and item.default_factory is MISSING for item in all_fields)
    places = [item.name for item in all_fields if not item.kw_only]
    names = {item.name for item in all_fields}
    defaults = {item.name: item.default for item in all_fields if item.default is not MISSING}
    finish = getattr(made, "__post_init__", None)

    def fill(self: Any, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
        placed = dict(zip(places, given, strict=False))
        found = {**defaults, **placed, **named}
        twice = not placed.keys().isdisjoint(named)
        if not plain or twice or len(given) > len(places) or found.keys() != names:
            return False
        for name, one in found.items():
            object.__setattr__(self, name, one)
        if finish is not None:
            finish(self)
        return True

    return fill


def _compiled_init(made: Any) -> Any:
    """``__init__`` as a person would write it, but setting what nobody else may set."""
    scope: dict[str, Any] = {"_missing": MISSING}
    places, keywords, lines = ["self"], ["*"], ["pass"]
    for item in fields(made):
        name, given = item.name, item.name
        scope[f"_set_{name}"] = getattr(made, name).__set__
        scope[f"_default_{name}"] = item.default
        if item.default_factory is not MISSING:
            scope[f"_factory_{name}"] = item.default_factory
            given = f"_factory_{name}() if {name} is _missing else {name}"
        optional = item.default is not MISSING or item.default_factory is not MISSING
        if item.init:
            parameters = keywords if item.kw_only else places
            parameters.append(f"{name}=_default_{name}" if optional else name)
            lines.append(f"_set_{name}(self, {given})")
        elif item.default is not MISSING:
            lines.append(f"_set_{name}(self, _default_{name})")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = places + keywords if len(keywords) > 1 else places
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"]


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, one in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, one)
