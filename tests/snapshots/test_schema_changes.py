"""Differences between snapshots of different schemas: properties are paired by identity."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.lang.schema import AcceptedSchema, accept_schema
from omnigraph.model.ids import new_ulid
from omnigraph.snapshots.diff import Diff
from omnigraph.snapshots.entity_delta import State

WITH = "node Person {\n  name: String @key\n  age: I32?\n}\nnode City { name: String @key }\n"
WITHOUT = "node Person { name: String @key }\nnode City { name: String @key }\n"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", WITH)
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "age": 1})
        w.insert("Person", {"name": "bo"})
    with graph.write() as w:
        w.update("Person", "ana", {"age": 1})
        w.update("Person", "bo", {"age": None})
    return graph


def diff(graph: Graph, old: AcceptedSchema, new: AcceptedSchema) -> Diff:
    """The two commits of the graph, read with different schemas, as after a soft drop."""
    commits = graph.history.commits()
    snapshots = [graph.snapshot(commit=commits[at].commit_id) for at in (1, 0)]
    states = [State(s, schema) for s, schema in zip(snapshots, (old, new), strict=True)]
    return Diff(repository_of(graph), *states)


def test_a_removed_property_is_a_change_of_the_schema_and_of_no_entity(graph: Graph) -> None:
    full = graph.schema()
    less = accept_schema(WITHOUT, previous=full, mint=new_ulid)

    found = diff(graph, full, less)

    assert [str(change) for change in found.schema] == ["removed node Person.age"]
    assert list(found) == []


def test_an_added_property_changes_the_entities_that_have_a_value(graph: Graph) -> None:
    full = graph.schema()
    less = accept_schema(WITHOUT, previous=full, mint=new_ulid)

    found = diff(graph, less, full)

    assert [str(change) for change in found.schema] == ["added node Person.age"]
    (change,) = found
    assert change.id == "ana"
    assert change.before == {"properties": {"name": "ana"}}
    assert change.after == {"properties": {"name": "ana", "age": 1}}


def test_renames_keep_identity(graph: Graph) -> None:
    full = graph.schema()
    renamed = accept_schema(
        WITH.replace("node City", 'node Town @rename_from("City")'), previous=full, mint=new_ulid
    )

    assert [str(c) for c in diff(graph, full, renamed).schema] == ["renamed node Town (was City)"]
