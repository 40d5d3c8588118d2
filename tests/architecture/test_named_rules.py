"""Every rule of schema changes (V), export and upkeep (X) has a test that carries its number, and
so have the rules of recovery (R), of the write path (W) and of the adapter (O) listed here."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
RULES = {
    "V": {*range(1, 6), *range(10, 22)},
    "R": {4, 5, 6, 7, 8, 9, 10},
    "W": {2, 7, 8},
    "O": {4},
    "X": {1, 2, 3, 4, 5, 10, 11, 20, 21, 30, 31, 40, 41, 42},
}


def test_every_rule_has_a_test_with_its_number() -> None:
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    names = re.findall(r"def test_([VXRWO])_(\d+)_", "\n".join(texts))
    found = {letter: {int(n) for kind, n in names if kind == letter} for letter in RULES}
    missing = {letter: rules - found[letter] for letter, rules in RULES.items()}
    assert missing == {key: set() for key in RULES}
