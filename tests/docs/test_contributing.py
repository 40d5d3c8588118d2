"""What the documents promise about the repository itself."""

from __future__ import annotations

import re
from pathlib import Path

from tests.budget import budgets

ROOT = Path(__file__).parents[2]
WORKERS = 2  # of `make test`
BUDGET_MAX_S = 21 * 60 * WORKERS


def test_the_time_budgets_add_up_to_less_than_twenty_one_minutes() -> None:
    assert 0 < sum(budgets().values()) < BUDGET_MAX_S


def test_every_suite_has_a_time_budget() -> None:
    suites = {
        f"tests/{folder.name}"
        for folder in (ROOT / "tests").iterdir()
        if folder.is_dir() and any(folder.rglob("test_*.py"))
    }
    assert suites <= budgets().keys()


def test_every_proof_that_SAFETY_names_exists() -> None:
    text = (ROOT / "SAFETY.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert rows
    for row in rows:
        named = re.findall(r"`((?:tests/|test_)[\w/.]*)(?:::(test_\w+)\*?)?`?", row.split("|")[3])
        assert named, f"no proof is named in: {row}"
        for path, test in named:
            found = list(ROOT.glob(path)) or list((ROOT / "tests").rglob(Path(path).name))
            assert found, f"{path} does not exist"
            if test:
                assert f"def {test}" in "".join(f.read_text() for f in found if f.is_file())


def test_the_licence_is_apache_2() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


def test_every_make_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE)) - {"help"}
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert targets <= explained
    assert {"demo", "test", "check", "crash", "bench", "docs"} <= explained
