"""The language verbs: lint, fmt, explain, schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Program

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person\n"
GOOD = "query q($n: String) { match { $p: Person {name: $n} } return { $p.age } }\n"
BAD = "query q() { match { $p: Persn } return { $p.age } }\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "good.gq").write_text(GOOD)
    (tmp_path / "bad.gq").write_text(BAD)
    return tmp_path


def test_lint_says_what_is_wrong_and_where(omnigraph: Program, files: Path) -> None:
    done = omnigraph("lint", "--schema", "s.pg", "--query", "bad.gq")
    assert done.code == 1
    assert "bad.gq:1:25: error[T1]" in done.out
    assert "did you mean `Person`" in done.out
    assert omnigraph("lint", "--schema", "s.pg", "--query", "good.gq").code == 0


def test_lint_as_data_has_the_documented_shape(omnigraph: Program, files: Path) -> None:
    done = omnigraph("lint", "--schema", "s.pg", "--query", "bad.gq", "--json")
    assert done.code == 1
    assert done.json["status"] == "error"
    assert done.json["schema_source"] == {"kind": "file", "path": "s.pg"}
    assert (done.json["errors"], done.json["queries_processed"]) == (1, 1)


def test_lint_checks_a_schema_alone(omnigraph: Program, files: Path) -> None:
    done = omnigraph("lint", "--schema", "s.pg")
    assert (done.code, done.out.startswith("the schema is fine: ")) == (0, True)
    (files / "bad.pg").write_text("node City { name: Strng @key }")
    wrong = omnigraph("lint", "--schema", "bad.pg")
    assert wrong.code == 1
    assert "bad.pg:1:19" in wrong.err
    assert "did you mean `String`?" in wrong.err
    assert omnigraph("lint", "--schema", "bad.pg", "--json").json["reason"] == "language_error"
    assert omnigraph("lint").code == 1


def test_lint_takes_the_schema_of_a_graph(omnigraph: Program, files: Path) -> None:
    assert omnigraph("init", "--schema", "s.pg", "g").code == 0
    done = omnigraph("lint", "g", "--query", "good.gq", "--json")
    assert (done.code, done.json["schema_source"]["kind"]) == (0, "graph")
    both = omnigraph("lint", "g", "--schema", "s.pg", "--query", "good.gq")
    assert (both.code, "Keep one" in both.err) == (1, True)


def test_fmt_rewrites_once_and_check_changes_nothing(omnigraph: Program, files: Path) -> None:
    before = (files / "good.gq").read_text()
    check = omnigraph("fmt", "--check", "good.gq", "s.pg")
    assert check.code == 1
    assert (files / "good.gq").read_text() == before
    assert omnigraph("fmt", "good.gq", "s.pg").code == 0
    assert (files / "good.gq").read_text() != before
    again = omnigraph("fmt", "--check", "good.gq", "s.pg", "--json")
    assert (again.code, again.json["changed"]) == (0, [])


def test_fmt_touches_nothing_when_one_file_is_wrong(omnigraph: Program, files: Path) -> None:
    (files / "broken.gq").write_text("query {")
    before = (files / "good.gq").read_text()
    done = omnigraph("fmt", "good.gq", "broken.gq")
    assert done.code == 1
    assert "broken.gq:1" in done.err
    assert (files / "good.gq").read_text() == before
    assert omnigraph("fmt", "notes.txt").code == 1


def test_fmt_upgrade_quotes_edges_called_like_operators(omnigraph: Program, files: Path) -> None:
    old = "query q() { match { $a: Person  $a in $b } return { $b.age } }"
    (files / "old.gq").write_text(old)
    assert omnigraph("fmt", "--upgrade", "old.gq", "s.pg").code == 0
    assert '$a "in" $b' in (files / "old.gq").read_text()


def test_explain_shows_the_plan(omnigraph: Program, files: Path) -> None:
    done = omnigraph("explain", "--query", "good.gq", "--schema", "s.pg")
    assert done.code == 0
    assert "scan" in done.out
    assert "$p: Person where $p.name = $n" in done.out
    assert omnigraph("explain", "--query", "good.gq", "--schema", "s.pg", "--json").json
    text = (files / "good.gq").read_text()
    again = omnigraph("explain", "-e", text, "--schema", "s.pg")
    assert (again.code, again.out) == (0, done.out)
    assert omnigraph("explain", "--schema", "s.pg").code == 1


def test_schema_show_and_plan(omnigraph: Program, files: Path) -> None:
    assert omnigraph("init", "--schema", "s.pg", "g").code == 0
    assert omnigraph("schema", "show", "g", "--json").json == {"schema_source": SCHEMA}
    (files / "next.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n mail: String?"))
    plan = omnigraph("schema", "plan", "g", "--schema", "next.pg", "--json")
    assert (plan.code, plan.json["supported"], plan.json["step_count"]) == (0, True, 1)
    assert plan.json["steps"][0]["kind"] == "add_property"
    offline = omnigraph("schema", "plan", "--from", "s.pg", "--schema", "next.pg")
    assert offline.out.startswith("add_property node:Person.mail")
    same = omnigraph("schema", "plan", "--from", "s.pg", "--schema", "s.pg")
    assert same.out == "nothing to do\n"


def test_an_unsupported_change_fails_with_its_code(omnigraph: Program, files: Path) -> None:
    (files / "next.pg").write_text(SCHEMA.replace("age: I32?", "age: String?"))
    plan = omnigraph("schema", "plan", "--from", "s.pg", "--schema", "next.pg")
    assert plan.code == 1
    assert "OG-MF-" in plan.out
