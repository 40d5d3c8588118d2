"""Named limits: size and nesting end in typed errors, and work grows like the text."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest
from tests.lang.query.loading import schema

from omnigraph.lang.query import (
    SchemaOrigin,
    compile_query,
    explain,
    format_queries,
    lint_queries,
    parse_queries,
)
from omnigraph.lang.syntax import NESTING_MAX, TEXT_BYTES_MAX, SourceError

MANY = 3_000


def code_of(text: str) -> str:
    with pytest.raises(SourceError) as caught:
        parse_queries(text)
    return caught.value.diagnostics[0].code


def body(clauses: str, tail: str = "return { $a }") -> str:
    return f"query q() {{ match {{ {clauses} }} {tail} }}"


def test_a_text_has_a_largest_size() -> None:
    largest = "//" + "x" * (TEXT_BYTES_MAX - 2)
    assert parse_queries(largest).queries == ()
    assert code_of(largest + "x") == "P006"
    assert code_of("//" + "é" * (TEXT_BYTES_MAX // 2)) == "P006"


@pytest.mark.parametrize(
    "nest",
    [
        lambda depth: body("$a: Person  $a.tags contains " + "[" * depth + "]" * depth),
        lambda depth: body("$a: Person " + "not { $a knows $a " * depth + "}" * depth),
        lambda depth: body(
            "$a: Person", "return { " + "count(" * depth + "$a" + ")" * depth + " }"
        ),
    ],
    ids=["lists", "negations", "calls"],
)
def test_nesting_has_a_largest_depth(nest: Callable[[int], str]) -> None:
    parse_queries(nest(NESTING_MAX - 1))
    assert code_of(nest(NESTING_MAX + 1)) == "P007"
    assert code_of(nest(50_000)) == "P007"


def test_the_deepest_negation_is_checked_planned_and_explained() -> None:
    depth = NESTING_MAX - 1
    inner = "".join(f"not {{ $a knows $b{at} " for at in range(depth)) + "}" * depth
    text = body("$a: Person " + inner)
    plan = compile_query(text, schema("world")).plan
    assert explain(plan).count("not ") == depth
    assert format_queries(format_queries(text)) == format_queries(text)


@pytest.mark.parametrize(
    "text",
    [
        body("$a: Person " + " ".join(f"$b{at} knows $b{at + 1}" for at in range(MANY))),
        body(
            " ".join(f"$b{at} worksAt $b{at + 1}" for at in range(MANY))
            + " $b0: Person  $a: Person"
        ),
        body("$a: Person " + " ".join(f"$a foo{at} $b{at}" for at in range(MANY))),
        body("$a: Person " + " ".join(f"$c{at}.x = 1" for at in range(MANY))),
        body("$a: Person " + " ".join(f"not {{ $a knows $b{at} }}" for at in range(MANY))),
        body("$a: Person", "return { " + " ".join(f"$a.age as x{at}" for at in range(MANY)) + " }"),
        "query q("
        + ", ".join(f"$p{at}: Nope{at}" for at in range(MANY))
        + ") { delete X where a = 1 }",
        "query q() { insert Person { " + ", ".join(f"p{at}: 1" for at in range(MANY)) + " } }",
        "query q( " * MANY,
        "{" * MANY,
    ],
    ids=range(10),
)
def test_work_grows_like_the_text(text: str) -> None:
    started = monotonic()
    report = lint_queries(text, schema("world"), SchemaOrigin("file", "world.pg"))
    assert report.render()
    assert monotonic() - started < 10, "quadratic work shows here long before it hurts"
    assert len(report.diagnostics) <= 100


def test_a_thousand_mistakes_are_counted_and_a_hundred_shown() -> None:
    text = body("$a: Person " + " ".join(f"$a.x{at} = 1" for at in range(1_000)))
    with pytest.raises(SourceError) as caught:
        compile_query(text, schema("world"))
    assert len(caught.value.diagnostics) == 100
    assert caught.value.omitted == 900
