"""The requests that recovery adds to a write: one list, one put, one delete (R-3)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.crash_writers import insert_neighbourhood, make_graph, update_two_types
from tests.support.faulty import FaultyStore
from tests.support.internals import graph_on
from tests.support.stores import open_objects

from omnigraph import Graph
from omnigraph.catalog.repository import Repository
from omnigraph.storage import failpoints
from omnigraph.storage.locations import parse_location

CONTROL = "__recovery*"
ONE_OF_EACH = {"list": 1, "put_if_absent": 1, "delete": 1}


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    make_graph(str(tmp_path / "g"))
    return FaultyStore(open_objects(parse_location(tmp_path / "g")))


@pytest.fixture
def graph(store: FaultyStore) -> Graph:
    graph = graph_on(Repository.open(store.location, objects=store))
    graph.branches.create("side")
    update_two_types(graph, 1, "main")
    store.reset_log()
    return graph


def test_a_write_lists_puts_and_deletes_control_objects_once(
    store: FaultyStore, graph: Graph
) -> None:
    update_two_types(graph, 2, "main")
    assert store.counts(CONTROL) == ONE_OF_EACH


def test_the_number_of_types_written_makes_no_difference(store: FaultyStore, graph: Graph) -> None:
    insert_neighbourhood(graph, 2, "main")
    assert store.counts(CONTROL) == ONE_OF_EACH


def test_a_first_write_on_a_branch_costs_the_same(store: FaultyStore, graph: Graph) -> None:
    insert_neighbourhood(graph, 2, "side")
    assert store.counts(CONTROL) == ONE_OF_EACH


def test_a_write_without_effect_only_lists(store: FaultyStore, graph: Graph) -> None:
    with graph.write():
        pass
    assert store.counts(CONTROL) == {"list": 1}


def test_reading_touches_no_control_object(store: FaultyStore, graph: Graph) -> None:
    graph.snapshot()
    graph.entity("node:Person", "ana")
    graph.history.commits()
    assert store.counts(CONTROL) == {}


def test_opening_for_writing_lists_once_and_read_only_never(store: FaultyStore) -> None:
    graph = graph_on(Repository.open(store.location, objects=store))
    graph.maintenance.recover()
    assert store.counts(CONTROL) == {"list": 1}
    store.reset_log()
    graph_on(Repository.open(store.location, objects=store), read_only=True).snapshot()
    assert store.counts(CONTROL) == {}


def test_a_long_phase_renews_its_lease_and_removes_it_in_the_end(
    store: FaultyStore, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "0.15")
    graph = graph_on(Repository.open(store.location, objects=store))
    flag = tmp_path / "long phase"
    failpoints.arm("table.after_commit", f"pause:{flag}")
    try:
        writer = threading.Thread(target=update_two_types, args=(graph, 2, "main"))
        writer.start()
        while store.counts("*.lease.json").get("put", 0) < 3:
            assert writer.is_alive()
        flag.unlink()
        writer.join()
    finally:
        failpoints.disarm_all()
    counts = store.counts(CONTROL)
    assert counts["put_if_absent"] == 1
    assert counts["list"] <= counts["put"] + 3  # each renewal looks for a claim first
    assert counts["delete"] == 2  # the lease, and the record last
    assert store.inner.list("__recovery") == []
