"""The history of an entity, and the commits that set its values."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    CursorRejected,
    EntityNotFound,
    InvalidInput,
    ResourceLimit,
    TypeNotFound,
)
from omnigraph.storage.lance.fingerprints import REMOVED_MAX
from tests.graphs import PEOPLE, people_graph
from tests.history.schemas import publish_schema
from tests.support.internals import repository_of


def told(graph: Graph, type_name: str, id: str, branch: str = "main") -> list[tuple[str, str]]:
    """Operations and messages, newest first."""
    history = graph.history.entity(type_name, id, branch)
    return [(str(event.op), event.commit.message or "") for event in history]


def write(graph: Graph, message: str, branch: str = "main", **values: object) -> None:
    with graph.write(branch, message=message, actor="eve") as w:
        w.update("Person", "ana", values)


def test_every_commit_that_changed_an_entity_and_no_other(people: Graph) -> None:
    write(people, "birthday", age=31)
    with people.write(message="somebody else") as w:
        w.update("Person", "bo", {"age": 5})
    write(people, "the same again", age=31)

    events = list(people.history.entity("node:Person", "ana"))

    assert [(e.op, e.commit.message) for e in events] == [
        ("update", "birthday"),
        ("insert", "people"),
    ]
    assert events[0].commit.actor == "eve"
    assert events[0].before == {"properties": {"age": 30, "name": "ana"}}
    assert events[0].after == {"properties": {"age": 31, "name": "ana"}}
    assert events[1].before is None


def test_lives_before_the_present_one(people: Graph) -> None:
    for life in range(3):
        with people.write(message=f"gone {life}") as w:
            w.delete("Person", "bo")
        with people.write(message="another comes") as w:
            w.insert("City", {"name": "Rome"})
        with people.write(message="another goes") as w:
            w.delete("City", "Rome")
        with people.write(message=f"back {life}") as w:
            w.insert("Person", {"name": "bo", "age": life})

    expected = [("insert", "people")]
    for life in range(3):
        expected += [("delete", f"gone {life}"), ("insert", f"back {life}")]
    assert told(people, "Person", "bo") == expected[::-1]


def test_versions_that_removed_others_are_not_looked_at(people: Graph) -> None:
    for number in range(12):
        with people.write() as w:
            w.insert("Person", {"name": f"x{number}"})
        with people.write() as w:
            w.delete("Person", f"x{number}")
    with people.write(message="late") as w:
        w.insert("Person", {"name": "late"})
    fresh = omnigraph.open(people.uri, read_only=True)
    counters = repository_of(fresh).tables.counters

    assert told(fresh, "Person", "late") == [("insert", "late")]
    assert counters.opens < 8
    before = counters.opens
    assert told(fresh, "Person", "x3")[0][0] == "delete"
    assert counters.opens < before + 8


def test_a_removal_of_too_many_to_be_noted_is_looked_at(people: Graph) -> None:
    names = [f"n{number}" for number in range(REMOVED_MAX + 1)]
    people.load({"Person": [{"name": name} for name in names]}, mode="append", message="many")
    people.mutate('query q() { delete Person where name >= "n" }', message="all of them")

    assert told(people, "Person", "n7") == [("delete", "all of them"), ("insert", "many")]


def test_an_entity_with_a_blob_has_a_history(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path, "node File { name: String @key\n note: String?\n data: Blob? }"
    )
    files = [{"name": "a", "data": "base64:b25l"}, {"name": "b", "data": "base64:dHdv"}]
    graph.load({"File": files}, mode="append")
    for note in ("first", "second"):
        with graph.write(message=note) as w:
            w.update("File", "a", {"note": note})

    assert told(graph, "File", "a") == [("update", "second"), ("update", "first"), ("insert", "")]


def test_a_deleted_entity_has_a_history(people: Graph) -> None:
    with people.write(message="bye") as w:
        w.delete("City", "Oslo")

    assert told(people, "City", "Oslo") == [("delete", "bye"), ("insert", "people")]
    (edge,) = [
        c.id
        for b in people.history.changes(start="beginning").blocks
        for c in b.changes
        if c.type_name == "LivesIn" and c.op == "delete"
    ]
    assert told(people, "edge:LivesIn", edge) == [("delete", "bye"), ("insert", "ties")]


def test_an_overwrite_counts_only_where_it_changed_something(people: Graph) -> None:
    rows = [{"name": "ana", "age": 30}, {"name": "bo", "age": 1}]
    people.load({"Person": rows}, mode="overwrite", message="again")

    assert told(people, "Person", "ana") == [("insert", "people")]
    assert told(people, "Person", "bo") == [("update", "again"), ("insert", "people")]


def test_a_reset_is_a_change_back(people: Graph) -> None:
    people.branches.create("dev")
    start = people.history.commits("dev", limit=1)[0].commit_id
    write(people, "up", "dev", age=50)
    people.reset(start, branch="dev", message="back")
    write(people, "up again", "dev", age=60)

    assert told(people, "Person", "ana", "dev") == [
        ("update", "up again"),
        ("update", "back"),
        ("update", "up"),
        ("insert", "people"),
    ]


def test_a_merge_counts_where_it_lands(people: Graph) -> None:
    people.branches.create("dev")
    write(people, "one", "dev", age=1)
    write(people, "two", "dev", age=2)
    people.merge("dev", message="landing")

    assert told(people, "Person", "ana") == [("update", "landing"), ("insert", "people")]
    assert told(people, "Person", "ana", "dev")[:2] == [("update", "two"), ("update", "one")]


def test_a_type_that_was_renamed_keeps_its_history(people: Graph) -> None:
    text = PEOPLE.replace("City {", 'Town @rename_from("City") {').replace("-> City", "-> Town")
    made = publish_schema(people, text)
    with people.write(message="bye") as w:
        w.delete("Town", "Oslo")

    assert told(people, "Town", "Oslo") == [("delete", "bye"), ("insert", "people")]
    assert people.history.commit_changes(made).changes == [], "a pure rename changes no entity"


def test_a_property_that_came_later_was_null_before(people: Graph) -> None:
    publish_schema(people, PEOPLE + "\nnode Club { name: String @key }")
    write(people, "after", age=2)

    assert told(people, "Person", "ana") == [("update", "after"), ("insert", "people")]


class TestReadingAhead:
    """Steps back over rows that were written alone are read together."""

    def test_many_changes_take_few_reads(self, people: Graph) -> None:
        for age in range(40):
            write(people, f"to {age}", age=age)
        list(people.history.entity("Person", "ana"))
        counters = repository_of(people).tables.counters
        before = counters.scans

        events = list(people.history.entity("Person", "ana"))

        assert [e.after and e.after["properties"]["age"] for e in events] == [
            *range(39, -1, -1),
            30,
        ]
        assert [e.before and e.before["properties"]["age"] for e in events[:-1]] == [
            *range(38, -1, -1),
            30,
        ]
        assert counters.scans - before < 20

    def test_a_lone_row_of_another_is_not_taken_for_the_entity(self, people: Graph) -> None:
        for age in range(4):
            with people.write(message=f"bo to {age}") as w:
                w.update("Person", "bo", {"age": age})
        with people.write(message="cy for bo") as w:
            w.delete("Person", "bo")
            w.insert("Person", {"name": "cy", "age": 0})
        for age in range(1, 6):
            with people.write(message=f"cy to {age}") as w:
                w.update("Person", "cy", {"age": age})

        assert told(people, "Person", "cy") == [
            *(("update", f"cy to {age}") for age in range(5, 0, -1)),
            ("insert", "cy for bo"),
        ]
        assert told(people, "Person", "bo")[:2] == [("delete", "cy for bo"), ("update", "bo to 3")]

    def test_each_state_is_read_with_the_schema_it_had(self, people: Graph) -> None:
        for age in range(5):
            write(people, f"to {age}", age=age)
        people.apply_schema(PEOPLE.replace("age: I32?", "age: I64?\n    rank: I64?"))
        for rank in range(5):
            write(people, f"rank {rank}", rank=rank)

        events = list(people.history.entity("Person", "ana"))

        assert [e.commit.message for e in events] == [
            *(f"rank {rank}" for rank in range(4, -1, -1)),
            *(f"to {age}" for age in range(4, -1, -1)),
            "people",
        ]
        assert events[0].after == {"properties": {"age": 4, "name": "ana", "rank": 4}}
        assert events[6].after == {"properties": {"age": 3, "name": "ana"}}


class TestPages:
    def test_pages_put_together_are_the_history(self, people: Graph) -> None:
        for value in range(5):
            write(people, f"to {value}", age=value)
        history = people.history.entity("Person", "ana")
        everything = list(history)

        pages = [history.page(2)]
        while pages[-1].next_page_token is not None:
            pages.append(people.history.entity("Person", "ana").page(2, pages[-1].next_page_token))

        assert [event for page in pages for event in page.events] == everything
        assert [len(page.events) for page in pages] == [2, 2, 2]

    def test_paging_is_stable_under_concurrent_writes(self, people: Graph) -> None:
        write(people, "one", age=1)
        page = people.history.entity("Person", "ana").page(1)
        write(people, "two", age=2)

        rest = people.history.entity("Person", "ana").page(5, page.next_page_token)

        assert [event.commit.message for event in rest.events] == ["people"]

    def test_a_token_of_another_entity_is_rejected(self, people: Graph) -> None:
        write(people, "one", age=1)
        token = people.history.entity("Person", "ana").page(1).next_page_token

        with pytest.raises(CursorRejected):
            people.history.entity("Person", "bo").page(1, token)

    def test_limits(self, people: Graph) -> None:
        with pytest.raises(InvalidInput):
            people.history.entity("Person", "ana").page(0)
        with pytest.raises(ResourceLimit):
            people.history.entity("Person", "ana").page(8193)


class TestBadInput:
    def test_unknown_types_and_branches(self, people: Graph) -> None:
        with pytest.raises(TypeNotFound):
            people.history.entity("Persn", "ana")
        with pytest.raises(TypeNotFound):
            people.history.entity("edge:Person", "ana")
        with pytest.raises(BranchNotFound):
            people.history.entity("Person", "ana", "nowhere")

    def test_an_entity_that_never_was_has_no_history_and_no_blame(self, people: Graph) -> None:
        assert told(people, "Person", "nobody") == []
        assert told(people, "Person", "o'hara") == []
        with pytest.raises(EntityNotFound):
            people.history.blame("Person", "nobody")


class TestBlame:
    def test_each_value_and_the_commit_that_set_it(self, tmp_path: Path) -> None:
        graph = omnigraph.init(tmp_path / "g", "node T { k: String @key\n a: I64?\n b: I64? }")
        for message, values in (
            ("made", {"k": "x", "a": 1, "b": 1}),
            ("a is 2", {"a": 2}),
            ("b is 3", {"b": 3}),
            ("b is 3 again", {"b": 3}),
        ):
            with graph.write(message=message) as w:
                if "k" in values:
                    w.insert("T", values)
                else:
                    w.update("T", "x", values)

        found = {item.property: (item.value, item.commit) for item in graph.history.blame("T", "x")}

        shown = {name: (value, c.message if c else None) for name, (value, c) in found.items()}
        assert shown == {"k": ("x", "made"), "a": (2, "a is 2"), "b": (3, "b is 3")}

    def test_what_was_made_again_was_set_when_it_was_made_again(self, people: Graph) -> None:
        with people.write(message="gone") as w:
            w.delete("Person", "bo")
        with people.write(message="back") as w:
            w.insert("Person", {"name": "bo"})

        messages = {i.commit and i.commit.message for i in people.history.blame("Person", "bo")}
        assert messages == {"back"}

    def test_a_merged_value_was_set_on_the_branch_it_came_from(self, people: Graph) -> None:
        people.branches.create("dev")
        write(people, "on dev", "dev", age=77)
        people.merge("dev")

        found = {item.property: item.commit for item in people.history.blame("Person", "ana")}

        assert found["age"] is not None
        assert found["age"].message == "on dev"
        assert found["name"] is not None
        assert found["name"].message == "people"

    def test_ends_of_edges_are_blamed_too(self, people: Graph) -> None:
        (block,) = people.history.changes(start="beginning", types=["Knows"]).blocks[1:2]
        found = people.history.blame("Knows", block.changes[0].id)

        assert {item.property: item.value for item in found} == {
            "from": "ana",
            "to": "bo",
            "since": 2020,
        }
        assert {item.commit and item.commit.message for item in found} == {"ties"}


def test_two_graphs_do_not_share_anything(people: Graph, tmp_path: Path) -> None:
    other = people_graph(tmp_path / "other")
    write(people, "only here", age=1)

    assert told(other, "Person", "ana") == [("insert", "people")]
