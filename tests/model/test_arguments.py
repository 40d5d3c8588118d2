"""Checks of arguments: a wrong type is an ``InvalidInput`` that names the argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import InvalidInput
from omnigraph.model import arguments


@dataclass(frozen=True, slots=True)
class Options:
    limit: int = 1


def options(name: str, value: object) -> Options:
    return arguments.instance(name, value, Options)


@pytest.mark.parametrize(
    ("check", "given", "expected"),
    [
        (arguments.text, "é", "é"),
        (arguments.optional_text, None, None),
        (arguments.texts, ["a", "é"], ("a", "é")),
        (arguments.texts, (), ()),
        (arguments.texts, {"a"}, ("a",)),
        (arguments.texts, (name for name in "ab"), ("a", "b")),
        (arguments.optional_texts, None, None),
        (arguments.mapping, {"a": 5}, {"a": 5}),
        (arguments.optional_mapping, None, None),
        (arguments.mappings, [{"a": 5}], ({"a": 5},)),
        (arguments.whole, -(2**63), -(2**63)),
        (arguments.optional_whole, None, None),
        (arguments.number, 3, 3),
        (arguments.number, 0.5, 0.5),
        (arguments.optional_number, None, None),
        (arguments.truth, "anything that is true or false", True),
        (arguments.path, Path("x"), "x"),
        (arguments.path, "x", "x"),
        (arguments.optional_path, None, None),
        (options, Options(), Options()),
        (arguments.optional_function, len, len),
        (arguments.optional_function, None, None),
    ],
)
def test_arguments_of_the_right_types_pass(
    check: Callable[[str, Any], Any], given: Any, expected: Any
) -> None:
    assert check("it", given) == expected


@pytest.mark.parametrize(
    ("check", "given", "says"),
    [
        (arguments.text, 5, "`it` must be a string, not int"),
        (arguments.text, None, "`it` must be a string, not NoneType"),
        (arguments.text, b"x", "`it` must be a string, not bytes"),
        (arguments.text, "\ud800", "`it` is not valid UTF-8"),
        (arguments.optional_text, 5, "`it` must be a string or None, not int"),
        (arguments.texts, 5, "`it` must be a list of strings, not int"),
        (arguments.texts, None, "`it` must be a list of strings, not NoneType"),
        (arguments.texts, b"a", "`it` must be a list of strings, not bytes"),
        (arguments.texts, "ab", "`it` must be a list of strings, not str"),
        (arguments.texts, ["a", 5], "`it` must contain only strings, but has an item of type int"),
        (arguments.texts, ["\udcff"], "`it` is not valid UTF-8"),
        (arguments.mapping, [("a", 1)], "`it` must be a mapping, not list"),
        (arguments.mapping, {1: 2}, "`it` must contain only strings, but has an item of type int"),
        (arguments.mappings, {"a": 1}, "`it` must be a list of mappings, not dict"),
        (arguments.mappings, [5], "`it` must be a mapping, not int"),
        (arguments.whole, "1", "`it` must be a whole number, not str"),
        (arguments.whole, 1.0, "`it` must be a whole number, not float"),
        (arguments.whole, 2**63, "`it` does not fit into 64 bits"),
        (arguments.number, "x", "`it` must be a number, not str"),
        (arguments.number, 2**63, "`it` does not fit into 64 bits"),
        (arguments.truth, np.array([1, 2]), "`it` must be True or False, not ndarray"),
        (arguments.path, b"x", "`it` must be a string or a path, not bytes"),
        (options, {"limit": 1}, "not dict"),
        (arguments.optional_function, "x", "`it` must be a function or None, not str"),
    ],
)
def test_others_are_refused_by_name(
    check: Callable[[str, Any], Any], given: Any, says: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(says)) as refused:
        check("it", given)
    assert "`it`" in refused.value.remedy
