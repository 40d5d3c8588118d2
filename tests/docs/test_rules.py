"""Every rule that is cited by its number is written down, exactly once, in ``docs/spec``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs/spec"
LETTERS = "SQAMLVBCXNDPWRFOGI"
CITED = re.compile(rf"(?<![\w-])([{LETTERS}])-(\d+)([a-z]?)(?![\w-])")
IN_A_TEST_NAME = re.compile(rf"\btest_([{LETTERS}])_(\d+)([a-z]?)_")
WRITTEN = re.compile(rf"^\* \*\*([{LETTERS}])-(\d+)([a-z]?)\*\*", re.MULTILINE)
Rule = tuple[str, int, str]


def rules(text: str, pattern: re.Pattern[str]) -> list[Rule]:
    """Rule numbers in a text; ``S-08`` is ``S-8``."""
    return [(letter, int(number), part) for letter, number, part in pattern.findall(text)]


def citing_files() -> Iterator[Path]:
    for folder in ("src", "tests", "docs/adr", "docs/guides", "docs/reference", "benchmarks"):
        for suffix in ("*.py", "*.md", "*.toml"):
            yield from sorted((ROOT / folder).rglob(suffix))
    yield from (ROOT / "SAFETY.md", ROOT / "ARCHITECTURE.md")


def written() -> Counter[Rule]:
    return Counter(
        rule
        for path in SPEC.glob("*.md")
        for rule in rules(path.read_text(encoding="utf-8"), WRITTEN)
    )


def test_no_rule_is_written_down_twice() -> None:
    assert [rule for rule, times in written().items() if times > 1] == []


def test_every_cited_rule_is_written_down() -> None:
    known = written()
    assert len(known) > 200
    dangling = {}
    for path in citing_files():
        text = path.read_text(encoding="utf-8")
        cited = {*rules(text, CITED), *rules(text, IN_A_TEST_NAME)}
        if cited - known.keys():
            dangling[str(path.relative_to(ROOT))] = sorted(cited - known.keys())
    assert dangling == {}
