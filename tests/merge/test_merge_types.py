"""Values and properties that the other side's schema has no place for: typed conflicts, no loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflicts

TEXT = """
node T {
  name: String @key
  n: I32?
  u: U32?
  f: F32?
  many: [I32]?
  kind: enum(red, blue)?
  note: String?
  raw: Blob?
}
"""
WIDER = [("I32?", "I64?"), ("U32?", "U64?"), ("F32?", "F64?"), ("[I32]?", "[I64]?")]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", TEXT)
    with graph.write() as w:
        w.insert("T", {"name": "a", "n": 1, "u": 1, "f": 0.5, "many": [1], "kind": "red"})
    graph.branches.create("dev")
    return graph


def edit(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def update(graph: Graph, branch: str, **values: Any) -> str:
    with graph.write(branch) as w:
        w.update("T", "a", values)
    return graph.snapshot(branch).commit_id


def picked(graph: Graph, commit: str, **options: Any) -> Any:
    return graph.cherry_pick(commit, **options)


def restored(graph: Graph, commit: str) -> Any:
    return graph.restore(commit, {"node:T": ["a"]})


def refused(bring: Callable[[], Any]) -> list[dict[str, Any]]:
    with pytest.raises(MergeConflicts) as caught:
        bring()
    return caught.value.conflicts


MISFITS = {
    "n": (2**40, "I64?", "I32?"),
    "u": (2**40, "U64?", "U32?"),
    "f": (0.1, "F64?", "F32?"),
    "many": ([1, 2**40], "[I64]?", "[I32]?"),
}


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("bring", [picked, restored])
def test_a_value_that_does_not_fit_is_a_conflict(graph: Graph, name: str, bring: Any) -> None:
    value, wide, narrow = MISFITS[name]
    graph.apply_schema(edit(*WIDER), branch="dev")
    commit = update(graph, "dev", **{name: value})
    head = graph.snapshot().commit_id

    (conflict,) = refused(lambda: bring(graph, commit))

    assert (conflict["kind"], conflict["entity_id"]) == ("value_constraint_violation", "a")
    assert conflict["properties"] == [name]
    assert conflict["theirs"] == {name: value}
    assert conflict["ours"] == {name: graph.entity("node:T", "a")[name]}
    assert f"of type {wide} does not fit {narrow}" in conflict["message"]
    assert graph.snapshot().commit_id == head


@pytest.mark.parametrize("bring", [picked, restored])
def test_values_that_fit_arrive(graph: Graph, bring: Any) -> None:
    graph.apply_schema(edit(*WIDER), branch="dev")
    commit = update(graph, "dev", n=7, u=2**32 - 1, f=0.25, many=[2, -(2**31)])
    assert bring(graph, commit) is not None
    found = graph.entity("node:T", "a")
    assert (found["n"], found["u"], found["f"]) == (7, 2**32 - 1, 0.25)
    assert found["many"] == [2, -(2**31)]


def test_a_value_that_does_not_fit_can_be_decided(graph: Graph) -> None:
    graph.apply_schema(edit(*WIDER), branch="dev")
    commit = update(graph, "dev", n=2**40, note="x")
    (conflict,) = refused(lambda: graph.cherry_pick(commit))
    graph.cherry_pick(commit, resolutions=[{**conflict, "take": "ours"}])
    found = graph.entity("node:T", "a")
    assert (found["n"], found["note"]) == (1, "x")


def test_a_value_of_both_sides_that_does_not_fit(graph: Graph) -> None:
    """Contested, and one of the outcomes has no place: both are told."""
    graph.apply_schema(edit(*WIDER), branch="dev")
    commit = update(graph, "dev", n=2**40)
    update(graph, "main", n=5)
    kinds = {c["kind"]: c for c in refused(lambda: graph.cherry_pick(commit))}
    assert set(kinds) == {"divergent_update", "value_constraint_violation"}
    assert kinds["value_constraint_violation"]["depends_on"][0]["entity_id"] == "a"
    ours = [{**kinds["divergent_update"], "take": "ours"}]
    assert graph.cherry_pick(commit, resolutions=ours) is None
    (left,) = refused(lambda: graph.cherry_pick(commit, strategy="theirs"))
    assert left["kind"] == "value_constraint_violation"


def test_a_revert_across_a_wider_type(graph: Graph) -> None:
    """The number is the same number in both types."""
    update(graph, "main", n=9)
    changed = graph.snapshot().commit_id
    graph.apply_schema(edit(*WIDER))
    update(graph, "main", note="later")
    assert graph.revert(changed) is not None
    assert graph.entity("node:T", "a")["n"] == 1


def test_a_member_that_the_branch_does_not_have(graph: Graph) -> None:
    graph.apply_schema(edit(("enum(red, blue)", "enum(red, blue, green)")), branch="dev")
    commit = update(graph, "dev", kind="green")
    (conflict,) = refused(lambda: graph.cherry_pick(commit))
    assert conflict["kind"] == "value_constraint_violation"
    assert conflict["theirs"] == {"kind": "green"}
    assert "not one of" in conflict["message"]


def test_a_renamed_member_is_no_change(graph: Graph) -> None:
    renamed = edit(("enum(red, blue)?", 'enum(rose, blue)? @rename_member("red", to="rose")'))
    graph.apply_schema(renamed)
    update(graph, "dev", kind="blue")
    update(graph, "main", note="mine")
    graph.merge("dev", level="property")
    found = graph.entity("node:T", "a")
    assert (found["kind"], found["note"]) == ("blue", "mine")


def test_a_missing_value_that_the_branch_requires(graph: Graph) -> None:
    commit = update(graph, "dev", n=None)
    graph.apply_schema(edit(("n: I32?", "n: I32")))
    for bring in (
        lambda: graph.cherry_pick(commit),
        lambda: graph.restore(commit, {"node:T": ["a"]}),
        lambda: graph.merge("dev"),
    ):
        (conflict,) = refused(bring)
        assert conflict["kind"] == "value_constraint_violation"
        assert (conflict["ours"], conflict["theirs"]) == ({"n": 1}, {"n": None})
    graph.merge("dev", resolutions=[{**conflict, "take": "ours"}])
    assert graph.entity("node:T", "a")["n"] == 1


def test_everything_is_told_where_a_required_value_is_missing(tmp_path: Path) -> None:
    """Missing values hid what other rules had to say."""
    text = "node T { name: String @key  n: I32?  mail: String? @unique }"
    graph = omnigraph.init(tmp_path / "g", text)
    graph.load([{"type": "T", "data": {"name": "a", "n": 1}}], mode="merge")
    graph.branches.create("dev")
    for branch, name, n in (("dev", "b", None), ("main", "c", 2)):
        data = {"name": name, "n": n, "mail": "x"}
        graph.load([{"type": "T", "data": data}], mode="merge", branch=branch)
    graph.apply_schema(text.replace("I32?", "I32"))
    found = refused(lambda: graph.merge("dev"))
    assert [c["kind"] for c in found] == ["unique_violation", "value_constraint_violation"]


# -- dropped properties ----------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [("dev", "main"), ("main", "dev")])
@pytest.mark.parametrize("change", ["update", "insert", "blob"])
def test_a_property_dropped_here_and_changed_there_is_a_conflict(
    graph: Graph, direction: tuple[str, str], change: str
) -> None:
    graph.apply_schema(edit(("  note: String?\n", ""), ("  raw: Blob?\n", "")), branch="dev")
    if change == "update":
        update(graph, "main", note="mine")
    elif change == "blob":
        update(graph, "main", raw=b"mine")
    else:
        with graph.write() as w:
            w.insert("T", {"name": "b", "note": "mine"})
    name = "raw" if change == "blob" else "note"
    for options in ({}, {"strategy": "theirs"}, {"level": "entity"}):
        (conflict,) = refused(lambda options=options: graph.merge(*direction, **options))
        assert (conflict["kind"], conflict["entity_id"]) == ("delete_vs_update", None)
        assert conflict["properties"] == [name]
        assert [e["entity_id"] for e in conflict["related"]] == ["b" if change == "insert" else "a"]
    preview = graph.merge(*direction, dry_run=True)
    assert preview.outcome == "conflicts"
    graph.merge(*direction, resolutions=[{**conflict, "take": "delete"}])
    assert name not in graph.entity("node:T", "a", branch=direction[1])


def test_a_property_dropped_here_and_left_alone_there_is_dropped(graph: Graph) -> None:
    graph.apply_schema(edit(("  note: String?\n", "")), branch="dev")
    update(graph, "main", n=3)
    graph.merge("dev")
    assert "note" not in graph.entity("node:T", "a")


def test_a_default_of_a_dropped_property_is_nothing_to_lose(tmp_path: Path) -> None:
    text = "node T { name: String @key  n: I32 @default(5) }"
    graph = omnigraph.init(tmp_path / "g", text)
    graph.branches.create("dev")
    graph.apply_schema("node T { name: String @key }", branch="dev")
    graph.load([{"type": "T", "data": {"name": "a"}}], mode="merge")
    assert graph.merge("dev", dry_run=True).conflicts == ()
    graph.load([{"type": "T", "data": {"name": "b", "n": 6}}], mode="merge")
    (conflict,) = refused(lambda: graph.merge("dev"))
    assert [e["entity_id"] for e in conflict["related"]] == ["b"]


def test_a_picked_value_of_a_property_that_is_not_there(graph: Graph) -> None:
    commit = update(graph, "dev", note="theirs", n=4)
    graph.apply_schema(edit(("  note: String?\n", "")))
    (conflict,) = refused(lambda: graph.cherry_pick(commit))
    assert conflict["properties"] == ["note"]
    graph.cherry_pick(commit, resolutions=[{**conflict, "take": "delete"}])
    assert graph.entity("node:T", "a")["n"] == 4


def test_what_was_dropped_since_is_left_out_of_a_restore_and_a_revert(graph: Graph) -> None:
    old = update(graph, "main", note="old", n=2)
    update(graph, "main", note="new", n=3)
    graph.apply_schema(edit(("  note: String?\n", "")))
    graph.restore(old, {"node:T": ["a"]})
    assert graph.entity("node:T", "a")["n"] == 2
    graph.revert(graph.snapshot().commit_id)
    assert graph.entity("node:T", "a")["n"] == 3


def test_a_dropped_type_is_told_together_with_everything_else(tmp_path: Path) -> None:
    text = "node T { name: String @key  n: I32? }\n"
    graph = omnigraph.init(tmp_path / "g", text + "node Gone { name: String @key }\n")
    graph.load([{"type": "T", "data": {"name": "a", "n": 0}}], mode="merge")
    graph.branches.create("dev")
    graph.apply_schema(text, branch="dev")
    for branch, n in (("dev", 1), ("main", 2)):
        update(graph, branch, n=n)
    graph.load([{"type": "Gone", "data": {"name": "x"}}], mode="merge")
    gone, changed = refused(lambda: graph.merge("dev"))
    assert (gone["type_name"], changed["entity_id"]) == ("Gone", "a")
    decided = [{**gone, "take": "delete"}, {**changed, "take": "theirs"}]
    graph.merge("dev", resolutions=decided)
    assert set(graph.snapshot().pins) == {"node:T"}
