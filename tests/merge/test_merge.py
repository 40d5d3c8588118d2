"""Merging as a write: what it carries, what it relies on, and how it meets other writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph, repository

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    IdempotencyMismatch,
    InvalidInput,
    MergeConflicts,
    PreconditionFailed,
    ReadOnly,
    SchemasDiffer,
    TypeNotFound,
)
from omnigraph.merge import merge as merge_module

ODD = """
node Thing {
  name: String @key
  n: I32?
  words: [String]?
  ratio: F64?
  place: Vector(2)?
  raw: Blob?
}
"""


@pytest.fixture
def people(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    return graph


def ages(graph: Graph, branch: str = "main") -> dict[str, Any]:
    pin = graph.snapshot(branch).pin("node:Person")
    rows = repository(graph).tables.open(pin.ref).scan(["id", "age"]).to_pylist()
    return {row["id"]: row["age"] for row in rows}


def update(graph: Graph, branch: str, name: str, age: int) -> str:
    with graph.write(branch) as w:
        w.update("Person", name, {"age": age})
    return graph.snapshot(branch).commit_id


def test_every_kind_of_value_arrives(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", ODD)
    large = bytes(range(256)) * 400
    values = {"words": ["a", ""], "ratio": -0.0, "place": [1.5, -2.0], "raw": large}
    with graph.write() as w:
        w.insert("Thing", {"name": "old", "raw": b"before"})
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("Thing", {"name": "new", **values})
        w.update("Thing", "old", values)
    with graph.write() as w:
        w.insert("Thing", {"name": "mine", "raw": b"mine"})

    graph.merge("dev")

    assert b"".join(graph.export(types=["Thing"])).count(b"\n") == 3
    assert [c.id for c in graph.diff("dev", "main")] == ["mine"]
    assert graph.blob("node", "Thing", "new", "raw").read() == large


def test_by_property_blobs_and_lists_come_from_their_sides(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", ODD)
    with graph.write() as w:
        w.insert("Thing", {"name": "t", "raw": b"0", "words": ["0"], "n": 0})
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.update("Thing", "t", {"raw": b"theirs", "place": [1.0, 2.0]})
    with graph.write() as w:
        w.update("Thing", "t", {"words": ["ours"], "n": 7})

    preview = graph.merge("dev", level="property", dry_run=True)
    graph.merge("dev", level="property")

    found = graph.entity("node:Thing", "t")
    assert (found["words"], found["n"], found["place"]) == (["ours"], 7, [1.0, 2.0])
    assert graph.blob("node", "Thing", "t", "raw").read() == b"theirs"
    assert preview.changes[0].after == {
        "properties": {name: value for name, value in found.items() if name != "id"}
    }


def test_an_edge_that_would_hang_in_the_air_can_be_deleted_on_the_way(people: Graph) -> None:
    with people.write("dev") as w:
        w.delete("Person", "bo")
    with people.write() as w:
        edge = w.insert_edge("Knows", "bo", "ana")
    with pytest.raises(MergeConflicts) as caught:
        people.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict["kind"], conflict["entity_id"]) == ("orphan_edge", edge)

    people.merge("dev", resolutions=[{**conflict, "take": "delete"}])

    assert "bo" not in ages(people)


@pytest.mark.parametrize(
    "wrong",
    [
        {"entity_kind": "node", "type_name": "Person", "entity_id": "ana"},
        {"entity_kind": "node", "type_name": "Person", "entity_id": "ana", "take": "mine"},
        {"entity_kind": "node", "type_name": "Person", "take": "ours"},
        {"entity_kind": "node", "type_name": "Person", "entity_id": "ana", "pick": "ours"},
        {
            "entity_kind": "node",
            "type_name": "Person",
            "entity_id": "ana",
            "properties": {"name": "x"},
        },
    ],
)
def test_resolutions_that_say_nothing_are_refused(people: Graph, wrong: dict[str, Any]) -> None:
    update(people, "dev", "ana", 1)
    with pytest.raises(InvalidInput):
        people.merge("dev", resolutions=[wrong])


def test_bad_requests_are_refused_before_anything_happens(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    with pytest.raises(InvalidInput):
        people.merge("main", "main")
    with pytest.raises(BranchNotFound):
        people.merge("ghost")
    with pytest.raises(BranchNotFound):
        people.merge("dev", "ghost")
    with pytest.raises(TypeNotFound):
        people.merge("dev", by_type={"Ghost": "ours"})
    with pytest.raises(InvalidInput):
        people.merge("dev", level="row")  # type: ignore[arg-type]
    read_only = omnigraph.open(people.uri, read_only=True)
    with pytest.raises(ReadOnly):
        read_only.merge("dev")
    assert read_only.merge("dev", dry_run=True).outcome == "fast_forward"


def test_b12_a_snapshot_from_before_the_merge_stays_what_it_was(people: Graph) -> None:
    before = people.snapshot().commit_id
    update(people, "dev", "ana", 1)
    update(people, "main", "bo", 2)
    newer = people.snapshot().commit_id
    people.merge("dev")

    ask = "query q() { match { $p: Person { name: 'ana' } } return { $p.age } }".replace("'", '"')
    assert [row["p.age"] for row in people.query(ask, at=before)] == [30]
    assert [row["p.age"] for row in people.query(ask, at=newer)] == [30]
    assert [row["p.age"] for row in people.query(ask)] == [1]


def test_a_head_that_moved_is_refused_when_it_was_named(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    old = people.snapshot().commit_id
    update(people, "main", "bo", 2)
    with pytest.raises(PreconditionFailed):
        people.merge("dev", expected_head=old)


def test_a_repeated_request_returns_the_first_commit(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    first = people.merge("dev", idempotency_key="k")
    again = people.merge("dev", idempotency_key="k")
    assert again.commit == first.commit
    assert again.outcome == first.outcome
    with pytest.raises(IdempotencyMismatch):
        people.merge("dev", idempotency_key="k", strategy="ours")


def meanwhile(monkeypatch: pytest.MonkeyPatch, graph: Graph, name: str, age: int) -> list[str]:
    """Somebody else writes to main after the first merge was computed, before it lands."""
    done: list[str] = []
    compute = merge_module.plan_merge

    def interrupted(*arguments: Any, **options: Any) -> Any:
        plan = compute(*arguments, **options)
        if not done:
            done.append(update(omnigraph.open(graph.uri), "main", name, age))
        return plan

    monkeypatch.setattr(merge_module, "plan_merge", interrupted)
    return done


def test_a_merge_that_somebody_overtook_is_computed_again(
    people: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(people, "dev", "ana", 1)
    done = meanwhile(monkeypatch, people, "bo", 2)

    result = people.merge("dev")

    assert result.commit is not None
    assert result.commit.parent == done[0]
    assert result.outcome == "merged"
    assert ages(people) == {"ana": 1, "bo": 2}


def test_what_was_read_but_not_written_is_relied_on_too(
    people: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides made the same change: nothing is written, until somebody changes it again."""
    update(people, "dev", "ana", 1)
    update(people, "main", "ana", 1)
    meanwhile(monkeypatch, people, "ana", 5)

    with pytest.raises(MergeConflicts):
        people.merge("dev")

    assert ages(people)["ana"] == 5


def test_b29_a_name_that_means_two_types_is_not_merged(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    for branch in ("dev", "main"):
        text = people.schema(branch).source + "\nnode More { k: String @key }"
        people.apply_schema(text, branch=branch)
    with pytest.raises(SchemasDiffer):
        people.merge("dev")


def test_siblings_and_children_meet_at_the_right_commit(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    people.branches.create("child", "dev")
    update(people, "child", "bo", 2)
    people.branches.create("sibling")
    with people.write("sibling") as w:
        w.insert("Person", {"name": "cy"})

    assert people.merge("child").outcome == "fast_forward"
    assert people.merge("dev").outcome == "already_up_to_date"
    assert people.merge("sibling").outcome == "merged"
    assert ages(people) == {"ana": 1, "bo": 2, "cy": None}
    assert people.merge("main", "child").outcome == "fast_forward"
    assert ages(people, "child") == ages(people)


def test_two_branches_that_merged_a_third_meet_there(people: Graph) -> None:
    """Changed back on one side: with the fork as base that would be silently undone."""
    people.branches.create("one")
    people.branches.create("two")
    update(people, "dev", "ana", 1)
    people.merge("dev", "one")
    people.merge("dev", "two")
    update(people, "one", "ana", 30)
    update(people, "two", "bo", 9)

    result = people.merge("one", "two")

    assert result.base_commit_id == people.snapshot("dev").commit_id
    assert ages(people, "two") == {"ana": 30, "bo": 9}


def test_a_base_on_a_deleted_branch_gives_way_to_an_older_one(people: Graph) -> None:
    people.branches.create("one")
    update(people, "dev", "ana", 1)
    fork = people.snapshot().commit_id
    people.merge("dev", "one")
    assert people.merge("dev", "main", delete_branch=True).branch_deleted
    update(people, "one", "bo", 9)

    result = people.merge("one")

    assert result.base_commit_id == fork
    assert ages(people) == {"ana": 1, "bo": 9}


def test_b30_a_source_that_cannot_be_deleted_does_not_undo_the_merge(people: Graph) -> None:
    update(people, "dev", "ana", 1)
    people.branches.create("child", "dev")

    result = people.merge("dev", delete_branch=True)

    assert (result.branch_deleted, result.outcome) == (False, "fast_forward")
    assert result.branch_delete_error is not None
    assert "'child' was forked from it" in result.branch_delete_error
    assert ages(people)["ana"] == 1


@pytest.mark.parametrize("level", ["entity", "property"])
def test_instants_of_one_day_are_told_apart(tmp_path: Path, level: str) -> None:
    """Arrow gives instants to Python as days: both sides once looked as if nothing had changed."""
    graph = omnigraph.init(
        tmp_path / "g", "node T { k: String @key\n at: DateTime?\n many: [DateTime]?\n n: I32? }"
    )
    noon = {"at": "2021-03-04T12:00:00Z", "many": ["2021-03-04T12:00:00Z"]}
    later = {"at": "2021-03-04T12:00:01Z", "many": ["2021-03-04T12:00:01Z"]}
    with graph.write() as batch:
        batch.insert("T", {"k": "ours", **noon})
        batch.insert("T", {"k": "both", **noon})
    graph.branches.create("dev")
    with graph.write("dev") as batch:
        batch.update("T", "ours", later)
        batch.update("T", "both", later)
    with graph.write() as batch:
        batch.update("T", "both", {"n": 1})
    decided = {"strategy": "theirs"} if level == "entity" else {}
    graph.merge("dev", level=level, **decided)  # type: ignore[arg-type]
    for id in ("ours", "both"):
        found, wanted = graph.entity("node:T", id), graph.entity("node:T", id, "dev")
        assert (found["at"], found["many"]) == (wanted["at"], wanted["many"])
