"""Every rule has a test named after it, every code a case, and the room keeps its promises."""

from __future__ import annotations

import ast as python
import re
from pathlib import Path

import pytest
from tests.lang.query.loading import cases

import omnigraph.lang.query
from omnigraph.lang.query.codes import PARSE_CODES, TYPE_CODES
from omnigraph.lang.query.lint import LINT_CODES
from omnigraph.lang.syntax.codes import SYNTAX_CODES

HERE = Path(__file__).parent
ROOM = Path(omnigraph.lang.query.__file__).parent
FILES = (
    "spec",
    "grammar",
    "typing",
    "expressions",
    "results",
    "mutations",
    "plans",
    "parameters",
    "lint",
    "format",
)

RULES = (
    *(f"Q-{number}" for number in (1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24)),
    *(f"Q-{number}" for number in (30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 44, 45)),
    *(f"Q-{number}" for number in (46, 47, 48, 49, 51, 60, 61, 62, 63, 64, 65, 66, 68, 70)),
    *(
        f"Q-{number}"
        for number in ("73", "74", "74b", "74c", "74d", "75", "76", "77", "78", "80", "81")
    ),
    *(f"M-{number}" for number in (1, 2, 8, 10, 13, 14, 15, 20, 21, 30, 31)),
    *(f"N-{number}" for number in range(1, 7)),
    *(f"T{number}" for number in range(1, 25) if number != 16),
)
NOT_A_TEXT = ("P006", "P007", "P008", "P009", "T44")
"""Codes that need a test of their own: their texts do not fit a line, or no text shows them."""


def rules_with_tests() -> set[str]:
    """Rules that cases are about, and those in the names of test functions."""
    found = {case["rule"] for case in cases(*FILES)}
    for path in HERE.glob("test_*.py"):
        for match in re.finditer(r"def test_([a-z]\d+)_", path.read_text()):
            found.add(match[1].upper())
    return found


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test_named_after_it(rule: str) -> None:
    assert rule in rules_with_tests()


def test_every_code_is_reported_by_a_case() -> None:
    reported = {code for case in cases(*FILES) for code in case.get("codes", ())}
    known = {*SYNTAX_CODES, *PARSE_CODES, *TYPE_CODES}
    assert reported <= known
    assert known - reported == set(NOT_A_TEXT)


def test_every_lint_code_is_reported_by_a_case() -> None:
    everything = " ".join(case["report"] for case in cases("lint"))
    for code in LINT_CODES:
        assert f'"{code}"' in everything


def test_every_code_in_the_sources_is_in_the_table() -> None:
    used = set()
    for path in (*ROOM.rglob("*.py"), *(ROOM.parent / "syntax").glob("*.py")):
        if path.name != "codes.py":
            used |= set(re.findall(r'"([PT]\d+)"', path.read_text()))
    assert used == {*SYNTAX_CODES, *PARSE_CODES, *TYPE_CODES}


def test_there_are_many_cases_and_no_two_of_one_name() -> None:
    names = [(case["file"], case["rule"], case["name"]) for case in cases(*FILES)]
    assert len(set(names)) == len(names)
    own = [name for name in names if name[0] != "spec"]
    assert len(own) >= 200


def test_the_room_imports_only_what_is_below_it() -> None:
    allowed = (
        "omnigraph.lang.query",
        "omnigraph.lang.schema",
        "omnigraph.lang.syntax",
        "omnigraph.errors",
        "omnigraph.model.calendar",
        "omnigraph.model.floats",
        "omnigraph.model.lru",
        "omnigraph.model.python_values",
        "omnigraph.model.types",
    )
    for path in ROOM.rglob("*.py"):
        for node in python.walk(python.parse(path.read_text())):
            if isinstance(node, python.ImportFrom) and (node.module or "").startswith("omnigraph"):
                assert str(node.module).startswith(allowed), path


def test_the_exports_are_exact() -> None:
    names = omnigraph.lang.query.__all__
    assert names == sorted(names)
    for name in names:
        assert getattr(omnigraph.lang.query, name)
