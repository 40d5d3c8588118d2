"""Expressions that new properties are computed with: what is accepted, and what comes out."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.lang.schema.change.computed import ComputedExpression
from omnigraph.lang.schema.parse.expression import parse_computed
from omnigraph.model.types import SCALARS, PropertyType

PROPERTIES = {
    "first": ("id1", PropertyType(SCALARS["String"])),
    "last": ("id2", PropertyType(SCALARS["String"], nullable=True)),
    "n": ("id3", PropertyType(SCALARS["I32"], nullable=True)),
    "x": ("id4", PropertyType(SCALARS["F64"], nullable=True)),
    "day": ("id5", PropertyType(SCALARS["Date"], nullable=True)),
    "tags": ("id6", PropertyType(SCALARS["String"], is_list=True)),
    "mood": ("id7", PropertyType(SCALARS["String"], enum=("bad", "good"))),
}
ROW = {"id1": "Ana", "id2": None, "id3": 7, "id4": 0.5, "id5": 19_000, "id7": "good"}


def value(text: str, kind: str) -> Any:
    computed = parse_computed(text, PropertyType(SCALARS[kind], nullable=True), PROPERTIES)
    again = ComputedExpression.from_json(computed.to_json())
    assert again == computed
    columns = {key: [ROW[key]] for key in computed.sources()}
    (found,) = again.values(PropertyType(SCALARS[kind]), columns, 1)
    return found


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("n", "I32", 7),
        ("n", "I64", 7),
        ("n", "F64", 7.0),
        ("-n + 1", "I32", -6),
        ("--n", "I32", 7),
        ("2 + n * 3 - 1", "I32", 22),
        ("(2 + n) * (3 - 1)", "I32", 18),
        ("n / 2", "F64", 3.5),
        ("n / 0", "F64", None),
        ("x * 1e308 * 10", "F64", None),
        ("n * 1000000000", "I32", None),
        ("n - 8", "U32", None),
        ("first", "String", "Ana"),
        ('first + " " + last', "String", None),
        ('first + " " + coalesce(last, "?")', "String", "Ana ?"),
        ('coalesce(first + " " + last, first)', "String", "Ana"),
        (r'"a\"\n" + mood', "String", 'a"\ngood'),
        ("coalesce(n, x)", "F64", 7.0),
        ("day", "Date", 19_000),
        ("coalesce(day)", "Date", 19_000),
        ("9007199254740993 + 0 * n", "I64", 9007199254740993),
    ],
)
def test_values(text: str, kind: str, expected: Any) -> None:
    found = value(text, kind)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        ("", "I32", "ends too early"),
        ("n +", "I32", "ends too early"),
        ("n n", "I32", "'n' is not expected"),
        ("(n", "I32", "')' is missing"),
        ("n ~ 2", "I32", "is not understood"),
        ("nn", "I32", "there is no property nn"),
        ("fist", "String", "first"),
        ("tags", "String", "which nothing can be computed from"),
        ("first + 1", "String", "stands between"),
        ("-first", "String", "stands between"),
        ("day + 1", "Date", "stands between"),
        ("coalesce(n, first)", "I32", "coalesce has"),
        ("n", "String", "is a whole number, but the property holds a text"),
        ("x", "I32", "is a number, but the property holds a whole number"),
        ("n / 1", "I32", "but the property holds a whole number"),
        ('"\\q"', "String", "unknown escape"),
        ("(" * 60 + "n" + ")" * 60, "I32", "nested more than"),
        ("+".join("n" * 400), "I32", "more than 300 parts"),
    ],
)
def test_what_is_refused(text: str, kind: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem.replace("(", r"\(").replace(")", r"\)")):
        value(text, kind)


@pytest.mark.parametrize(
    "kind",
    [
        PropertyType(SCALARS["String"], enum=("a", "b")),
        PropertyType(SCALARS["String"], is_list=True),
        PropertyType(SCALARS["F32"], dimensions=3),
        PropertyType(SCALARS["Blob"]),
    ],
)
def test_what_cannot_be_computed(kind: PropertyType) -> None:
    with pytest.raises(InvalidInput, match="cannot be computed"):
        parse_computed("first", kind, PROPERTIES)


def test_random_arithmetic_is_that_of_python() -> None:
    rng = random.Random(5)

    def some(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["n", str(rng.randint(0, 99))])
        text = f"{some(depth - 1)} {rng.choice('+-*')} {some(depth - 1)}"
        return f"({text})" if rng.random() < 0.5 else text

    for _ in range(500):
        text = some(4)
        exact = eval(text, {"n": Fraction(7)})
        expected = int(exact) if -(2**63) <= exact < 2**63 else None
        assert value(text, "I64") == expected, text
