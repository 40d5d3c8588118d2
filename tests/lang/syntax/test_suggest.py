"""Did you mean."""

from __future__ import annotations

import pytest

from omnigraph.lang.syntax import closest, did_you_mean

NAMES = ("String", "DateTime", "Date", "I32", "I64", "handle", "capacity")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Strng", "String"),
        ("string", "String"),
        ("Stirng", "String"),
        ("Datetime", "DateTime"),
        ("Dat", "Date"),
        ("I23", "I32"),
        ("hanlde", "handle"),
        ("capcity", "capacity"),
        ("Integer", None),
        ("zz", None),
        ("", None),
        ("x" * 100, None),
    ],
)
def test_the_closest_name(name: str, meant: str | None) -> None:
    assert closest(name, NAMES) == meant


def test_a_name_is_not_suggested_for_itself() -> None:
    assert closest("Date", ("Date",)) is None


def test_of_two_equally_close_names_the_first_by_alphabet() -> None:
    assert closest("ab", ("ac", "aa")) == "aa"


def test_as_a_sentence() -> None:
    assert did_you_mean("Strng", NAMES) == "did you mean `String`?"
    assert did_you_mean("zz", NAMES) is None
