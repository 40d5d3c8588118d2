"""Promises that hold for every schema, tried on generated ones.

``OMNIGRAPH_GENERATED_N`` sets how many; the long run uses 5,000.
"""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lang.schema.support import accept
from tests.lang.schema.test_cases import CASES
from tests.support.generate_schema import SchemaModel, generate_schema

from omnigraph.lang.schema import AcceptedSchema, format_schema, plan_schema
from omnigraph.lang.schema.pattern import pattern_problem
from omnigraph.lang.syntax import Diagnostics, Source, lex
from omnigraph.lang.syntax.lexer import DECIMAL, INTEGER, NAME, TYPE_NAME, Token

GENERATED_N = int(os.environ.get("OMNIGRAPH_GENERATED_N", "150"))
GAPS = (
    " ",
    "\n",
    "\t",
    "\r\n",
    "\n\n\n",
    " /* c */ ",
    "// c\n",
    "/* two\n   lines */",
    " // d  \n\n",
)
WORDLIKE = frozenset((NAME, TYPE_NAME, INTEGER, DECIMAL, "-"))

seeds = st.integers(min_value=0, max_value=2**32)


def model_of(seed: int) -> tuple[SchemaModel, Random]:
    rng = Random(seed)
    return generate_schema(rng), rng


def noisy(text: str, rng: Random) -> str:
    """The same tokens with other white space and comments between them."""
    source = Source("<schema>", text)
    tokens = lex(source, Diagnostics(source)).tokens
    parts: list[str] = []
    previous: Token | None = None
    for token in tokens:
        if previous is None or not touching(previous, token):
            parts.append(rng.choice(GAPS) if rng.random() < 0.5 else " ")
        parts.append(token.text)
        previous = token
    return "".join(parts)


def touching(left: Token, right: Token) -> bool:
    """Whether two tokens are one enum member and must stay together."""
    return left.end == right.start and left.kind in WORDLIKE and right.kind in WORDLIKE


@settings(max_examples=GENERATED_N, deadline=None)
@given(seeds)
def test_formatting_twice_changes_nothing_and_never_the_meaning(seed: int) -> None:
    model, rng = model_of(seed)
    text = noisy(model.text(rng), rng)
    pretty = format_schema(text)
    assert format_schema(pretty) == pretty
    assert accept(pretty).shape() == accept(text).shape()


@settings(max_examples=GENERATED_N, deadline=None)
@given(seeds)
def test_formatting_keeps_every_token_and_every_comment(seed: int) -> None:
    model, rng = model_of(seed)
    text = noisy(model.text(rng), rng)

    def words(content: str) -> tuple[list[str], list[str]]:
        source = Source("<schema>", content)
        lexed = lex(source, Diagnostics(source))
        comments = [" ".join(comment.text.split()) for comment in lexed.comments]
        return [token.text for token in lexed.tokens], comments

    assert words(format_schema(text)) == words(text)


@settings(max_examples=GENERATED_N, deadline=None)
@given(seeds)
def test_S_52_the_hash_ignores_order_spelling_and_comments(seed: int) -> None:
    model, rng = model_of(seed)
    plain = accept(model.text())
    other = accept(model.text(rng), plain)
    assert other.hash == plain.hash
    assert plan_schema(plain, other).steps == ()
    assert {item.type_id for item in other.types()} == {item.type_id for item in plain.types()}


@settings(max_examples=GENERATED_N, deadline=None)
@given(seeds)
def test_an_accepted_schema_survives_json(seed: int) -> None:
    model, _ = model_of(seed)
    schema = accept(model.text())
    assert AcceptedSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@settings(max_examples=GENERATED_N, deadline=None)
@given(seeds, seeds)
def test_a_plan_names_every_type_that_comes_or_goes(one: int, two: int) -> None:
    before = accept(model_of(one)[0].text())
    after = accept(model_of(two)[0].text(), before)
    found = plan_schema(before, after)
    added = {step.entity for step in found.steps if step.kind == "add_type"}
    dropped = {step.entity for step in found.steps if step.kind == "drop_type"}
    keys_before = {item.key for item in before.types()}
    keys_after = {item.key for item in after.types()}
    assert {key for key in added if not key.startswith("interface:")} == keys_after - keys_before
    assert {key for key in dropped if not key.startswith("interface:")} == keys_before - keys_after
    assert plan_schema(after, accept(after.source, after)).steps == ()


ACCEPTED = {
    name: case["schema"]
    for name, case in CASES.items()
    if "schema" in case and "errors" not in case
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_formatting_every_accepted_case(text: str) -> None:
    pretty = format_schema(text)
    assert format_schema(pretty) == pretty
    assert accept(pretty).hash == accept(text).hash


PIECES = (
    *(
        "a",
        "é",
        ".",
        "^",
        "$",
        "|",
        "*",
        "+",
        "?",
        "(",
        ")",
        "[",
        "]",
        "[^",
        "{2}",
        "{2,}",
        "{1,9}",
    ),
    *(
        "{",
        "}",
        "-",
        "\\d",
        "\\W",
        "\\b",
        "\\z",
        "\\pL",
        "\\p{Greek}",
        "\\x41",
        "\\x{1F600}",
        "\\1",
    ),
    *("(?:", "(?i)", "(?s-m:", "(?P<n>", "(?=", "[[:alpha:]]", "\\.", "\\_", "a-z", "{1000}", " "),
)


@settings(max_examples=4 * GENERATED_N, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_S_24_every_pattern_that_is_accepted_compiles_in_the_engine(pattern: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pattern_problem(pattern) is None:
        found = pc.match_substring_regex(pa.array(["text"]), pattern=pattern)
        assert len(found) == 1
