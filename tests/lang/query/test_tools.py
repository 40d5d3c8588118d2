"""What stands beside the language: the editor grammar and the benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.language import BARS, TYPICAL, run

from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.parse.words import OPERATORS, WORDS

GRAMMAR = Path(__file__).parents[3] / "editors" / "gq.tmLanguage.json"


def patterns(node: Any) -> Iterator[tuple[str, str]]:
    """Every pattern of the grammar with the scope it gives."""
    if isinstance(node, dict):
        for key in ("match", "begin", "end"):
            if key in node:
                yield str(node.get("name", "")), node[key]
        for value in node.values():
            yield from patterns(value)
    elif isinstance(node, list):
        for value in node:
            yield from patterns(value)


def test_the_editor_grammar_knows_every_word_function_and_operator() -> None:
    found = list(patterns(json.loads(GRAMMAR.read_text())))
    everything = " ".join(pattern for _, pattern in found)
    for name in (*(word.lstrip("@") for word in WORDS), *FUNCTIONS, *OPERATORS):
        assert re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", everything), name


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        ("keyword.control.gq", "match {"),
        ("keyword.control.gq", "limit 10"),
        ("keyword.control.gq", "where nick"),
        ("support.function.gq", "nearest("),
        ("constant.numeric.gq", "2.5"),
        ("entity.name.type.gq", "Person"),
        ("storage.modifier.annotation.gq", "@description"),
        ("comment.line.double-slash.gq", "// why"),
    ],
)
def test_the_editor_grammar_recognises(scope: str, text: str) -> None:
    found = patterns(json.loads(GRAMMAR.read_text()))
    assert any(name == scope and re.match(pattern, text) for name, pattern in found)


def test_the_benchmark_measures_what_has_a_bar() -> None:
    results = run(repetitions=1, calls=2)
    assert set(BARS) <= set(results)
    assert all(item["min"] > 0 for item in results.values())
    assert "match" in TYPICAL
