"""The query language reference: its examples compile, and nothing of the language is missing."""

from __future__ import annotations

import pytest
from tests.docs.query_tables import PAGE, blocks, page_schema

from omnigraph.lang.query import SchemaOrigin, format_queries, lint_queries
from omnigraph.lang.query.codes import PARSE_CODES, TYPE_CODES
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.lint import LINT_CODES
from omnigraph.lang.query.parse.words import OPERATORS, WORDS
from omnigraph.lang.syntax import Source
from omnigraph.lang.syntax.codes import SYNTAX_CODES

TEXT = PAGE.read_text("utf-8")
EXAMPLES = blocks("gq")


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(at) for at in range(len(EXAMPLES))])
def test_every_example_compiles(example: str) -> None:
    report = lint_queries(Source("example.gq", example), page_schema(), SchemaOrigin("file", ""))
    assert report.ok, report.render()
    assert report.results


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(at) for at in range(len(EXAMPLES))])
def test_every_example_is_formatted(example: str) -> None:
    assert format_queries(example) == example


def test_every_word_function_operator_and_code_is_in_the_reference() -> None:
    for name in (*WORDS, *OPERATORS, *SYNTAX_CODES, *PARSE_CODES, *TYPE_CODES, *LINT_CODES):
        assert f"| `{name}` |" in TEXT, name
    for function in FUNCTIONS.values():
        assert f"| `{function.signature}` |" in TEXT


def test_every_function_and_operator_is_used_by_an_example() -> None:
    everything = "\n".join(EXAMPLES)
    for name in FUNCTIONS:
        if name not in ("sum", "min"):
            assert f"{name}(" in everything, name
    for word in (*WORDS, "contains", "starts_with"):
        if word not in ("false", "true", "asc", "datetime", "@instruction"):
            assert word in everything, word
