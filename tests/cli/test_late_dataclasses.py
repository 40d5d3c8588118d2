"""A class that becomes a dataclass later cannot be told from one that is."""

from __future__ import annotations

import dataclasses
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from omnigraph.cli.late_dataclasses import completed_later

with completed_later():

    @dataclasses.dataclass
    class Base:
        name: str
        tags: list[str] = dataclasses.field(default_factory=list)

    @dataclasses.dataclass
    class Derived(Base):
        size: int = 1

        def __post_init__(self) -> None:
            self.doubled = 2 * self.size

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        name: str

    @dataclasses.dataclass(order=True)
    class Ordered:
        name: str

    @dataclasses.dataclass
    class Own:
        name: str

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

    @dataclasses.dataclass
    class Compared:
        name: str

    @dataclasses.dataclass
    class Shown:
        name: str

    @dataclasses.dataclass
    class Asked(Base):
        size: int = 1

    @dataclasses.dataclass
    class Nothing:
        pass


def test_only_within_the_block() -> None:
    assert dataclasses.dataclass.__module__ == "dataclasses"


def test_values_are_made_compared_and_shown_as_usual() -> None:
    assert Derived("a", size=3).doubled == 6
    assert Derived("a") == Derived("a", [], 1)
    assert Derived("a") != Base("a")
    assert repr(Derived("a", ["x"])) == "Derived(name='a', tags=['x'], size=1)"
    assert Base("a").tags is not Base("a").tags
    assert hash(Frozen("a")) == hash(Frozen("a"))
    assert Ordered("a") < Ordered("b")
    assert Nothing() == Nothing()
    with pytest.raises(TypeError):
        Base()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hash(Base("a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Frozen("a").name = "b"  # type: ignore[misc]


def test_methods_of_its_own_stay() -> None:
    assert repr(Own("a")) == "own"
    assert Own("a") == Own("b")
    with pytest.raises(TypeError):
        hash(Own("a"))


def test_a_class_may_be_asked_before_there_is_a_value() -> None:
    assert dataclasses.is_dataclass(Asked)
    assert [item.name for item in dataclasses.fields(Asked)] == ["name", "tags", "size"]
    assert Asked.__match_args__ == ("name", "tags", "size")
    assert dataclasses.replace(Asked("a"), size=2) == Asked("a", [], 2)


@pytest.mark.parametrize(
    ("cls", "use", "found"),
    [(Compared, lambda a, b: a == b, True), (Shown, lambda a, b: repr(a), "Shown(name='x')")],
)
def test_values_that_were_not_made_by_init_are_values_too(
    cls: type[Any], use: Callable[[Any, Any], Any], found: object
) -> None:
    """As when they come from another process."""
    first, second = object.__new__(cls), object.__new__(cls)
    first.name = second.name = "x"
    with pytest.raises(TypeError):
        hash(first)
    assert use(first, second) == found
    assert pickle.loads(pickle.dumps(first)) == second


def test_many_threads_may_make_the_first_value() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(30):
            with completed_later():

                @dataclasses.dataclass
                class Point:
                    x: int
                    y: int = 0

            with ThreadPoolExecutor(8) as pool:
                made = list(pool.map(Point, range(16)))
            assert [point.x for point in made] == list(range(16))
    finally:
        sys.setswitchinterval(interval)
