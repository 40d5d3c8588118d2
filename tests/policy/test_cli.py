"""``omnigraph policy``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import run

BUNDLE = """
version: 2
groups: {people: [ana], agents: [bot]}
protected_branches: [main]
rules:
  - id: people-write
    allow: {actors: {group: people}, actions: [read, change]}
  - id: agents-write-own
    allow: {actors: {group: agents}, actions: [read, change], branches: ["agents/{actor}/*"]}
"""
CASES = """
version: 1
cases:
  - {id: people, actor: ana, action: change, branch: main, expect: allow}
  - {id: agents, actor: bot, action: change, branch: main, expect: EXPECT}
"""


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    path = tmp_path / "team.policy.yaml"
    path.write_text(BUNDLE)
    return str(path)


def output(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_validate_counts_rules_and_actors(bundle: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "validate", bundle, "--json"]) == 0
    found = output(capsys)
    assert (found["kind"], found["actors"], found["rules"]) == ("graph", 2, 2)


def test_explain_shows_the_decision_and_its_rule(
    bundle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["--actor", "bot", "--action", "change", "--branch", "agents/bot/1"]
    assert run(["policy", "explain", bundle, *question, "--json"]) == 0
    found = output(capsys)
    assert (found["decision"], found["matched_rule"]) == ("allow", "agents-write-own")


@pytest.mark.parametrize(("expect", "code"), [("deny", 0), ("allow", 1)])
def test_test_compares_with_expected_decisions(
    bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], expect: str, code: int
) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.replace("EXPECT", expect))
    assert run(["policy", "test", bundle, "--tests", str(cases), "--json"]) == code
    assert output(capsys)["failed"] == code


def test_cases_are_read_strictly(
    bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text("version: 1\ncases: [{id: a, actor: ana, action: fly, expect: maybe}]\n")
    assert run(["policy", "test", bundle, "--tests", str(cases), "--json"]) == 1
    error = output(capsys)["error"]
    assert "unknown action 'fly'" in error
    assert "must be allow or deny" in error


def test_diff_shows_what_changes_for_whom(
    bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wider = tmp_path / "wider.policy.yaml"
    wider.write_text(BUNDLE.replace("agents/{actor}/*", "agents/*"))
    assert run(["policy", "diff", bundle, bundle]) == 0
    assert capsys.readouterr().out == "no decision differs\n"
    assert run(["policy", "diff", bundle, str(wider), "--json"]) == 0
    changes = output(capsys)["changes"]
    assert {(one["actors"][0], one["action"], one["branch"], one["after"]) for one in changes} == {
        ("bot", "read", "agents/~other", "allow"),
        ("bot", "change", "agents/~other", "allow"),
    }
