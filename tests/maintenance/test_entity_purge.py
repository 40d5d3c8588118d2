"""Purging an entity: gone from every file, and everything else is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import rows
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import EntityNotFound, HistoryPurged, PurgeRefused, TypeNotFound
from omnigraph.storage import failpoints

SCHEMA = """
node Person {
  name: String @key
  secret: String? @index
  age: I32?
}
node City { name: String @key }
edge Knows: Person -> Person { note: String? }
edge LivesIn: Person -> City
"""
SECRET = "hunter2-is-my-secret"
NOTE = "what-eve-told-me"


@pytest.fixture
def small(tmp_path: Path) -> Graph:
    """Eve was written and tagged, then changed."""
    graph = people(tmp_path)
    with graph.write(message="older") as w:
        w.update("Person", "eve-the-purged", {"secret": f"{SECRET} 2", "age": 3})
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Eve was written, changed, indexed, compacted, tagged and branched off."""
    graph = people(tmp_path)
    graph.maintenance.build_indexes()
    graph.branches.create("side")
    graph.branches.create("quiet")
    with graph.write("side", message="on the side") as w:
        w.update("Person", "eve-the-purged", {"secret": f"{SECRET} side"})
        w.insert("Person", {"name": "dan", "age": 4})
    with graph.write(message="older") as w:
        w.update("Person", "eve-the-purged", {"secret": f"{SECRET} 2", "age": 3})
        w.update("Person", "ana", {"age": 5})
    graph.maintenance.optimize()
    with graph.write(message="newer") as w:
        w.update("Person", "bo", {"age": 6})
    return graph


def people(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write(message="people") as w:
        for name in ("ana", "bo", "cy"):
            w.insert("Person", {"name": name, "age": 1})
        w.insert("Person", {"name": "eve-the-purged", "secret": f"{SECRET} 1", "age": 2})
        w.insert("City", {"name": "Oslo"})
    graph.tags.create("first")
    with graph.write(message="ties") as w:
        w.insert_edge("Knows", "ana", "bo", {"note": "friends"})
        w.insert_edge("Knows", "eve-the-purged", "bo", {"note": NOTE})
        w.insert_edge("Knows", "cy", "eve-the-purged", {"note": NOTE})
        w.insert_edge("LivesIn", "eve-the-purged", "Oslo")
    return graph


def files_with(graph: Graph, *texts: str) -> list[str]:
    """The files of the graph that have one of these texts in them."""
    root = Path(graph.uri.removeprefix("file://"))
    found = [path for path in root.rglob("*") if path.is_file()]
    assert found
    return [str(p) for p in found if any(text.encode() in p.read_bytes() for text in texts)]


def exported(graph: Graph, at: str) -> list[Any]:
    lines = b"".join(graph.export(at=at)).splitlines()
    return [json.loads(line) for line in lines]


def without_eve(records: list[Any]) -> list[Any]:
    return [record for record in records if "eve-the-purged" not in str(record)]


def states(graph: Graph) -> dict[str, list[Any]]:
    commits = {c.commit_id for b in graph.branches.list() for c in graph.history.commits(b)}
    return {at: exported(graph, at) for at in (*commits, "first", *graph.branches.list())}


def test_every_state_is_what_it_was_without_the_entity(graph: Graph) -> None:
    before = states(graph)
    assert files_with(graph, SECRET)
    graph.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    after = {at: exported(graph, at) for at in before}
    assert after == {at: without_eve(records) for at, records in before.items()}
    assert files_with(graph, SECRET, "eve-the-purged", NOTE) == []
    reopened = omnigraph.open(graph.uri)
    assert {at: exported(reopened, at) for at in before} == after
    assert reopened.maintenance.check().findings == []


def test_a_look_changes_nothing_and_says_what_would_be_done(graph: Graph) -> None:
    files = sorted(Path(graph.uri).rglob("*"))
    report = graph.maintenance.purge("node", "Person", "eve-the-purged")
    assert sorted(Path(graph.uri).rglob("*")) == files
    assert not report.confirmed
    assert report.branches == ["main", "quiet", "side"]
    assert report.tags == ["first"]
    assert [one.type_key for one in report.types] == ["edge:Knows", "edge:LivesIn", "node:Person"]
    assert any("backups" in text for text in report.out_of_reach)


def test_differences_histories_and_merges_go_on_as_if_it_had_never_been(graph: Graph) -> None:
    first = graph.history.commits()[-2].commit_id
    graph.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    changed = {change.id for change in graph.diff(first, "main").changes()}
    assert changed >= {"ana", "bo"}
    assert "eve-the-purged" not in changed
    assert [e.commit.message for e in graph.history.entity("Person", "ana")] == ["older", "people"]
    assert list(graph.history.entity("Person", "eve-the-purged")) == []
    for commit in graph.history.commits()[:-1]:
        told = str(graph.history.commit_changes(commit.commit_id).to_json())
        assert SECRET not in told
        assert "eve-the-purged" not in told
    graph.merge("side")
    assert set(rows(graph, "node:Person")) == {"ana", "bo", "cy", "dan"}
    assert graph.maintenance.check().findings == []


def test_an_edge_goes_alone(small: Graph) -> None:
    before = states(small)
    (doomed,) = [row for row in rows(small, "edge:Knows").values() if row["src"] == "cy"]
    small.maintenance.purge("edge", "Knows", str(doomed["id"]), confirm=True)
    after = {at: exported(small, at) for at in before}
    assert after == {at: [r for r in rs if r.get("from") != "cy"] for at, rs in before.items()}
    assert files_with(small, str(doomed["id"])) == []
    assert files_with(small, SECRET)


def test_what_was_deleted_long_ago_is_purged_too(small: Graph) -> None:
    for branch in small.branches.list():
        with small.write(branch) as w:
            w.delete("Person", "eve-the-purged")
    head = small.history.commits(limit=1)[0].commit_id
    report = small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert report.branches == []
    assert small.history.commits(limit=1)[0].commit_id == head
    assert files_with(small, SECRET, "eve-the-purged", NOTE) == []


def test_files_that_a_dead_writer_left_are_looked_into(small: Graph) -> None:
    failpoints.arm("record.before_put", "error")
    with pytest.raises(failpoints.FailpointError), small.write() as w:
        w.update("Person", "eve-the-purged", {"secret": f"{SECRET} never"})
    failpoints.disarm_all()
    assert files_with(small, f"{SECRET} never")
    small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert files_with(small, SECRET) == []


def test_an_entity_that_never_was_is_not_found(small: Graph) -> None:
    with pytest.raises(EntityNotFound):
        small.maintenance.purge("node", "Person", "nobody", confirm=True)
    with pytest.raises(TypeNotFound):
        small.maintenance.purge("node", "Pirate", "eve-the-purged", confirm=True)


def test_a_state_that_somebody_holds_is_not_taken_away(small: Graph) -> None:
    with small.maintenance.hold("first"), pytest.raises(PurgeRefused, match="readers hold states"):
        small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert small.branches.list()
    assert files_with(small, SECRET)
    small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)


def test_an_unfinished_bulk_write_is_waited_for(small: Graph) -> None:
    repository_of(small).objects.put("_staging/01AN4Z07BY79KA1307SR9X4MV3/intent.json", b"{}")
    with pytest.raises(PurgeRefused, match="unfinished"):
        small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)


@pytest.mark.parametrize(
    ("made", "point"),
    [
        ("graph", "erase.before_versions"),
        ("graph", "erase.after_version"),
        ("small", "erase.after_versions"),
        ("small", "erase.after_files"),
    ],
)
def test_an_interrupted_purge_is_finished_by_the_next(
    request: pytest.FixtureRequest, made: str, point: str
) -> None:
    graph: Graph = request.getfixturevalue(made)
    before = states(graph)
    failpoints.arm(point, "error", nth=1 if point == "erase.before_versions" else 2)
    with pytest.raises(failpoints.FailpointError):
        graph.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    failpoints.disarm_all()
    graph = omnigraph.open(graph.uri)
    if point == "erase.after_version":
        with pytest.raises(HistoryPurged, match="is being rewritten by purge"):
            states(graph)
    graph.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    after = {at: exported(graph, at) for at in before}
    assert after == {at: without_eve(records) for at, records in before.items()}
    assert files_with(graph, SECRET, "eve-the-purged", NOTE) == []
    assert graph.maintenance.check().findings == []


def test_a_backup_that_is_brought_up_to_date_shows_it_no_more(small: Graph, tmp_path: Path) -> None:
    before = states(small)
    small.maintenance.backup(tmp_path / "copy")
    small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    small.maintenance.backup(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy", read_only=True)
    after = {at: exported(copy, at) for at in before}
    assert after == {at: without_eve(records) for at, records in before.items()}
    assert copy.maintenance.check().findings == []


def test_a_query_of_the_past_does_not_remember_it(small: Graph) -> None:
    text = "query all() { match { $p: Person } return { $p.name } order { $p.name } }"
    assert len(small.query(text, at="first").rows()) == 4
    small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert [row["p.name"] for row in small.query(text, at="first").rows()] == ["ana", "bo", "cy"]
    assert [row["p.name"] for row in small.query(text).rows()] == ["ana", "bo", "cy"]


def test_another_handle_goes_on_with_what_is_left(small: Graph) -> None:
    text = "query all() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
    other = omnigraph.open(small.uri)
    assert len(other.query(text, at="first").rows()) == 4
    small.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert [row["p.name"] for row in other.query(text, at="first").rows()] == ["ana", "bo", "cy"]
    assert [row["p.name"] for row in other.query(text).rows()] == ["ana", "bo", "cy"]
    with other.write() as w:
        w.update("Person", "bo", {"age": 70})
    assert other.maintenance.check().findings == []


def test_states_with_blobs_are_given_up_and_say_so(tmp_path: Path) -> None:
    schema = "node Doc { name: String @key\n body: Blob? }\nnode Other { name: String @key }"
    graph = omnigraph.init(tmp_path / "g", schema)
    with graph.write() as w:
        for name in ("a", "eve-the-purged"):
            w.insert("Doc", {"name": name, "body": f"base64:{'c2VjcmV0LWJ5dGVz'}"})
    old = graph.history.commits(limit=1)[0].commit_id
    report = graph.maintenance.purge("node", "Doc", "eve-the-purged", confirm=True)
    assert sum(one.versions_given_up for one in report.types) > 0
    with pytest.raises(HistoryPurged, match=f"dropped by purge {report.purge_id}"):
        exported(graph, old)
    assert graph.entity("node:Doc", "a")["id"] == "a"
    assert files_with(graph, "eve-the-purged") == []
    assert graph.maintenance.check().findings == []


@pytest.mark.s3
def test_an_entity_is_purged_on_s3(bucket: str) -> None:
    graph = omnigraph.init(f"{bucket}/g", SCHEMA)
    with graph.write() as w:
        w.insert("Person", {"name": "ana"})
        w.insert("Person", {"name": "eve-the-purged", "secret": SECRET})
    graph.tags.create("first")
    graph.branches.create("side")
    graph.maintenance.purge("node", "Person", "eve-the-purged", confirm=True)
    assert [record["data"]["name"] for record in exported(graph, "first")] == ["ana"]
    assert set(rows(graph, "node:Person", "side")) == {"ana"}
    objects = repository_of(graph).objects
    held = [info.path for info in objects.list() if SECRET.encode() in objects.get(info.path)]
    assert held == []
