"""Frozen classes behave like the frozen, slotted dataclasses they stand for."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import (
    KW_ONLY,
    MISSING,
    FrozenInstanceError,
    dataclass,
    field,
    fields,
    make_dataclass,
    replace,
)
from functools import cached_property
from typing import Any, ClassVar, Final

import pytest
from omnigraph.frozen import COMPILED_AFTER, _compiled_init

import omnigraph


@dataclass(frozen=True, slots=True)
class Base:
    kind: ClassVar[str] = "base"
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Derived(Base):
    _: KW_ONLY
    size: int
    note: str = field(default="", compare=False, repr=False)
    doubled: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", 2 * self.size)


@dataclass(frozen=True, slots=True)
class Single:
    it: Any


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class PlainBase:
    kind: ClassVar[str] = "base"
    name: str
    tags: list[str] = field(default_factory=list)


NAN: Final = float("nan")


def test_places_keywords_defaults_and_factories_are_those_of_a_dataclass() -> None:
    assert Base("a").tags == []
    assert Base("a").tags is not Base("a").tags
    assert Base("a", ["x"]) == Base(tags=["x"], name="a")
    assert Derived("a", size=2).doubled == 4
    for arguments, named in (((), {}), (("a", [], 3), {}), (("a",), {"other": 1})):
        with pytest.raises(TypeError):
            Base(*arguments, **named)
    with pytest.raises(TypeError):
        Derived("a", [], 2)  # type: ignore[misc]


def test_values_compare_and_hash_by_content_and_class() -> None:
    assert Single(1) == Single(1)
    assert hash(Single(1)) == hash(Single(1))
    assert Single(1) != Single(2)
    assert Single(1) != (1,)
    assert Nothing() == Nothing()
    assert Single(NAN) == Single(NAN), "the same object is equal to itself, as in a tuple"
    assert Derived("a", size=1, note="x") == Derived("a", size=1, note="y")
    assert Base("a") != Derived("a", size=1)
    with pytest.raises(TypeError):
        hash(Base("a"))  # a list


def test_nobody_sets_or_removes_a_field_or_adds_one() -> None:
    item = Derived("a", size=1)
    for name in ("name", "size", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(item, name, 1)
    with pytest.raises(FrozenInstanceError):
        del item.size  # type: ignore[misc]
    assert not hasattr(item, "__dict__")


def test_what_works_with_dataclasses_works() -> None:
    item = Derived("a", ["x"], size=2)
    assert [one.name for one in fields(Derived)] == ["name", "tags", "size", "note", "doubled"]
    assert replace(Base("a"), name="b") == Base("b")
    assert repr(item) == "Derived(name='a', tags=['x'], size=2, doubled=4)"
    assert repr(Base("a", ["x"])) == repr(PlainBase("a", ["x"])).removeprefix("Plain")
    match item:
        case Base(name, tags):
            assert (name, tags) == ("a", ["x"])
    assert pickle.loads(pickle.dumps(item)) == item
    assert copy.copy(item) == item
    assert copy.deepcopy(item).tags is not item.tags


def test_the_first_values_and_the_later_ones_are_made_alike() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0
        total: ClassVar[list[int]] = []

        def __post_init__(self) -> None:
            self.total.append(self.x)

    many = range(COMPILED_AFTER + 3)
    first = Point.__init__
    made = [(Point(at), Point(x=at, y=0), Point(y=0, x=at)) for at in many]
    assert Point.__init__ is not first, "compiled by now"
    assert all(
        a == b == c and (a.x, a.y) == (at, 0) for at, (a, b, c) in zip(many, made, strict=True)
    )
    assert len(Point.total) == 3 * len(many)


@pytest.mark.parametrize("made_before", [0, 2 * COMPILED_AFTER])
def test_wrong_arguments_are_refused_by_name_however_many_values_were_made(
    made_before: int,
) -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0

    for at in range(made_before):
        Point(at)
    wrong: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((), {}, "'x'"),
        ((1, 2, 3), {}, "3"),
        ((1,), {"x": 1}, "'x'"),
        ((1,), {"z": 1}, "'z'"),
    ]
    for given, named, says in wrong:
        with pytest.raises(TypeError, match=says):
            Point(*given, **named)
    assert Point(1) == Point(1, 0)


@dataclass(frozen=True)
class Open:
    """Has a place for what is found out later."""

    name: str
    size: int = 1

    @cached_property
    def doubled(self) -> int:
        return 2 * self.size


def test_without_slots_a_class_may_remember_what_it_computed() -> None:
    values = [Open("a", at) for at in range(2 * COMPILED_AFTER)]
    assert [value.doubled for value in values] == [2 * at for at in range(2 * COMPILED_AFTER)]
    assert vars(values[3])["doubled"] == 6
    assert values[3] == Open("a", 3), "what was computed is no part of the value"
    assert "doubled" not in vars(pickle.loads(pickle.dumps(values[3])))
    for name in ("name", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(values[0], name, 1)
    assert replace(values[3], name="b").doubled == 6


def test_fields_may_be_asked_for_before_there_is_a_value() -> None:
    @dataclass(frozen=True, slots=True)
    class Late(Base):
        size: int = field(default=3, repr=False)
        more: list[int] = field(default_factory=list)

    assert [one.name for one in fields(Late)] == ["name", "tags", "size", "more"]
    assert Late("a").size == 3
    assert Late("a").more is not Late("a").more
    assert Late.__match_args__ == ("name", "tags", "size", "more")


def test_a_class_may_have_methods_of_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Loud:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loud) and other.name.lower() == self.name.lower()

        def __repr__(self) -> str:
            return self.name.upper()

    assert Loud("a") == Loud("A")
    assert repr(Loud("a")) == "A"
    assert hash(Loud("a")) == hash(Loud("a"))


def test_the_first_values_may_be_made_by_many_threads_at_once() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Point:
            x: int
            y: int = field(default=0)
            more: list[int] = field(default_factory=list)

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda at, kind=Point: (kind(at), fields(kind)), range(64)))
        assert [(one.x, one.y, one.more) for one, _ in made] == [(at, 0, []) for at in range(64)]
        assert {tuple(item.name for item in found) for _, found in made} == {("x", "y", "more")}


def test_values_and_fields_of_different_classes_wait_for_nobody() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):

            @dataclass(frozen=True, slots=True)
            class First:
                x: int

            @dataclass(frozen=True, slots=True)
            class Second:
                x: int

            with ThreadPoolExecutor(2) as pool:
                value = pool.submit(lambda kind=First: kind(1))
                found = pool.submit(lambda kind=Second: fields(kind))
                assert value.result(60).x == 1
                assert len(found.result(60)) == 1
    finally:
        sys.setswitchinterval(interval)


def test_every_class_of_the_package_is_one_that_dataclass_would_take() -> None:
    for module in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        importlib.import_module(module.name)
    kinds = [kind for kind in _all_classes(object) if "__frozen__" in vars(kind)]
    kinds = [kind for kind in kinds if kind.__module__.startswith("omnigraph.")]
    assert len(kinds) > 150
    for kind in kinds:
        known = vars(kind)["__frozen__"]
        found = fields(kind)
        assert [item.name for item in found] == list(known.items)
        same = make_dataclass(
            kind.__name__,
            [(f.name, f.type, _said_of(f)) for f in found],
            frozen=True,
        )
        assert _parameters(_compiled_init(kind, known.items)) == _parameters(same.__init__)
        assert kind.__match_args__ == same.__match_args__
        for item in found:
            assert item.init or item.default_factory is MISSING, kind
            assert item.hash is None, kind
        for method in vars(kind).values():
            code = getattr(getattr(method, "__func__", method), "__code__", None)
            assert code is None or "__class__" not in code.co_freevars, f"{kind}: super()"
        plain = [base for base in kind.__mro__[1:] if "__dataclass_fields__" in vars(base)]
        assert all("__frozen__" in vars(base) for base in plain), kind


def _all_classes(kind: type) -> set[type]:
    below = set(type.__subclasses__(kind))
    return below.union(*(_all_classes(item) for item in below))


def _said_of(item: Any) -> Any:
    if item.default is not MISSING:
        return field(default=item.default, init=item.init, kw_only=item.kw_only)
    return field(default_factory=item.default_factory, init=item.init, kw_only=item.kw_only)


def _parameters(function: Any) -> list[tuple[str, object, bool]]:
    found = inspect.signature(function).parameters.values()
    return [(item.name, item.kind, item.default is item.empty) for item in found]
