"""The committed table: how it is written to and read from ``table.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.storage_calls.measure import Cell, Counts
from tests.storage_calls.operations import CLASSES

PATH = Path(__file__).parent / "table.toml"
_HEADER = """\
# Storage calls per operation, counted at the S3 test server (medians of three).
# Written by `python -m tests.storage_calls.regenerate`; asserted, within one per class, by
# tests/storage_calls/test_table.py. "1000 commits" means: at the same point of the upkeep cycle
# as "10 commits", so that equal numbers mean a cost that does not grow with history.
"""


def load() -> dict[Cell, Counts]:
    """The committed table."""
    stored = tomllib.loads(PATH.read_text())
    return {
        (operation, int(types.split()[0]), int(commits.split()[0])): dict(counts)
        for operation, by_types in stored.items()
        for types, by_commits in by_types.items()
        for commits, counts in by_commits.items()
    }


def save(measured: dict[Cell, Counts]) -> None:
    """Replace the committed table."""
    operations = dict.fromkeys(operation for operation, _, _ in measured)
    sections = []
    for operation in operations:
        lines = [f'["{operation}"]']
        for (name, types, commits), counts in measured.items():
            if name == operation:
                numbers = ", ".join(f"{c} = {counts[c]:>2}" for c in CLASSES)
                where = f'"{types} types"."{commits} commits"'
                lines.append(f"{where:28}= {{ {numbers} }}")
        sections.append("\n".join(lines))
    PATH.write_text(_HEADER + "\n" + "\n\n".join(sections) + "\n")
