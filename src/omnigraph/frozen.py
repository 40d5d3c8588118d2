"""Values: frozen, slotted dataclasses that cost next to nothing until many of them are made.

``dataclass`` looks closely at every field and compiles six methods for every class at import. A
short command imports some hundred and fifty classes and makes a few values of a third of them, so
that this took longer than answering. ``@frozen`` looks at the fields of a class before its first
value, shares all methods but ``__init__``, compiles that one for classes of which several values
are made, and asks ``dataclass`` when somebody asks for what it knows. What works with dataclasses
works here, too: ``fields``, ``replace``, ``field``, ``KW_ONLY``, patterns, pickling. A class that
inherits from one of these is decorated like it, and its module postpones annotations; what
``dataclass`` would refuse, a test over all classes does. It must never grow features that
``dataclass`` has not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from operator import attrgetter
from threading import RLock
from types import MemberDescriptorType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, dataclass_transform, overload

COMPILED_AFTER: Final = 40
"""Values of one class: to compile ``__init__`` takes as long as to make so many without."""
_CLASS_VARIABLE: Final = "ClassVar"
_KEYWORDS_FOLLOW: Final = "KW_ONLY"

_Fill: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]
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
    known.made = made
    return known.made


def _is_field(annotation: str) -> bool:
    return not annotation.startswith((_CLASS_VARIABLE, _KEYWORDS_FOLLOW))


# What is known of a class


class _Known:
    """A class as it was written, and what is found out about it when somebody needs that.

    Found out under one lock: ``dataclass`` takes something of it away.
    """

    made: type[Any]

    def __init__(self, plain: type[Any]) -> None:
        self.plain = plain
        self._items: Mapping[str, Any] | None = None
        self._fill: _Fill | None = None
        self._compared: Callable[[Any], tuple[Any, ...]] | None = None

    @property
    def items(self) -> Mapping[str, Any]:
        """The fields of the class and its bases by name: a default, ``field``'s or ``MISSING``."""
        if self._items is None:
            with _asking:
                if self._items is None:
                    self._items = self._find_items()
        return self._items

    def _find_items(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for base in reversed(self.plain.__mro__[1:]):
            if "__frozen__" in vars(base):
                found |= vars(base)["__frozen__"].items
        own, keyword = vars(self.plain), False
        for name, kind in own.get("__annotations__", {}).items():
            if kind.startswith(_KEYWORDS_FOLLOW):
                keyword = True
            elif _is_field(kind):
                given = own.get(name, MISSING)
                if keyword and not isinstance(given, Field):
                    given = field(default=given, kw_only=True)
                elif keyword and given.kw_only is MISSING:
                    given.kw_only = True
                found[name] = given
        return found

    @property
    def compared(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the fields that are compared."""
        if self._compared is None:
            self._compared = self._find_compared()
        return self._compared

    def _find_compared(self) -> Callable[[Any], tuple[Any, ...]]:
        names = [name for name, item in self.items.items() if _is_in(item, "compare")]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple(getattr(value, name) for name in names)

    @property
    def fill(self) -> _Fill:
        """What sets the fields of a new value; False where that takes the real ``__init__``, be it
        for a field that is not just given or to say what is wrong with the arguments.
        """
        if self._fill is None:
            self._fill = self._find_fill()
        return self._fill

    def _find_fill(self) -> _Fill:
        items, places, defaults, factories, plain = self.items, [], {}, {}, True
        for name, item in items.items():
            default = item
            if isinstance(item, Field):
                plain = plain and item.init
                default = item.default
                if item.default_factory is not MISSING:
                    factories[name] = item.default_factory
            if default is not MISSING:
                defaults[name] = default
            if not isinstance(item, Field) or item.kw_only is not True:
                places.append(name)
        finishes = hasattr(self.plain, "__post_init__")

        def fill(value: Any, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
            found = dict(zip(places, given, strict=False))
            if named or len(found) < len(items):
                twice = not found.keys().isdisjoint(named)
                found = {**defaults, **found, **named}
                for name, make in factories.items():
                    if name not in found:
                        found[name] = make()
                if twice or found.keys() != items.keys():
                    return False
            if not plain or len(given) > len(places):
                return False
            for name, one in found.items():
                object.__setattr__(value, name, one)
            if finishes:
                value.__post_init__()
            return True

        return fill


def _is_in(item: Any, what: str) -> bool:
    """Whether a field takes part in something: most do in everything."""
    return not isinstance(item, Field) or bool(getattr(item, what))


class _OfDataclass:
    """Stands in a class for something that ``dataclass`` knows of it."""

    def __init__(self, known: _Known, name: str) -> None:
        self._known = known
        self._name = name

    def __get__(self, instance: object, owner: object) -> Any:
        plain = self._known.plain
        with _asking:
            if self._name not in vars(plain):
                _ = self._known.items  # before they are taken from the class
                plain.__doc__ = plain.__doc__ or plain.__name__  # else it composes one, at length
                dataclass(init=False, repr=False, eq=False)(plain)
        found = vars(plain)[self._name]
        setattr(self._known.made, self._name, found)
        return found


_OF_DATACLASS: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


# Methods


def _compiled_init(made: Any, items: Mapping[str, Any]) -> Any:
    """``__init__`` as a person would write it, but setting what nobody else may set."""
    scope: dict[str, Any] = {"_missing": MISSING}
    places, keywords, lines = ["self"], ["*"], ["pass"]
    for name, item in items.items():
        described = item if isinstance(item, Field) else field(default=item)
        given = name
        slot = getattr(made, name, None)
        keep = f"self.__dict__[{name!r}] = {{}}"
        if isinstance(slot, MemberDescriptorType):
            scope[f"_set_{name}"] = slot.__set__
            keep = f"_set_{name}(self, {{}})"
        scope[f"_default_{name}"] = described.default
        if described.default_factory is not MISSING:
            scope[f"_factory_{name}"] = described.default_factory
            given = f"_factory_{name}() if {name} is _missing else {name}"
        optional = described.default is not MISSING or described.default_factory is not MISSING
        if described.init:
            parameters = keywords if described.kw_only is True else places
            parameters.append(f"{name}=_default_{name}" if optional else name)
            lines.append(keep.format(given))
        elif described.default is not MISSING:
            lines.append(keep.format(f"_default_{name}"))
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = places + keywords if len(keywords) > 1 else places
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"]


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
    shown = [name for name, item in self.__frozen__.items.items() if _is_in(item, "repr")]
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
