"""Differences, merges, undoing and deleted branches on an object store."""

from __future__ import annotations

import pytest
from tests.graphs import PEOPLE
from tests.support.promises import broken_promises

import omnigraph
from omnigraph.catalog.repository import Repository
from omnigraph.storage.locations import parse_location


@pytest.mark.s3
def test_branches_come_together_on_s3(bucket: str) -> None:
    graph = omnigraph.init(f"{bucket}/g", PEOPLE)
    with graph.write() as w:
        w.insert("Person", {"name": "ana"})
        w.insert("Person", {"name": "bo"})
        w.insert_edge("Knows", "ana", "bo")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.update("Person", "ana", {"age": 1})
        w.delete("Person", "bo")
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    graph.tags.create("before")

    changes = [(c.type_name, str(c.op)) for c in graph.diff("main", "dev")]
    result = graph.merge("dev", delete_branch=True)

    assert sorted(changes) == [
        ("Knows", "delete"),
        ("Person", "delete"),
        ("Person", "delete"),
        ("Person", "update"),
    ]
    assert (result.outcome, result.branch_deleted) == ("merged", True)
    view = Repository.open(parse_location(graph.uri))
    assert [info.path for info in view.objects.list() if "/tree/" in info.path] == []
    assert result.commit is not None
    assert graph.revert(result.commit.commit_id) is not None
    assert list(graph.diff("before", "main")) == []
    assert graph.reset(result.commit.commit_id, "main") is not None
    assert [c.id for c in graph.diff("before", "main", types=["Person"])] == ["ana", "bo"]
    assert broken_promises(graph.uri) == []
