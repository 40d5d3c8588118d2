"""Writing from Python: all of it or nothing, every edge with both ends, conflicts typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.graphs import PEOPLE, people_graph, repository, rows
from tests.support.internals import transaction_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    EntityNotFound,
    IdempotencyMismatch,
    InvalidInput,
    KeyConflict,
    NotFound,
    PreconditionFailed,
    ReadSetConflict,
    VersionConflict,
)
from omnigraph.storage.lance.staging.compaction_tiers import SMALL_FRAGMENTS_MAX


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


def test_a_batch_is_one_commit_however_many_changes_it_has(graph: Graph) -> None:
    before = len(graph.history.commits())
    with graph.write() as w:
        cy = w.insert("Person", {"name": "cy", "age": 5})
        w.insert_edge("Knows", cy, "ana")
        w.update("Person", "bo", {"age": 41})
        w.delete("City", "Oslo")
    assert len(graph.history.commits()) == before + 1
    assert {k: r["age"] for k, r in rows(graph, "node:Person").items()} == {
        "ana": 30,
        "bo": 41,
        "cy": 5,
    }
    assert rows(graph, "node:City") == {}


def test_a_block_that_fails_changes_nothing(graph: Graph) -> None:
    before = graph.snapshot()
    with pytest.raises(ZeroDivisionError), graph.write() as w:
        w.insert("City", {"name": "Rome"})
        raise ZeroDivisionError
    assert graph.snapshot() == before


def test_a_batch_without_effect_makes_no_commit(graph: Graph) -> None:
    before = graph.snapshot()
    with graph.write():
        pass
    with graph.write() as w:
        w.delete("Person", "nobody")
    assert graph.snapshot() == before


def test_M_11_inserting_an_existing_key_is_a_conflict(graph: Graph) -> None:
    before = graph.snapshot()
    with pytest.raises(KeyConflict, match="'ana' exists already") as conflict, graph.write() as w:
        w.insert("Person", {"name": "ana"})
    assert conflict.value.details["type_name"] == "Person"
    assert "upsert" in conflict.value.remedy
    assert "replace" in conflict.value.remedy
    with pytest.raises(KeyConflict), graph.write() as w:
        w.insert("Person", {"name": "cy"})
        w.insert("Person", {"name": "cy"})
    assert graph.snapshot() == before


def test_replace_writes_the_whole_node_and_upsert_only_what_is_given(graph: Graph) -> None:
    with graph.write() as w:
        w.upsert("Person", {"name": "ana"})
        w.upsert("Person", {"name": "cy", "age": 1})
    assert {k: r["age"] for k, r in rows(graph, "node:Person").items()} == {
        "ana": 30,
        "bo": None,
        "cy": 1,
    }
    with graph.write() as w:
        w.replace("Person", {"name": "ana"})
        w.replace("Person", {"name": "di", "age": 2})
    assert rows(graph, "node:Person")["ana"]["age"] is None
    assert rows(graph, "node:Person")["di"]["age"] == 2
    assert len(rows(graph, "edge:Knows")) == 1


def test_an_upsert_of_what_is_there_makes_no_commit(graph: Graph) -> None:
    before = graph.snapshot()
    with graph.write() as w:
        w.upsert("Person", {"name": "ana", "age": 30})
        w.upsert_edge("Knows", "ana", "bo", {"since": 2020})
    assert w.result is None
    assert graph.snapshot() == before


def test_what_is_inserted_and_deleted_was_never_there(graph: Graph) -> None:
    before = graph.snapshot()
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
        w.insert_edge("Knows", "cy", "ana")
        w.delete("Person", "cy")
        edge = w.insert_edge("Knows", "bo", "ana")
        w.delete_edge("Knows", edge)
    assert w.result is None
    assert graph.snapshot() == before


def test_an_update_before_a_delete_changes_nothing_about_it(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Person", "ana", {"age": 31})
        w.delete("Person", "ana")
    assert set(rows(graph, "node:Person")) == {"bo"}
    assert rows(graph, "edge:Knows") == {}


def test_an_update_sees_the_insert_before_it(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Person", {"name": "cy", "age": 1})
        w.update("Person", "cy", {"age": 2})
        edge = w.insert_edge("Knows", "cy", "ana", {"since": 1})
        w.update_edge("Knows", edge, {"since": 2})
    assert rows(graph, "node:Person")["cy"]["age"] == 2
    assert rows(graph, "edge:Knows")[edge]["since"] == 2


def test_deleting_a_node_takes_edges_of_the_same_batch_along(graph: Graph) -> None:
    with graph.write() as w:
        w.insert_edge("Knows", "bo", "ana")
        w.delete("Person", "ana")
    assert rows(graph, "edge:Knows") == {}
    assert set(rows(graph, "node:Person")) == {"bo"}


def test_a_node_that_comes_back_has_only_its_later_edges(graph: Graph) -> None:
    (old,) = rows(graph, "edge:Knows")
    with graph.write() as w:
        w.delete("Person", "ana")
        w.insert("Person", {"name": "ana"})
        new = w.insert_edge("Knows", "bo", "ana")
    assert set(rows(graph, "edge:Knows")) == {new} != {old}
    assert rows(graph, "node:Person")["ana"]["age"] is None


def test_an_edge_that_was_moved_away_survives_its_old_end(graph: Graph) -> None:
    (knows,) = rows(graph, "edge:Knows")
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
        w.upsert_edge("Knows", "cy", "bo", id=knows)
        w.delete("Person", "ana")
    assert rows(graph, "edge:Knows")[knows]["src"] == "cy"
    assert rows(graph, "edge:Knows")[knows]["since"] == 2020


def test_a_dropped_value_does_not_come_back_to_another_life(graph: Graph) -> None:
    """What a dropped property held belongs to the entity that was deleted."""
    with graph.write() as w:
        w.update("Person", "bo", {"age": 41})
    graph.apply_schema(PEOPLE.replace("  age: I32?\n", ""))
    with graph.write() as w:
        w.delete("Person", "ana")
        w.insert("Person", {"name": "ana"})
        w.replace("Person", {"name": "bo"})
    graph.apply_schema(PEOPLE, undrop=["Person.age"])
    assert {k: r["age"] for k, r in rows(graph, "node:Person").items()} == {"ana": None, "bo": 41}


def test_nodes_without_a_key_are_named_by_id(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Note { text: String\n n: I32? }")
    with graph.write() as w:
        assert w.upsert("Note", {"text": "x", "n": 1}, id="a") == "a"
        w.insert("Note", {"text": "y"}, id="b")
        w.upsert("Note", {"n": 2}, id="a")
        with pytest.raises(InvalidInput, match="no key"):
            w.upsert("Note", {"text": "z"})
    found = {id: (r["text"], r["n"]) for id, r in rows(graph, "node:Note").items()}
    assert found == {"a": ("x", 2), "b": ("y", None)}
    with pytest.raises(KeyConflict), graph.write() as w:
        w.insert("Note", {"text": "y"}, id="b")
    with pytest.raises(InvalidInput, match="required"), graph.write() as w:
        w.upsert("Note", {"n": 1}, id="new")


@pytest.mark.parametrize("id", [7, None, b"ana", ["ana"], "\ud800"])
def test_ids_that_are_no_text_are_invalid_input(graph: Graph, id: Any) -> None:
    with graph.write() as w:
        with pytest.raises(InvalidInput):
            w.update("Person", id, {"age": 1})
        with pytest.raises(InvalidInput):
            w.delete("Person", id)
        with pytest.raises(InvalidInput):
            w.delete_edge("Knows", id)
        with pytest.raises(InvalidInput):
            w.insert_edge("Knows", id, "ana")
        with pytest.raises(InvalidInput):
            w.update_edge("Knows", id, {})


def test_values_that_are_no_mapping_are_invalid_input(graph: Graph) -> None:
    with graph.write() as w:
        for values in (7, "name", ["name"], {7: 1}, {None: 1}):
            with pytest.raises(InvalidInput):
                w.insert("Person", values)  # type: ignore[arg-type]
            with pytest.raises(InvalidInput):
                w.update("Person", "ana", values)  # type: ignore[arg-type]
            with pytest.raises(InvalidInput):
                w.upsert_edge("Knows", "ana", "bo", values)  # type: ignore[arg-type]


def test_a_repeated_request_with_ids_made_here_is_recognised(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Note { text: String }\nedge On: Note -> Note")
    for _ in range(2):
        with graph.write(idempotency_key="k") as w:
            first = w.insert("Note", {"text": "x"})
            w.insert_edge("On", first, w.insert("Note", {"text": "y"}))
    assert len(rows(graph, "node:Note")) == 2
    with pytest.raises(IdempotencyMismatch), graph.write(idempotency_key="k") as w:
        first = w.insert("Note", {"text": "x"})
        w.insert_edge("On", w.insert("Note", {"text": "y"}), first)


def test_upserts_are_prepared_again_and_set_only_what_is_given(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    real, calls = transaction_of(graph).commit, []

    def commit(prepared: object) -> object:
        calls.append(prepared)
        if len(calls) == 1:
            with other.write() as w:
                w.update("Person", "bo", {"age": 7})
        return real(prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction_of(graph), "commit", commit)
    with graph.write() as w:
        w.upsert("Person", {"name": "bo"})
        w.upsert("Person", {"name": "ana", "age": 31})
        w.replace("City", {"name": "Oslo"})
    assert len(calls) == 2
    assert {k: r["age"] for k, r in rows(graph, "node:Person").items()} == {"ana": 31, "bo": 7}


def test_an_upsert_that_found_its_values_relies_on_them(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value that made an upsert needless was changed before the rest landed."""
    other = omnigraph.open(graph.uri)
    real, calls = transaction_of(graph).commit, []

    def commit(prepared: object) -> object:
        calls.append(prepared)
        if len(calls) == 1:
            with other.write() as w:
                w.update("Person", "ana", {"age": 7})
        return real(prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction_of(graph), "commit", commit)
    with graph.write() as w:
        w.upsert("Person", {"name": "ana", "age": 30})
        w.upsert("City", {"name": "Rome"})
    assert rows(graph, "node:Person")["ana"]["age"] == 30


def test_a_node_deleted_and_inserted_in_one_batch_is_there_and_counted_once(graph: Graph) -> None:
    with graph.write() as w:
        w.delete("Person", "bo")
        w.insert("Person", {"name": "bo", "age": 5})
    assert rows(graph, "node:Person")["bo"]["age"] == 5
    assert graph.snapshot().pin("node:Person").rows == len(rows(graph, "node:Person")) == 2


def test_M_31_deleting_a_node_takes_its_edges_along(graph: Graph) -> None:
    with graph.write() as w:
        w.delete("Person", "ana")
    assert rows(graph, "edge:Knows") == {}
    assert rows(graph, "edge:LivesIn") == {}
    assert set(rows(graph, "node:Person")) == {"bo"}


@pytest.mark.parametrize(("source", "target"), [("ghost", "ana"), ("ana", "ghost")])
def test_M_42_an_edge_needs_both_ends(graph: Graph, source: str, target: str) -> None:
    before = graph.snapshot()
    with pytest.raises(InvalidInput, match="ghost"), graph.write() as w:
        w.insert_edge("Knows", source, target)
    assert graph.snapshot() == before


def test_an_edge_to_a_node_deleted_in_the_same_batch_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidInput, match="bo"), graph.write() as w:
        w.delete("Person", "bo")
        w.insert_edge("Knows", "ana", "bo")


def test_bad_values_are_refused_when_they_are_given(graph: Graph) -> None:
    with graph.write() as w:
        with pytest.raises(InvalidInput):
            w.insert("Person", {"name": 7})
        with pytest.raises(InvalidInput, match="required"):
            w.insert("Person", {"age": 7})
        with pytest.raises(InvalidInput, match="no property"):
            w.insert("Person", {"name": "x", "shoe": 7})
        with pytest.raises(InvalidInput):
            w.insert("Person", {"name": "x", "age": 2**31})
        with pytest.raises(InvalidInput, match="key"):
            w.update("Person", "ana", {"name": "anna"})
        with pytest.raises(NotFound):
            w.insert("Ghost", {})


def test_updating_what_does_not_exist_is_an_error(graph: Graph) -> None:
    with pytest.raises(EntityNotFound), graph.write() as w:
        w.update("Person", "ghost", {"age": 1})


def test_ids_with_quotes_and_unicode_survive(graph: Graph) -> None:
    odd = ["o'hara", 'say "hi"', "naïve ☃", "a\\b", "'; DROP TABLE x; --", "tab\there"]
    with graph.write() as w:
        for name in odd:
            w.insert("Person", {"name": name})
    with graph.write() as w:
        for name in odd:
            w.update("Person", name, {"age": 1})
    assert {k for k, r in rows(graph, "node:Person").items() if r["age"] == 1} == set(odd)


def test_M_6_an_expected_head_that_moved_is_a_precondition_failure(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    with graph.write(expected_head=head) as w:
        w.insert("City", {"name": "Rome"})
    with pytest.raises(PreconditionFailed) as failed, graph.write(expected_head=head) as w:
        w.insert("City", {"name": "Bern"})
    now = graph.snapshot().commit_id
    assert failed.value.details == {"branch": "main", "expected": head, "actual": now}
    assert "Bern" not in rows(graph, "node:City")


def test_M_7_inserts_are_prepared_again_when_somebody_was_faster(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
        _write_between_preparing_and_committing(monkeypatch, graph, other)
    assert set(rows(graph, "node:City")) == {"Oslo", "Rome", "Bern"}


def test_M_7_updates_report_the_conflict_instead(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    with pytest.raises(VersionConflict), graph.write() as w:
        w.delete("City", "Oslo")
        _write_between_preparing_and_committing(monkeypatch, graph, other)
    assert set(rows(graph, "node:City")) == {"Oslo", "Bern"}


def _write_between_preparing_and_committing(
    monkeypatch: pytest.MonkeyPatch, graph: Graph, other: Graph
) -> None:
    real, calls = transaction_of(graph).commit, []

    def commit(prepared: object) -> object:
        calls.append(prepared)
        if len(calls) == 1:
            with other.write() as w:
                w.insert("City", {"name": "Bern"})
        return real(prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction_of(graph), "commit", commit)


def test_an_edge_and_the_deletion_of_its_end_cannot_both_land(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    real, calls = transaction_of(graph).commit, []

    def commit(prepared: object) -> object:
        calls.append(prepared)
        if len(calls) == 1:
            with other.write() as w:
                w.delete("City", "Oslo")
        return real(prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction_of(graph), "commit", commit)
    # The insert is prepared again after its read set changed, and then finds the city gone.
    with pytest.raises(InvalidInput, match="Oslo"), graph.write() as w:
        w.insert_edge("LivesIn", "bo", "Oslo")
    assert rows(graph, "edge:LivesIn") == {}


def test_the_deletion_of_a_node_and_a_new_edge_to_it_cannot_both_land(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    real = transaction_of(graph).commit

    def commit(prepared: object) -> object:
        with other.write() as w:
            w.insert_edge("LivesIn", "bo", "Oslo")
        return real(prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction_of(graph), "commit", commit)
    with pytest.raises((ReadSetConflict, VersionConflict)), graph.write() as w:
        w.delete("City", "Oslo")
    assert set(rows(graph, "node:City")) == {"Oslo"}


def test_many_small_writes_compact_their_table_without_a_commit(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", PEOPLE)
    for i in range(SMALL_FRAGMENTS_MAX + 5):
        with graph.write() as w:
            w.insert("City", {"name": f"c{i}"})
    view = repository(graph)
    table = view.tables.open(view.main.current().pins["node:City"].ref)
    assert len(table.fragments) < 10
    assert table.rows == SMALL_FRAGMENTS_MAX + 5
    assert len(graph.history.commits()) == SMALL_FRAGMENTS_MAX + 5 + 1


def test_an_edge_is_deleted_by_its_id(graph: Graph) -> None:
    (knows,) = rows(graph, "edge:Knows")
    with graph.write() as w:
        w.delete_edge("Knows", knows)
    assert rows(graph, "edge:Knows") == {}
    assert set(rows(graph, "node:Person")) == {"ana", "bo"}
