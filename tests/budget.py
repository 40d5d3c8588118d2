"""Time budgets of the suites (they are in CONTRIBUTING.md): prints what was used of them.

The suites with the largest budgets run first, so that no worker is left with a long one at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^\| (tests/\w+) \| (\d+) \|$", re.MULTILINE)


def budgets() -> dict[str, int]:
    """Seconds per suite, as CONTRIBUTING.md promises them."""
    return {name: int(s) for name, s in _ROW.findall((ROOT / "CONTRIBUTING.md").read_text())}


def suite_of(nodeid: str) -> str:
    return "/".join(nodeid.split("::")[0].split("/")[:2])


class BudgetReport:
    """Adds up the time of every test by suite."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.used[suite_of(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        allowed = budgets()
        terminalreporter.section("time budget (seconds)")
        for suite, used in sorted(self.used.items()):
            note = "" if used <= allowed.get(suite, 0) else "  over budget"
            terminalreporter.write_line(f"{suite:24}{used:8.1f} of {allowed.get(suite, 0)}{note}")
        total = sum(self.used.values())
        terminalreporter.write_line(f"{'sum':24}{total:8.1f} of {sum(allowed.values())}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the controller hears of every test
        config.pluginmanager.register(BudgetReport(), "omnigraph-budget")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    allowed = budgets()
    items.sort(key=lambda item: allowed.get(suite_of(item.nodeid), 0), reverse=True)
