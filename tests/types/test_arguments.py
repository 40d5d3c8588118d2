"""Arguments of the public API are checked against their annotations before anything happens."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from omnigraph.errors import InvalidInput
from omnigraph.graph.handle import Graph
from omnigraph.model.arguments import checked, checked_methods

Choice = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class Options:
    limit: int = 1


@checked
def function(
    text: str,
    names: Sequence[str] | None = None,
    *,
    number: int = 1,
    share: float = 0.5,
    facts: Mapping[str, Any] | None = None,
    where: str | os.PathLike[str] = "",
    kinds: Iterable[str] = (),
    options: Options | None = None,
    choice: Choice = "a",
    flag: bool = False,
) -> str:
    return text


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"names": ["a", "é"]},
        {"names": ()},
        {"number": -(2**63)},
        {"share": 3},
        {"facts": {"a": object()}},
        {"where": Path("x")},
        {"kinds": {"a"}},
        {"kinds": (name for name in "ab")},
        {"options": Options()},
        {"choice": 7, "flag": "what a choice or a truth means is not looked at"},
    ],
)
def test_arguments_of_the_right_types_pass(given: dict[str, Any]) -> None:
    assert function("é", **given) == "é"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": 5}, "`text` is int"),
        ({"text": None}, "`text` is NoneType"),
        ({"text": b"x"}, "`text` is bytes"),
        ({"text": "\ud800"}, "`text` is not valid UTF-8"),
        ({"names": 5}, "`names` is int"),
        ({"names": b"a"}, "`names` is bytes"),
        ({"names": "ab"}, "`names` is str"),
        ({"names": ["a", 5]}, "`names` contains int"),
        ({"names": ["\udcff"]}, "`names` is not valid UTF-8"),
        ({"number": "1"}, "`number` is str"),
        ({"number": 1.0}, "`number` is float"),
        ({"number": 2**63}, "`number` is too large"),
        ({"share": "x"}, "`share` is str"),
        ({"facts": [("a", 1)]}, "`facts` is list"),
        ({"facts": {1: 2}}, "`facts` contains int"),
        ({"where": b"x"}, "`where` is bytes"),
        ({"kinds": None}, "`kinds` is NoneType"),
        ({"flag": np.array([1, 2])}, "`flag` is ndarray"),
        ({"options": {"limit": 1}}, "`options` is dict"),
    ],
)
def test_others_are_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(says)) as refused:
        function(**({"text": ""} | given))
    name = next(iter(given))
    assert f"`{name}`" in refused.value.remedy


def test_methods_context_managers_and_inherited_ones_are_checked_and_constructors_are_not() -> None:
    class Base:
        def inherited(self, name: str) -> str:
            return name

    @checked_methods
    class Example(Base):
        @contextmanager
        def held(self, name: str) -> Iterator[str]:
            yield name

        @classmethod
        def made(cls, name: Any) -> Any:
            return name

        def _private(self, name: str) -> str:
            return name

    example: Any = Example()
    with pytest.raises(InvalidInput):
        example.inherited(5)
    with pytest.raises(InvalidInput):
        example.held(5)
    with example.held("x") as name:
        assert name == "x"
    assert example.made(5) == 5
    assert example._private(5) == 5
    assert Base().inherited("x") == "x"


def test_a_graph_still_tells_its_signatures() -> None:
    assert list(inspect.signature(Graph.query).parameters)[:2] == ["self", "text"]
    assert Graph.query.__doc__
