"""Broken texts: whatever comes in, nothing but typed errors comes out, and soon.

The normal suite looks at a few thousand inputs; OMNIGRAPH_FUZZ_N sets another number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import Random
from time import monotonic

import pytest
from tests.lang.query.loading import cases, query_text, schema
from tests.support.generate_query import QueryGenerator
from tests.support.mutate import random_text

from omnigraph.lang.query import (
    SchemaOrigin,
    check_query,
    explain,
    format_queries,
    lint_queries,
    parse_queries,
    plan_query,
)
from omnigraph.lang.syntax import SourceError
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import lex
from omnigraph.lang.syntax.source import Source

INPUTS = int(os.environ.get("OMNIGRAPH_FUZZ_N", "3000"))
SECONDS_MAX = 5.0
SHARDS = 4
CORPUS = [
    query_text(case)
    for case in cases("spec", "grammar", "typing", "expressions", "results", "mutations")
]


def swapped(text: str, random: Random) -> str:
    """Two tokens exchanged, which keeps a text close to the grammar."""
    source = Source("<fuzz>", text)
    tokens = lex(source, Diagnostics(source)).tokens[:-1]
    if len(tokens) < 2:
        return text
    first, second = sorted(random.sample(tokens, 2), key=lambda token: token.start)
    middle = text[first.end : second.start]
    return text[: first.start] + second.text + middle + first.text + text[second.end :]


def generated_input(random: Random) -> str:
    """A text that is wrong in one of many ways, or with luck still right."""
    good = random.choice(CORPUS)
    if random.random() < 0.4:
        good = QueryGenerator(schema("world"), random).query().text()
    return swapped(good, random) if random.random() < 0.3 else random_text(random, [good])


def problem_of(work: Callable[[], object]) -> SourceError | None:
    """The typed error of a piece of work; any other exception passes through."""
    try:
        work()
    except SourceError as error:
        return error
    return None


def try_everything(text: str) -> None:
    """Every entry point on one text; only typed errors may escape it."""
    problem = problem_of(lambda: parse_queries(text))
    if problem is not None:
        assert all(item.code.startswith("P") for item in problem.diagnostics)
        assert problem.render()
        assert problem.to_json()["details"]["diagnostics"]
        return
    file = parse_queries(text)
    once = format_queries(text)
    assert format_queries(once) == once
    assert parse_queries(once) == file
    report = lint_queries(text, schema("world"), SchemaOrigin("file", "world.pg"))
    for query, result in zip(file.queries, report.results, strict=True):
        problem = problem_of(partial(check_query, query, schema("world"), file.source))
        assert (problem is None) == (result.error is None)
        if problem is None:
            checked = check_query(query, schema("world"), file.source)
            assert explain(plan_query(checked, schema("world")))
        else:
            assert all(item.code.startswith("T") for item in problem.diagnostics)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_untyped_exception(shard: int) -> None:
    for seed in range(shard, INPUTS, SHARDS):
        text = generated_input(Random(seed))
        started = monotonic()
        try:
            try_everything(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error
        assert monotonic() - started < SECONDS_MAX, f"seed {seed}"
