"""Values: frozen, slotted dataclasses that cost next to nothing until many of them are made.

``dataclass`` looks closely at every field and compiles six methods for every class at import. A
short command imports some hundred and fifty classes and makes a few values of a third of them, so
that this took longer than answering. ``@frozen`` looks at the fields of a class before its first
value, shares all methods but ``__init__``, compiles that one for classes of which several values
are made, and asks ``dataclass`` when somebody asks for what it knows. What works with dataclasses
works here, too: ``fields``, ``replace``, ``field``, ``KW_ONLY``, patterns, pickling. A class that
inherits from one of these is decorated like it, and its module postpones annotations. It must never
grow features that ``dataclass`` has not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from functools import cached_property
from operator import attrgetter
from threading import RLock
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, dataclass_transform, overload

COMPILED_AFTER: Final = 40
"""Values of one class: to compile ``__init__`` takes as long as to make so many without."""
_CLASS_VARIABLE: Final = "ClassVar"
_KEYWORDS_FOLLOW: Final = "KW_ONLY"

_T = TypeVar("_T")
_asking = RLock()


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...


@overload
def frozen(*, slots: bool) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, /, *, slots: bool = True) -> Any:
    """Make a class a frozen dataclass; without ``slots`` it may have cached properties."""
    if cls is None:
        return lambda cls: _frozen(cls, slots)
    return _frozen(cls, slots)


def _frozen(cls: type[Any], slots: bool) -> type[Any]:
    known, left = _Known(cls), COMPILED_AFTER

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0 or not known.fill(self, given, named):
            made.__init__ = _compiled_init(made, known.items)
            made.__init__(self, *given, **named)

    own = vars(cls)
    names = [name for name, kind in own.get("__annotations__", {}).items() if _is_field(kind)]
    gone = {*names, "__dict__", "__weakref__"}
    shared = {**_SHARED, "__init__": __init__}
    body = {name: one for name, one in own.items() if name not in gone}
    body |= {name: method for name, method in shared.items() if own.get(name) is None}
    body |= {name: _OfDataclass(known, name) for name in _OF_DATACLASS}
    body["__frozen__"] = known
    if slots:
        inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
        body["__slots__"] = tuple(name for name in names if name not in inherited)
    kind: Any = type(cls)
    made: Any = kind(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    frozen_class: type[Any] = made
    return frozen_class


def _is_field(annotation: str) -> bool:
    return not annotation.startswith((_CLASS_VARIABLE, _KEYWORDS_FOLLOW))


# What is known of a class


class _Item(NamedTuple):
    """What is said about one field."""

    default: Any
    factory: Any
    init: bool
    shown: bool
    compared: bool
    keyword: bool


class _Known:
    """A class as it was written, and what is found out about it when somebody needs that."""

    def __init__(self, plain: type[Any]) -> None:
        self.plain = plain

    @cached_property
    def items(self) -> Mapping[str, _Item]:
        """The fields of the class and its bases by name."""
        found: dict[str, _Item] = {}
        for base in reversed(self.plain.__mro__[1:]):
            if "__frozen__" in vars(base):
                found |= vars(base)["__frozen__"].items
        own, keyword = vars(self.plain), False
        for name, kind in own.get("__annotations__", {}).items():
            if kind.startswith(_KEYWORDS_FOLLOW):
                keyword = True
            elif _is_field(kind):
                found[name] = _item(own.get(name, MISSING), keyword)
        return found

    @cached_property
    def compared(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the fields that are compared."""
        names = [name for name, item in self.items.items() if item.compared]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple(getattr(value, name) for name in names)

    @cached_property
    def fill(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]:
        """What sets the fields of a new value; False where that takes the real ``__init__``, be it
        for a field that is not just given or to say what is wrong with the arguments.
        """
        items = self.items
        plain = all(item.init and item.factory is MISSING for item in items.values())
        places = [name for name, item in items.items() if not item.keyword]
        defaults = {
            name: item.default for name, item in items.items() if item.default is not MISSING
        }
        finish = getattr(self.plain, "__post_init__", None)

        def fill(value: Any, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
            placed = dict(zip(places, given, strict=False))
            found = {**defaults, **placed, **named}
            twice = not placed.keys().isdisjoint(named)
            if not plain or twice or len(given) > len(places) or found.keys() != items.keys():
                return False
            for name, one in found.items():
                object.__setattr__(value, name, one)
            if finish is not None:
                finish(value)
            return True

        return fill


def _item(given: Any, keyword: bool) -> _Item:
    if not isinstance(given, Field):
        return _Item(given, MISSING, True, True, True, keyword)
    keyword = keyword if given.kw_only is MISSING else given.kw_only
    default, factory = given.default, given.default_factory
    return _Item(default, factory, given.init, given.repr, given.compare, keyword)


class _OfDataclass:
    """Stands in a class for something that ``dataclass`` knows of it."""

    def __init__(self, known: _Known, name: str) -> None:
        self._known = known
        self._name = name

    def __get__(self, instance: object, owner: object) -> Any:
        plain = self._known.plain
        with _asking:
            if self._name not in vars(plain):
                assert self._known.items is not None, "read before they are taken from the class"
                plain.__doc__ = plain.__doc__ or plain.__name__  # else it composes one, at length
                dataclass(init=False, repr=False, eq=False)(plain)
        return vars(plain)[self._name]


_OF_DATACLASS: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


# Methods


def _compiled_init(made: Any, items: Mapping[str, _Item]) -> Any:
    """``__init__`` as a person would write it, but setting what nobody else may set."""
    scope: dict[str, Any] = {"_missing": MISSING}
    places, keywords, lines = ["self"], ["*"], ["pass"]
    for name, item in items.items():
        given = name
        scope[f"_set_{name}"] = _setter(made, name)
        scope[f"_default_{name}"] = item.default
        if item.factory is not MISSING:
            scope[f"_factory_{name}"] = item.factory
            given = f"_factory_{name}() if {name} is _missing else {name}"
        optional = item.default is not MISSING or item.factory is not MISSING
        if item.init:
            parameters = keywords if item.keyword else places
            parameters.append(f"{name}=_default_{name}" if optional else name)
            lines.append(f"_set_{name}(self, {given})")
        elif item.default is not MISSING:
            lines.append(f"_set_{name}(self, _default_{name})")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = places + keywords if len(keywords) > 1 else places
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"]


def _setter(made: Any, name: str) -> Callable[[Any, Any], None]:
    slot = getattr(made, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, one: object.__setattr__(self, name, one)


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    compared = self.__frozen__.compared
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    return hash(self.__frozen__.compared(self))


def _show(self: Any) -> str:
    shown = [name for name, item in self.__frozen__.items.items() if item.shown]
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({parts})"


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__frozen__.items]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, one in zip(self.__frozen__.items, state, strict=True):
        object.__setattr__(self, name, one)


_SHARED: Final = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _show,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
