"""The schema language reference: examples compile, and nothing of the language is missing."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from tests.docs.generate import DOCS
from tests.lang.schema.support import accept, codes

from omnigraph.lang.schema.annotations import ONCE
from omnigraph.lang.schema.change.steps import StepKind
from omnigraph.lang.schema.codes import CHANGE_CODES, SCHEMA_CODES
from omnigraph.lang.schema.names import RESERVED_EVERYWHERE, RESERVED_ON_EDGES
from omnigraph.lang.schema.parse.parser import CONSTRAINT_WORDS, DECLARATION_WORDS
from omnigraph.lang.syntax.codes import SYNTAX_CODES
from omnigraph.model.types import SCALARS

PAGE = (DOCS / "language" / "schema.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```pg([^\n]*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("flags", "text"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_does_what_it_says(flags: str, text: str) -> None:
    if refused := re.fullmatch(r" refused: (\w+)", flags):
        assert codes(text) == [refused[1]]
    else:
        assert flags == ""
        assert accept(text).hash


WORDS = [
    *DECLARATION_WORDS,
    *("implements", "enum(", "Vector(", "@card", "@default"),
    *(f"@{word}" for word in (*CONSTRAINT_WORDS, *ONCE)),
    *SCALARS,
    *RESERVED_EVERYWHERE,
    *RESERVED_ON_EDGES,
    *SYNTAX_CODES,
    *SCHEMA_CODES,
    *CHANGE_CODES,
    *get_args(StepKind),
]


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_of_the_language_is_explained(word: str) -> None:
    assert f"`{word}" in PAGE or f"`{word}`" in PAGE
