"""Graphs on an S3 store: the same promises, and typed answers when the bucket says no."""

from __future__ import annotations

import pytest
from tests.graphs import PEOPLE, rows
from tests.support.s3server import S3Fault, S3Server

import omnigraph
from omnigraph.errors import GraphExists, GraphNotFound, OmnigraphError, PermissionDenied

pytestmark = pytest.mark.s3


def test_a_graph_lives_in_a_bucket(bucket: str) -> None:
    graph = omnigraph.init(f"{bucket}/deep/people", PEOPLE)
    with graph.write(message="hello") as w:
        w.insert("Person", {"name": "ana"})
        w.insert("City", {"name": "Oslo"})
        w.insert_edge("LivesIn", "ana", "Oslo")
    graph.branches.create("exp")
    with graph.write("exp") as w:
        w.delete("Person", "ana")
    again = omnigraph.open(f"{bucket}/deep/people")
    assert [c.message for c in again.history.commits()] == ["hello", None]
    assert again.snapshot("exp").pins["edge:LivesIn"].rows == 0
    assert len(rows(again, "edge:LivesIn")) == 1
    genesis = again.history.commits()[-1].commit_id
    assert again.snapshot(commit=genesis).pins["node:Person"].rows == 0


def test_init_twice_and_opening_nothing_are_typed(bucket: str) -> None:
    omnigraph.init(f"{bucket}/g", PEOPLE)
    with pytest.raises(GraphExists):
        omnigraph.init(f"{bucket}/g", PEOPLE)
    with pytest.raises(GraphNotFound):
        omnigraph.open(f"{bucket}/other")


def test_a_bucket_that_does_not_exist_is_a_typed_error(bucket: str) -> None:
    with pytest.raises(OmnigraphError) as failure:
        omnigraph.init(f"{bucket}-missing/g", PEOPLE)
    assert failure.value.remedy
    assert "defect" not in failure.value.remedy


def test_an_unwritable_bucket_is_a_permission_problem_and_nothing_is_half_made(
    bucket: str, s3: S3Server
) -> None:
    s3.inject(S3Fault(kind="PUT", status=403, times=None))
    with pytest.raises(PermissionDenied) as denied:
        omnigraph.init(f"{bucket}/g", PEOPLE)
    assert "access" in denied.value.remedy
    s3.clear_faults()
    with pytest.raises(GraphNotFound):
        omnigraph.open(f"{bucket}/g")
    omnigraph.init(f"{bucket}/g", PEOPLE)


def test_a_bucket_that_turns_unwritable_refuses_the_write_and_keeps_the_graph(
    bucket: str, s3: S3Server
) -> None:
    graph = omnigraph.init(f"{bucket}/g", PEOPLE)
    s3.inject(S3Fault(kind="PUT", key="*/__manifest/*", status=403, times=None))
    with pytest.raises(PermissionDenied), graph.write() as w:
        w.insert("City", {"name": "Rome"})
    assert rows(graph, "node:City") == {}
    s3.clear_faults()
    with graph.write() as w:
        w.insert("City", {"name": "Oslo"})
    assert set(rows(graph, "node:City")) == {"Oslo"}
    assert len(graph.maintenance.recoveries()) == 1


def test_a_lost_answer_to_the_publish_neither_loses_nor_doubles_the_write(
    bucket: str, s3: S3Server
) -> None:
    graph = omnigraph.init(f"{bucket}/g", PEOPLE)
    versions = "*/__manifest/_versions/*"
    s3.inject(S3Fault(kind="PUT", key=versions, action="drop", when="after", times=1))
    with graph.write(message="once") as w:
        w.insert("City", {"name": "Oslo"})
    assert set(rows(graph, "node:City")) == {"Oslo"}
    assert [c.message for c in graph.history.commits()] == ["once", None]


def test_a_lost_answer_to_a_table_commit_neither_loses_nor_doubles_the_write(
    bucket: str, s3: S3Server
) -> None:
    graph = omnigraph.init(f"{bucket}/g", PEOPLE)
    versions = "*/nodes/*/_versions/*"
    s3.inject(S3Fault(kind="PUT", key=versions, action="drop", when="after", times=1))
    with graph.write(message="once") as w:
        w.insert("City", {"name": "Oslo"})
    assert set(rows(graph, "node:City")) == {"Oslo"}
    assert [c.message for c in graph.history.commits()] == ["once", None]
    assert graph.maintenance.pending_writes() == []
