"""W-8, the drift guard: a write never builds on an unpublished version of a table."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.graphs import people_graph, repository, rows

import omnigraph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import MAIN, Row, RowKind
from omnigraph.errors import Drift
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.rows import stage_delete
from omnigraph.storage.lance.tables import OPERATION_PROPERTY


def _move_person(graph: omnigraph.Graph, operation: str) -> None:
    """Move a table without publishing, under an operation id."""
    import pyarrow as pa

    view = repository(graph)
    table = view.tables.open(view.main.current().pins["node:Person"].ref)
    view.tables.commit(stage_delete(table, pa.array(["ana"]), {OPERATION_PROPERTY: operation}))


def test_drift_that_no_record_covers_is_reported_with_the_way_out(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    path = tmp_path / "g" / graph.snapshot().pins["node:Person"].ref.path
    lance.dataset(path).delete("name = 'ana'")
    with pytest.raises(Drift) as drift, graph.write() as w:
        w.insert("Person", {"name": "cy"})
    assert "omnigraph repair" in drift.value.remedy
    assert drift.value.details["published_version"] == 2
    assert drift.value.details["newest_version"] == 3
    assert set(rows(graph, "node:Person")) == {"ana", "bo"}  # readers see what was published


def test_drift_of_one_type_does_not_touch_the_others(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    path = tmp_path / "g" / graph.snapshot().pins["node:Person"].ref.path
    lance.dataset(path).delete("name = 'ana'")
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    assert "Rome" in rows(graph, "node:City")


def test_R_10_drift_of_an_abandoned_operation_is_undone_by_the_next_writer(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    operation = new_ulid()
    mark = Row(f"abandoned:{operation}", RowKind.ABANDONED)
    repository(graph).main.publish(Publication(new_ulid(), MAIN, put=(mark,)))
    _move_person(graph, operation)
    commits = len(graph.history.commits())
    with graph.write() as w:  # undoing it adds no commit: the update is prepared again
        w.update("Person", "bo", {"age": 2})
    assert set(rows(graph, "node:Person")) == {"ana", "bo"}
    assert len(graph.history.commits()) == commits + 1


def test_inserts_go_through_when_they_meet_drift_of_an_abandoned_operation(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    operation = new_ulid()
    mark = Row(f"abandoned:{operation}", RowKind.ABANDONED)
    repository(graph).main.publish(Publication(new_ulid(), MAIN, put=(mark,)))
    _move_person(graph, operation)
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    assert set(rows(graph, "node:Person")) == {"ana", "bo", "cy"}
