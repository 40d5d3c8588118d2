"""Parameters: what a bound value is, beyond the cases, and how they are described."""

from __future__ import annotations

import pytest
from tests.lang.query.loading import schema

from omnigraph.errors import LanguageError, ParameterError
from omnigraph.lang.query import (
    bind_parameters,
    compile_query,
    describe_parameters,
    read_parameters,
)
from omnigraph.lang.query.parameters import PROBLEMS_MAX


def declared(params: str) -> list:
    text = f"query q({params}) {{ match {{ $c: Curator }} return {{ $c }} }}"
    return list(compile_query(text, schema("mus")).checked.parameters)


def test_q11_values_are_stored_values() -> None:
    bound = bind_parameters(declared("$d: Date, $l: [I32]"), {"d": "2024-02-29", "l": [1, 2]})
    assert bound.values == {"d": 19782, "l": (1, 2)}


def test_q12_a_name_that_no_query_declares_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ParameterError) as caught:
        bind_parameters(declared("$x: I32?"), {"X": 3})
    assert caught.value.problems == (
        {
            "name": "X",
            "message": "the query has no parameter `X`; did you mean `x`?",
            "hint": "did you mean `x`?",
        },
    )
    assert "`x`" in str(caught.value.remedy)
    with pytest.raises(ParameterError, match="no parameter `a`"):
        bind_parameters(declared(""), {"a": None})


def test_q14_every_problem_is_named_with_what_was_expected() -> None:
    with pytest.raises(ParameterError) as caught:
        bind_parameters(declared("$handle: String, $age: I32"), {"handel": "x", "age": 5.5})
    first, second, third = caught.value.problems
    assert third["name"] == "handel"
    assert first == {
        "name": "handle",
        "message": "parameter `handle` of type String is missing",
        "expected": "String",
        "hint": "did you mean `handel`?",
    }
    assert second["name"] == "age"
    assert second["expected"] == "I32"
    assert isinstance(caught.value, LanguageError)


@pytest.mark.parametrize("kind", ["String", "Bool", "I32", "U64", "F32", "F64", "Date", "Blob"])
@pytest.mark.parametrize("suffix", ["", "?", "list", "vector"])
def test_values_that_no_json_has_are_typed_errors_too(kind: str, suffix: str) -> None:
    shapes = {"list": f"[{kind}]", "vector": "Vector(2)"}
    wanted = (
        declared(f"$a: {shapes.get(suffix, kind + suffix)}")
        if kind != "Blob"
        else declared("$a: Blob")
    )
    values = (object(), b"x", {1: 2}, [[1], [2]], (None, 1), float("nan"), 10**5000, -(10**5000))
    for value in values:
        with pytest.raises(ParameterError):
            bind_parameters(wanted, {"a": value})
        with pytest.raises(ParameterError):
            bind_parameters(wanted, {"a": [value], 3: value}, mode="js_safe")


def test_problems_are_bounded() -> None:
    many = {f"x{at}": {} for at in range(PROBLEMS_MAX * 3)}
    with pytest.raises(ParameterError) as caught:
        bind_parameters(declared(""), many)
    assert len(caught.value.problems) == PROBLEMS_MAX


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{", "Infinity", '{"a": -Infinity}', "9" * 5_000 + "x"]
)
def test_text_that_is_not_json_is_a_typed_error(text: str) -> None:
    with pytest.raises(ParameterError):
        read_parameters(text)


def test_parameters_are_described_by_kind() -> None:
    params = "$a: String, $b: I32?, $c: U64, $d: [Date], $e: Vector(4)?, $f: Blob, $g: F32"
    assert describe_parameters(declared(params)) == [
        {"name": "a", "kind": "string", "nullable": False},
        {"name": "b", "kind": "int", "nullable": True},
        {"name": "c", "kind": "bigint", "nullable": False},
        {"name": "d", "kind": "list", "item_kind": "date", "nullable": False},
        {"name": "e", "kind": "vector", "vector_dim": 4, "nullable": True},
        {"name": "f", "kind": "blob", "nullable": False},
        {"name": "g", "kind": "float", "nullable": False},
    ]
