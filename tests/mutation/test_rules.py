"""Every numbered rule of mutations and loads is named by a case or a test."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
RULES = {f"M-{n}" for n in (*range(1, 9), *range(10, 16), *range(20, 25), *range(30, 34))}
RULES |= {f"M-{n}" for n in range(40, 46)} | {f"L-{n}" for n in range(1, 19)}
RULES |= {f"X-{n}" for n in range(1, 6)}


def test_every_rule_has_a_test() -> None:
    named = set()
    for file in (TESTS / "cases" / "write").glob("*.toml"):
        named |= set(re.findall(r'^rule = "([A-Z]-\d+)"$', file.read_text(), re.MULTILINE))
    for file in TESTS.glob("*/test_*.py"):
        for name in re.findall(r"def test_(\w+)", file.read_text()):
            named |= {f"{letter}-{number}" for letter, number in re.findall(r"([MLX])_(\d+)", name)}
    assert sorted(RULES - named) == []
