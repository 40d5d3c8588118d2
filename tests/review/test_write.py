"""Review: the write room."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.graphs import people_graph, repository, rows

import omnigraph
from omnigraph.errors import Conflict, OmnigraphError, StorageFailure


def test_an_edge_turned_to_another_node_and_that_nodes_deletion_cannot_both_land(
    tmp_path: Path,
) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    (edge_id,) = rows(graph, "edge:Knows")
    other = omnigraph.open(graph.uri)
    with pytest.raises(Conflict), other.write() as w:
        w.delete("Person", "cy")
        batch = w
        original = batch._prepare

        def late(attempt):  # type: ignore[no-untyped-def]
            prepared = original(attempt)
            graph.load(
                [{"edge": "Knows", "from": "ana", "to": "cy", "data": {"id": edge_id}}],
                mode="merge",
            )
            return prepared

        batch._prepare = late  # type: ignore[method-assign]
    ends = {row["dst"] for row in rows(graph, "edge:Knows").values()}
    assert ends <= set(rows(graph, "node:Person"))


def test_deleting_and_inserting_one_key_in_a_batch_counts_right(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.delete("Person", "bo")
        w.insert("Person", {"name": "bo", "age": 5})
    pin = graph.snapshot().pins["node:Person"]
    assert pin.rows == len(rows(graph, "node:Person")) == 2


def test_a_write_that_landed_is_not_reported_as_failed_by_its_upkeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = people_graph(tmp_path / "g")
    graph.create_branch("b")
    repo = graph._repository
    before = repo.branch
    committed = threading.Event()
    commit = graph._transaction.commit

    def watched(prepared):  # type: ignore[no-untyped-def]
        result = commit(prepared)
        committed.set()
        return result

    def failing(name: str):  # type: ignore[no-untyped-def]
        if committed.is_set():
            raise StorageFailure("the store is away")
        return before(name)

    monkeypatch.setattr(graph._transaction, "commit", watched)
    monkeypatch.setattr(repo, "branch", failing)
    with graph.write("b") as w:
        w.insert("City", {"name": "Rome"})
    monkeypatch.undo()
    assert "Rome" in rows(graph, "node:City", "b")


def test_threads_of_one_process_that_only_insert_all_succeed(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    failures: list[OmnigraphError] = []

    def write(n: int) -> None:
        for i in range(15):
            try:
                with graph.write() as w:
                    w.insert("Person", {"name": f"p{n}-{i}"})
            except OmnigraphError as error:
                failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert len(rows(graph, "node:Person")) == 2 + 8 * 15


def test_a_graph_made_again_at_the_same_place_is_not_read_from_old_caches(tmp_path: Path) -> None:
    import shutil

    where = tmp_path / "g"
    first = people_graph(where)
    assert set(rows(first, "node:Person")) == {"ana", "bo"}
    shutil.rmtree(where)
    graph = omnigraph.init(where, "node Person { name: String @key }")
    with graph.write() as w:
        w.insert("Person", {"name": "zed"})
    assert set(rows(graph, "node:Person")) == {"zed"}
    assert repository(graph).main.current().pins["node:Person"].rows == 1
