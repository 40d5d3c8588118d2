"""The commit loop: expected heads, idempotency keys, retries after optimistic conflicts, pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph, repository, rows
from tests.support.internals import transaction_of

import omnigraph
from omnigraph import Graph
from omnigraph.catalog import request_keys
from omnigraph.errors import (
    Conflict,
    ConstraintViolation,
    IdempotencyMismatch,
    PreconditionFailed,
    ReadOnly,
    VersionConflict,
)
from omnigraph.prepare import write_pause

ADD = "query add($n: String) { insert City { name: $n } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


def exported(graph: Graph) -> bytes:
    return b"".join(graph.export())


def meanwhile(monkeypatch: pytest.MonkeyPatch, graph: Graph, act: Callable[[], Any]) -> None:
    """Let something happen between the first preparation of a write and its commit."""
    real, calls = transaction_of(graph).commit, []

    def commit(prepared: Any) -> Any:
        calls.append(prepared)
        if len(calls) == 1:
            act()
        return real(prepared)

    monkeypatch.setattr(transaction_of(graph), "commit", commit)


def test_M_6_the_expected_head_is_required_of_mutations_and_loads(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    done = graph.mutate(ADD, params={"n": "Rome"}, expected_head=head)
    assert done.commit is not None
    assert done.commit.parent == head
    before = exported(graph)
    for attempt in (
        lambda: graph.mutate(ADD, params={"n": "Bern"}, expected_head=head),
        lambda: graph.load([], mode="append", expected_head=head),
    ):
        with pytest.raises(PreconditionFailed) as failed:
            attempt()
        assert failed.value.details == {
            "branch": "main",
            "expected": head,
            "actual": done.commit.commit_id,
        }
    assert exported(graph) == before


def test_M_6_it_is_required_of_a_mutation_without_effect_too(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    nothing = 'query q() { delete City where name = "Nowhere" }'
    assert graph.mutate(nothing, expected_head=head).commit is None
    with pytest.raises(PreconditionFailed):
        graph.mutate(nothing, expected_head="01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_M_6_on_a_fresh_branch_the_inherited_head_is_the_token(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    graph.branches.create("dev")
    done = graph.mutate(ADD, params={"n": "Rome"}, branch="dev", expected_head=head)
    assert done.commit is not None
    assert done.commit.to_json()["graph_branch"] == "dev"


def test_M_6_a_head_that_moves_before_the_effects_is_noticed(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    head = graph.snapshot().commit_id
    meanwhile(monkeypatch, graph, lambda: other.load([], mode="append"))
    with pytest.raises(PreconditionFailed):
        graph.mutate(ADD, params={"n": "Rome"}, expected_head=head)


@pytest.mark.parametrize("step", ["_first_drift", "_commit_locked"])
def test_M_6_a_head_that_another_process_moves_is_noticed_at_every_step(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Also where the table tells first, after the head was looked at for the last time."""
    other, head = omnigraph.open(graph.uri), graph.snapshot().commit_id
    real, calls = getattr(transaction_of(graph), step), list[str]()

    def overtaken(*given: Any) -> Any:
        calls.append(step)
        if len(calls) == 1:
            other.mutate('query q() { insert Person { name: "new" } }')
        return real(*given)

    monkeypatch.setattr(transaction_of(graph), step, overtaken)
    with pytest.raises(PreconditionFailed) as failed:
        graph.mutate("query q() { update Person set { age: 1 } where age > 0 }", expected_head=head)
    assert failed.value.details["actual"] == other.snapshot().commit_id
    assert graph.maintenance.check().findings == []


def test_M_7_inserts_are_prepared_again_and_see_what_came_between(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    meanwhile(monkeypatch, graph, lambda: other.mutate(ADD, params={"n": "Bern"}))
    graph.mutate(ADD, params={"n": "Rome"})
    assert exported(graph).count(b'"type":"City"') == 3


@pytest.mark.parametrize(
    "query",
    [
        "query q() { update Person set { age: 1 } where age > 0 }",
        'query q() { insert Person { name: "x" } update Person set { age: 1 } where age > 0 }',
        'query q() { delete Person where name = "bo" }',
    ],
)
def test_M_7_updates_and_deletes_report_the_conflict(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    other = omnigraph.open(graph.uri)
    insert = 'query q() { insert Person { name: "new" } }'
    meanwhile(monkeypatch, graph, lambda: other.mutate(insert))
    with pytest.raises(VersionConflict):
        graph.mutate(query)


def test_W_6_a_load_is_prepared_again_unless_it_overwrites(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    rome = [{"type": "City", "data": {"name": "Rome"}}]
    with monkeypatch.context() as patch:
        meanwhile(patch, graph, lambda: other.mutate(ADD, params={"n": "Bern"}))
        assert graph.load(rome, mode="append").commit is not None
    with monkeypatch.context() as patch:
        meanwhile(patch, graph, lambda: other.mutate(ADD, params={"n": "Lima"}))
        with pytest.raises(Conflict):
            graph.load({"Person": [], "Knows": [], "LivesIn": [], "City": []}, mode="overwrite")
    with monkeypatch.context() as patch:
        meanwhile(patch, graph, lambda: other.mutate(ADD, params={"n": "Oulu"}))
        with pytest.raises(omnigraph.errors.KeyConflict):
            graph.load([{"type": "City", "data": {"name": "Oulu"}}], mode="append")


def test_a_key_returns_the_first_commit_and_its_counts(graph: Graph) -> None:
    first = graph.mutate(ADD, params={"n": "Rome"}, idempotency_key="k1")
    commits = len(graph.history.commits())
    again = graph.mutate(ADD, params={"n": "Rome"}, idempotency_key="k1")
    assert again.repeated
    assert again.commit == first.commit
    assert (again.affected_nodes, again.query_name) == (1, "add")
    assert len(graph.history.commits()) == commits
    with pytest.raises(IdempotencyMismatch) as refused:
        graph.mutate(ADD, params={"n": "Bern"}, idempotency_key="k1")
    assert first.commit is not None
    assert refused.value.details == {"commit_id": first.commit.commit_id}


def test_a_key_works_for_loads_and_batches_and_survives_reopening(graph: Graph) -> None:
    edge = [{"edge": "Knows", "from": "bo", "to": "ana"}]
    first = graph.load(edge, mode="merge", idempotency_key="k2")
    reopened = omnigraph.open(graph.uri)
    again = reopened.load(edge, mode="merge", idempotency_key="k2")
    assert (again.repeated, again.commit, again.edges) == (True, first.commit, {"Knows": 1})
    for _ in range(2):
        with graph.write(idempotency_key="k3") as w:
            w.insert_edge("Knows", "bo", "bo")
    assert exported(graph).count(b'"edge":"Knows"') == 3


def test_a_key_that_a_concurrent_request_used_first_is_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    query = "query q() { update Person set { age: 1 } where age > 0 }"
    made: list[Any] = []
    meanwhile(monkeypatch, graph, lambda: made.append(other.mutate(query, idempotency_key="k4")))
    result = graph.mutate(query, idempotency_key="k4")
    assert result.repeated
    assert result.commit == made[0].commit


def test_keys_belong_to_their_branch_and_the_oldest_are_evicted(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_keys, "REQUEST_KEYS_MAX", 2)
    graph.mutate(ADD, params={"n": "a"}, idempotency_key="a")
    graph.branches.create("dev")
    assert not graph.mutate(ADD, params={"n": "a"}, branch="dev", idempotency_key="a").repeated
    for name in ("b", "c"):
        graph.mutate(ADD, params={"n": name}, idempotency_key=name)
    assert graph.mutate(ADD, params={"n": "c"}, idempotency_key="c").repeated
    assert not graph.mutate(ADD, params={"n": "a"}, idempotency_key="a").repeated


def test_messages_and_metadata_are_kept_with_the_commit(graph: Graph) -> None:
    done = graph.mutate(
        ADD, params={"n": "Rome"}, message="why", actor="me", metadata={"ticket": "7"}
    )
    newest = graph.history.commits(limit=1)[0]
    assert newest == done.commit
    assert (newest.message, newest.actor, newest.kind) == ("why", "me", "mutation")
    assert newest.metadata == {"ticket": "7"}
    assert done.to_json()["commit"] == graph.history.commit(newest.commit_id).to_json()


def test_W_3_one_commit_per_touched_table_however_many_statements(graph: Graph) -> None:
    pins = graph.snapshot().pins
    graph.mutate(
        'query q() { insert City { name: "x" } insert City { name: "y" } '
        'insert Person { name: "z" } insert LivesIn { from: "z", to: "x" } }'
    )
    moved = {
        key: pin.ref.version - pins[key].ref.version for key, pin in graph.snapshot().pins.items()
    }
    assert moved == {"node:City": 1, "node:Person": 1, "edge:LivesIn": 1, "edge:Knows": 0}


def test_read_only_handles_write_nothing(graph: Graph) -> None:
    reader = omnigraph.open(graph.uri, read_only=True)
    with pytest.raises(ReadOnly):
        reader.mutate(ADD, params={"n": "x"})
    with pytest.raises(ReadOnly):
        reader.load([], mode="append")
    with pytest.raises(ReadOnly), reader.write():
        pass


def test_batches_report_every_violation(graph: Graph) -> None:
    with pytest.raises(ConstraintViolation) as caught, graph.write() as w:
        w.insert_edge("Knows", "ghost", "ana")
        w.insert_edge("LivesIn", "ana", "Atlantis")
    assert [v["rule"] for v in caught.value.violations] == ["endpoint", "endpoint"]
    assert caught.value.total == 2


def test_a_pause_that_a_dead_process_requested_times_out(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = repository(graph)
    write_pause.request_pause(view, view.branch("main"))
    short = replace(write_pause.PAUSE_POLL, deadline_s=0.05)
    monkeypatch.setattr(write_pause, "PAUSE_POLL", short)
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    assert "cy" in rows(graph, "node:Person")
    assert view.main.current().row("quiet:main") is None
