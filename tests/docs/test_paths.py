"""Modules and decisions that the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = (ROOT, ROOT / "src", ROOT / "src" / "omnigraph")
SUPERSEDED = "0017-starting-quickly.md"
"""Describes modules that are gone, for its figures."""
DOCUMENTS = [
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.name != SUPERSEDED),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"`([a-z_]+/[\w/]+\.(?:py|toml))`", document.read_text()))
    missing = {name for name in named if not any((root / name).exists() for root in ROOTS)}
    assert missing == set()


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text()
    files = {path.name for path in folder.glob("0*.md")}
    assert set(re.findall(r"\]\((0\d+-[\w-]+\.md)\)", index)) == files
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", index, re.MULTILINE)]
    assert numbers == sorted(set(numbers))
