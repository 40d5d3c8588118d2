"""Every rule of schema changes (V), export and upkeep (X) has a test that carries its number."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
RULES = {
    "V": {*range(1, 6), *range(10, 22)},
    "X": {1, 2, 3, 4, 5, 10, 11, 20, 21, 30, 31, 40, 41, 42},
}


def test_every_rule_has_a_test_with_its_number() -> None:
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    names = re.findall(r"def test_([VX])_(\d+)_", "\n".join(texts))
    found = {letter: {int(n) for kind, n in names if kind == letter} for letter in RULES}
    assert {letter: rules - found[letter] for letter, rules in RULES.items()} == {
        "V": set(),
        "X": set(),
    }
