"""``omnigraph schema``: plan, apply and show, as a person and as a program sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Program

import omnigraph as library

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n  email: String?\n}\n"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> library.Graph:
    monkeypatch.chdir(tmp_path)
    made = library.init("g", SCHEMA)
    with made.write() as w:
        w.insert("Person", {"name": "ana", "age": 30, "email": "a@x"})
    return made


def wanted(text: str) -> str:
    Path("wanted.pg").write_text(text)
    return "wanted.pg"


def test_plan_and_apply_say_the_same_steps(inline: Program, graph: library.Graph) -> None:
    file = wanted(SCHEMA.replace("age: I32?", "age: I64?\n  score: F64 @unique"))
    values = ("--backfill", "Person.score=1.5")
    plan = inline("schema", "plan", "g", "--schema", file, *values)
    assert (plan.code, plan.out.splitlines()) == (
        0,
        [
            "change_property_type node:Person.age : I32? to I64?",
            "add_property node:Person.score : F64",
            "add_constraint node:Person @unique(score) (checks stored data)",
        ],
    )
    done = inline("schema", "apply", "g", "--schema", file, *values, "-m", "scores", "--json")
    assert (done.code, done.json["supported"], done.json["applied"]) == (0, True, True)
    assert done.json["graph_commit_id"] == graph.snapshot().commit_id
    assert [step["kind"] for step in done.json["steps"]] == [
        "change_property_type",
        "add_property",
        "add_constraint",
    ]
    again = inline("schema", "apply", "g", "--schema", file)
    assert (again.code, again.out.splitlines()) == (0, ["nothing to do", "nothing to commit"])


def test_an_unsupported_change_is_named_with_its_code(
    inline: Program, graph: library.Graph
) -> None:
    file = wanted(SCHEMA.replace("age: I32?", "age: String?"))
    plan = inline("schema", "plan", "g", "--schema", file)
    assert plan.code == 1
    assert "[OG-MF-106]" in plan.out
    done = inline("schema", "apply", "g", "--schema", file, "--json")
    assert done.code == 1
    assert done.json["error"].startswith("[OG-MF-106] node:Person.age")
    assert done.json["reason"] == "schema_change_refused"


def test_what_was_dropped_is_asked_for_by_name(inline: Program, graph: library.Graph) -> None:
    first = graph.snapshot().commit_id
    file = wanted(SCHEMA.replace("  email: String?\n", ""))
    assert inline("schema", "apply", "g", "--schema", file).code == 0
    assert "email" not in inline("schema", "show", "g").out
    assert "email" in inline("schema", "show", "g", "--at", first).out
    file = wanted(SCHEMA)
    done = inline("schema", "apply", "g", "--schema", file, "--undrop", "Person.email")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "undrop_property node:Person.email : String?",
    )
    assert graph.entity("node:Person", "ana")["email"] == "a@x"


def test_a_branch_is_changed_on_its_own(inline: Program, graph: library.Graph) -> None:
    graph.branches.create("side")
    file = wanted(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'))
    assert inline("schema", "apply", "g", "--schema", file, "--branch", "side").code == 0
    assert "years" in inline("schema", "show", "g", "--branch", "side").out
    assert "years" not in inline("schema", "show", "g").out


def test_planning_between_files_takes_no_graph(inline: Program, graph: library.Graph) -> None:
    Path("old.pg").write_text(SCHEMA)
    file = wanted(SCHEMA + "node City {}\n")
    plan = inline("schema", "plan", "--schema", file, "--from", "old.pg", "--json")
    assert (plan.code, plan.json["step_count"]) == (0, 1)
    both = inline("schema", "plan", "g", "--schema", file, "--from", "old.pg")
    assert (both.code, "--from stands alone" in both.err) == (1, True)
