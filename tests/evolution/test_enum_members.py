"""Renaming members of an enum: stored values follow, in the commit that changes the schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graphs import rows

import omnigraph
from omnigraph import Graph
from omnigraph.errors import LanguageError, SchemaChangeRefused

SCHEMA = "node Task { title: String @key  state: enum(open, done, idle)? @index }"
RENAMED = (
    "node Task { title: String @key  "
    'state: enum(open, closed, idle)? @index @rename_member("done", to="closed") }'
)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        for title, state in (("a", "open"), ("b", "done"), ("c", None)):
            w.insert("Task", {"title": title, "state": state})
    graph.maintenance.build_indexes()
    return graph


def states(graph: Graph, branch: str = "main") -> dict[str, object]:
    return {id: row["state"] for id, row in rows(graph, "node:Task", branch).items()}


def titles(graph: Graph, state: str, at: str | None = None) -> list[str]:
    text = f'query q() {{ match {{ $t: Task {{ state: "{state}" }} }} return {{ $t.title }} }}'
    return [row["t.title"] for row in graph.query(text, at=at).rows()]


def test_stored_values_get_the_new_name_in_one_commit(graph: Graph) -> None:
    before = graph.history.commits()
    done = graph.apply_schema(RENAMED)
    assert [step.to_json() for step in done.plan.steps] == [
        {
            "kind": "rename_enum_members",
            "type_kind": "node",
            "type_name": "Task",
            "property_name": "state",
            "renamed_values": [{"from": "done", "to": "closed"}],
        }
    ]
    assert len(graph.history.commits()) == len(before) + 1
    assert states(graph) == {"a": "open", "b": "closed", "c": None}
    assert titles(graph, "closed") == ["b"]
    assert titles(graph, "done", at=before[0].commit_id) == ["b"]
    assert [event.commit.kind for event in graph.history.entity("Task", "b")] == ["write"]
    assert not graph.apply_schema(RENAMED).applied
    graph.maintenance.optimize()
    assert titles(graph, "closed") == ["b"]
    assert graph.maintenance.check().findings == []


def test_a_rename_goes_with_new_members_and_another_name(graph: Graph) -> None:
    text = (
        "node Task { title: String @key  "
        "phase: enum(open, closed, idle, new)? @rename_from(state) "
        '@rename_member("done", to="closed") }'
    )
    done = graph.apply_schema(text)
    assert {step.kind for step in done.plan.steps} == {
        "rename_property",
        "rename_enum_members",
        "extend_enum",
        "drop_constraint",
    }
    phases = {id: row["phase"] for id, row in rows(graph, "node:Task").items()}
    assert phases == {"a": "open", "b": "closed", "c": None}


def test_a_branch_with_the_old_name_merges(graph: Graph) -> None:
    graph.branches.create("side")
    with graph.write("side") as w:
        w.insert("Task", {"title": "d", "state": "done"})
        w.update("Task", "a", {"state": "done"})
    graph.apply_schema(RENAMED)
    graph.apply_schema(RENAMED.replace("closed", "finished").replace("done", "closed"))
    graph.merge("side")
    assert states(graph) == {"a": "finished", "b": "finished", "c": None, "d": "finished"}


@pytest.mark.parametrize(
    ("enum", "hints", "problem"),
    [
        ("open, closed, idle", '@rename_member("gone", to="closed")', "no accepted member `gone`"),
        ("open, closed, idle", '@rename_member("done", to="finished")', "`finished` is no member"),
        ("open, closed, done, idle", '@rename_member("done", to="closed")', "still a member"),
        ("open, idle", '@rename_member("done", to="open")', "two members cannot become one"),
        (
            "open, x, y",
            '@rename_member("done", to="x") @rename_member("done", to="y")',
            "already continued by `x`",
        ),
        (
            "open, x",
            '@rename_member("done", to="x") @rename_member("idle", to="x")',
            "continues another member",
        ),
    ],
)
def test_what_is_ambiguous_is_refused(graph: Graph, enum: str, hints: str, problem: str) -> None:
    text = f"node Task {{ title: String @key  state: enum({enum})? @index {hints} }}"
    with pytest.raises(LanguageError, match=problem):
        graph.apply_schema(text)
    assert states(graph) == {"a": "open", "b": "done", "c": None}


def test_without_a_hint_a_member_in_use_cannot_go(graph: Graph) -> None:
    with pytest.raises(SchemaChangeRefused):
        graph.apply_schema(SCHEMA.replace("done", "closed"))


def test_a_hint_without_an_enum_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="stands on an enum"):
        omnigraph.init(tmp_path / "x", 'node T { s: String @rename_member("a", to="b") }')
