"""Optimistic conflicts between concurrent writers, in one process and between processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph, rows
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.manifest import Manifest
from omnigraph.catalog.publication import Publication
from omnigraph.errors import OmnigraphError, ReadSetConflict, StorageFailure
from omnigraph.prepare.preparer import Preparer
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


def after_preparing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> None:
    """Do something once, when the next write is prepared and has not landed."""
    stage = Preparer.stage

    def stage_then(self: Preparer, *args: Any, **kwargs: Any) -> Any:
        prepared = stage(self, *args, **kwargs)
        monkeypatch.setattr(Preparer, "stage", stage)
        do()
        return prepared

    monkeypatch.setattr(Preparer, "stage", stage_then)


def test_an_edge_turned_to_a_node_and_the_deletion_of_that_node_cannot_both_land(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    (edge_id,) = rows(graph, "edge:Knows")
    turned = [{"edge": "Knows", "from": "ana", "to": "cy", "data": {"id": edge_id}}]
    other = omnigraph.open(graph.uri)
    after_preparing(monkeypatch, lambda: other.load(turned, mode="merge"))
    with pytest.raises(ReadSetConflict), graph.write() as w:
        w.delete("Person", "cy")
    assert {row["dst"] for row in rows(graph, "edge:Knows").values()} == {"cy"}
    assert "cy" in rows(graph, "node:Person")


def test_threads_that_only_insert_into_one_type_all_get_through(graph: Graph) -> None:
    failures: list[OmnigraphError] = []

    def insert(thread: int) -> None:
        for number in range(15):
            try:
                with graph.write() as w:
                    w.insert("Person", {"name": f"p{thread}-{number}"})
            except OmnigraphError as error:
                failures.append(error)

    threads = [threading.Thread(target=insert, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(rows(graph, "node:Person")) == 2 + 8 * 15


def test_a_write_that_landed_is_not_called_failed_because_its_upkeep_did(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.branches.create("b")
    branch, publish = repository_of(graph).branch, Manifest.publish

    def publish_then(self: Manifest, publication: Publication) -> Any:
        published = publish(self, publication)
        monkeypatch.setattr(repository_of(graph), "branch", away)
        return published

    def away(name: str) -> Any:
        monkeypatch.setattr(repository_of(graph), "branch", branch)
        raise StorageFailure("the store is away")

    monkeypatch.setattr(Manifest, "publish", publish_then)
    with graph.write("b") as w:
        w.insert("City", {"name": "Rome"})
    assert repository_of(graph).branch == branch  # it was asked for, and failed
    assert "Rome" in rows(graph, "node:City", "b")


def test_an_insertion_that_meets_an_index_build_is_prepared_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(graph.uri)
    tables = repository_of(graph).tables
    commit = tables.commit

    def commit_after_an_index_build(staged: StagedWrite) -> PinnedTable:
        monkeypatch.setattr(tables, "commit", commit)
        other.maintenance.build_indexes()
        return commit(staged)

    monkeypatch.setattr(tables, "commit", commit_after_an_index_build)
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    with graph.write() as w:
        w.insert("Person", {"name": "dee"})
    assert set(rows(graph, "node:Person")) == {"ana", "bo", "cy", "dee"}
    assert graph.snapshot().pin("node:Person").rows == 4
    assert graph.maintenance.pending_writes() == []
