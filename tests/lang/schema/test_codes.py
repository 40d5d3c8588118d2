"""Codes are documented, and every documented code can occur."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lang.schema.support import codes
from tests.lang.schema.test_cases import CASES

import omnigraph.lang.schema
import omnigraph.lang.syntax
from omnigraph.lang.schema.codes import CHANGE_CODES, SCHEMA_CODES
from omnigraph.lang.syntax.codes import SYNTAX_CODES

TEXT_CODES = {**SYNTAX_CODES, **SCHEMA_CODES}
NEVER_IN_A_SCHEMA = {"P007": "schemas do not nest"}


def used_in_source() -> set[str]:
    found: set[str] = set()
    for package in (omnigraph.lang.schema, omnigraph.lang.syntax):
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            if path.name != "codes.py":
                found |= set(re.findall(r'"(S\d+|P\d{3}|V\d+|OG-[A-Z]+-\d+)"', path.read_text()))
    return found


def test_the_tables_hold_exactly_the_codes_in_use() -> None:
    given_out = {code for code, item in CHANGE_CODES.items() if not item.reserved}
    assert used_in_source() == set(TEXT_CODES) | given_out


def test_every_code_has_a_case() -> None:
    seen = {"P006", "P008", *NEVER_IN_A_SCHEMA}
    for case in CASES.values():
        seen |= {text.split()[0] for text in case.get("errors", ())}
    assert set(TEXT_CODES) <= seen


@pytest.mark.parametrize(("text", "code"), [("é" * 600_000, "P006"), ("\ud800", "P008")])
def test_codes_that_case_files_cannot_hold(text: str, code: str) -> None:
    assert codes(text) == [code]
