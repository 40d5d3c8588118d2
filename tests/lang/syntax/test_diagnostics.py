"""Findings as data and as text, and how many are kept."""

from __future__ import annotations

import json
import pickle

import pytest

from omnigraph.errors import LanguageError
from omnigraph.lang.schema import accept_schema
from omnigraph.lang.syntax import (
    DIAGNOSTICS_MAX,
    Diagnostic,
    Diagnostics,
    Source,
    SourceError,
    Span,
)
from omnigraph.model.ids import new_ulid

SOURCE = Source("a.pg", "node A {\n  k: Strng @key\n}\n")
FINDING = Diagnostic(
    "P005",
    "unknown type `Strng`",
    Span(14, 19),
    expected=("`[`", "a type"),
    hint="did you mean `String`?",
    remedy="Use a known type.",
)


def test_a_finding_as_text() -> None:
    assert FINDING.render(SOURCE) == (
        "a.pg:2:6: error[P005]: unknown type `Strng`\n"
        "2 |   k: Strng @key\n"
        "  |      ^^^^^\n"
        "  = expected `[` or a type\n"
        "  = did you mean `String`?\n"
        "  = help: Use a known type."
    )


def test_a_finding_without_a_place() -> None:
    assert Diagnostic("X1", "odd", severity="warning").render(SOURCE) == "a.pg: warning[X1]: odd"


def test_a_finding_as_data() -> None:
    assert json.loads(json.dumps(FINDING.to_json(SOURCE))) == {
        "code": "P005",
        "severity": "error",
        "message": "unknown type `Strng`",
        "file": "a.pg",
        "line": 2,
        "column": 6,
        "end_line": 2,
        "end_column": 11,
        "span": {"start": 14, "end": 19},
        "source_line": "  k: Strng @key",
        "expected": ["`[`", "a type"],
        "hint": "did you mean `String`?",
        "remedy": "Use a known type.",
    }


def test_many_choices_are_cut() -> None:
    many = Diagnostic("X1", "odd", Span(0, 1), expected=tuple("abcdefghijkl"))
    assert "expected a, b, c, d, e, f, g, h or something else" in many.render(SOURCE)


def test_findings_come_in_text_order() -> None:
    diagnostics = Diagnostics(SOURCE)
    for start in (9, 3, 5):
        diagnostics.error("X1", str(start), Span(start, start + 1))
    diagnostics.warning("X2", "no place", None)
    assert [item.message for item in diagnostics.items] == ["no place", "3", "5", "9"]


def test_only_errors_raise() -> None:
    diagnostics = Diagnostics(SOURCE)
    diagnostics.warning("X1", "odd", None)
    diagnostics.raise_errors()
    diagnostics.error("X2", "wrong", Span(0, 4))
    with pytest.raises(SourceError) as caught:
        diagnostics.raise_errors()
    assert [item.code for item in caught.value.diagnostics] == ["X1", "X2"]
    assert caught.value.message == "a.pg:1:1: error[X2]: wrong"


def test_the_number_of_findings_is_bounded() -> None:
    diagnostics = Diagnostics(SOURCE)
    for _ in range(DIAGNOSTICS_MAX + 5):
        diagnostics.error("X1", "wrong", Span(0, 1))
    with pytest.raises(SourceError) as caught:
        diagnostics.raise_errors()
    error = caught.value
    assert len(error.diagnostics) == DIAGNOSTICS_MAX
    assert error.omitted == 5
    assert error.message.endswith(f"(and {DIAGNOSTICS_MAX + 4} more)")
    assert error.render().endswith("5 further findings are not shown")
    assert error.details["omitted"] == 5


def test_the_error_is_a_language_error_that_travels() -> None:
    error = SourceError(SOURCE, [FINDING])
    assert isinstance(error, LanguageError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.diagnostics, copy.render()) == (error.diagnostics, error.render())
    body = error.to_json()
    assert body["reason"] == "language_error"
    assert body["details"]["diagnostics"][0]["line"] == 2


def test_an_error_in_python_shows_the_place_and_the_suggestion() -> None:
    with pytest.raises(SourceError) as caught:
        accept_schema("node City { name: Strng @key }", name="s.pg", mint=new_ulid)
    shown = str(caught.value)
    assert "s.pg:1:19" in shown
    assert "1 | node City { name: Strng @key }\n" in shown
    assert "^^^^^" in shown
    assert "did you mean `String`?" in shown
    assert str(pickle.loads(pickle.dumps(caught.value))) == shown
