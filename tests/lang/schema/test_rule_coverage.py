"""Every rule of the language has a test that is named after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RULES = [
    *(f"S_{number:02d}" for number in range(1, 42)),
    *("S_08b", "S_50", "S_51", "S_52"),
    *("V_01", "V_02", "V_03", "V_04", "V_05"),
    *("V_10", "V_11", "V_12", "V_13", "V_14", "V_20", "V_21"),
]
NAMES = {
    match
    for path in Path(__file__).parent.glob("test_*.py")
    for match in re.findall(r"def test_([SV]_\d+b?)_", path.read_text("utf-8"))
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_a_test(rule: str) -> None:
    assert rule in NAMES


def test_no_test_is_named_after_an_unknown_rule() -> None:
    assert set(RULES) >= NAMES
