"""The history of a deleted merged branch: its commits and their attribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.history.attribution import (
    AttributedChange,
    AttributionList,
    digest_of,
    merge_of,
)
from omnigraph.errors import CommitNotFound, HistoryReclaimed
from omnigraph.merge.authorship import MergedHistory
from omnigraph.storage import failpoints
from omnigraph.storage.paths import HISTORY_PREFIX
from tests.graphs import people_graph
from tests.support.inline_tasks import bulk_graph
from tests.support.internals import repository_of


@pytest.fixture
def merged(tmp_path: Path) -> Graph:
    """Two commits of a branch were merged, and the branch is gone."""
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    with graph.write("dev", actor="ann", message="ana is 31") as w:
        w.update("Person", "ana", {"age": 31})
    with graph.write("dev", actor="bob", message="bo is 5, eve comes") as w:
        w.update("Person", "bo", {"age": 5})
        w.insert("Person", {"name": "eve", "age": 1})
    graph.merge("dev", actor="max", message="landing", delete_branch=True)
    return graph


def setters(graph: Graph, id: str, type_name: str = "Person") -> dict[str, str | None]:
    """Properties and the actors of the commits that set them."""
    found = graph.history.blame(type_name, id)
    return {item.property: item.commit and item.commit.actor for item in found}


def objects(graph: Graph) -> list[str]:
    return [info.path for info in repository_of(graph).objects.list(HISTORY_PREFIX)]


def test_the_commits_are_listed_and_shown(merged: Graph) -> None:
    found = {c.message: (c.actor, c.branch, len(p)) for c, p in merged.history.ancestry()}
    assert found["landing"] == ("max", "main", 2)
    assert found["ana is 31"] == ("ann", "dev", 1)
    assert found["bo is 5, eve comes"] == ("bob", "dev", 1)

    head = merged.history.commits(limit=1)[0].merged_parent
    assert head is not None
    commit = merged.history.commit(head)
    assert (commit.actor, commit.message, commit.branch) == ("bob", "bo is 5, eve comes", "dev")
    assert [c.message for c in merged.history.commits()] == ["landing", "ties", "people", None]


def test_blame_follows_them(merged: Graph) -> None:
    assert setters(merged, "ana") == {"name": "tester", "age": "ann"}
    assert setters(merged, "bo") == {"name": "tester", "age": "bob"}
    assert setters(merged, "eve") == {"name": "bob", "age": "bob"}


def test_histories_follow_them(merged: Graph) -> None:
    event = next(iter(merged.history.entity("Person", "ana")))
    assert (event.op, event.commit.message) == ("update", "landing")
    assert [(c.commit.actor, c.op, c.properties) for c in event.merged] == [
        ("ann", "update", ("age",))
    ]
    body = event.to_json()["merged"]
    assert [(c["commit"]["actor_id"], c["op"], c["properties"]) for c in body] == [
        ("ann", "update", ["age"])
    ]


def test_the_states_went_with_the_branch(merged: Graph) -> None:
    head = merged.history.commits(limit=1)[0].merged_parent
    assert head is not None
    for look in (
        lambda: merged.query("query q() { match { $p: Person } return { $p.name } }", at=head),
        lambda: merged.diff("main", head),
        lambda: merged.history.commit_changes(head),
        lambda: merged.tags.create("kept", head),
    ):
        with pytest.raises(HistoryReclaimed, match="merged and deleted"):
            look()
    with pytest.raises(CommitNotFound):
        merged.history.commit("01M7NYBKEP42TBEDBETHZW00JD")


def test_they_are_in_no_feed_and_no_list_of_the_branch(merged: Graph) -> None:
    blocks = merged.history.changes(start="beginning").blocks
    assert [block.commit.message for block in blocks][-1] == "landing"
    assert {block.commit.branch for block in blocks} == {"main"}


def test_they_stay_after_cleanup(merged: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    merged = omnigraph.open(merged.uri)
    with merged.write(message="later") as w:
        w.insert("City", {"name": "Rome"})
    before = list(merged.history.ancestry())
    merged.maintenance.cleanup(keep=1, confirm=True)
    fresh = omnigraph.open(merged.uri)

    assert list(fresh.history.ancestry()) == before
    assert setters(fresh, "eve") == {"name": "bob", "age": "bob"}
    assert setters(fresh, "ana")["age"] == "ann"
    told = {item.property: item.reclaimed for item in fresh.history.blame("Person", "ana")}
    assert told == {"name": True, "age": False}
    page = fresh.history.entity("Person", "ana").page(5)
    assert [(e.op, [c.commit.actor for c in e.merged]) for e in page.events] == [
        ("update", ["ann"])
    ]
    with pytest.raises(HistoryReclaimed):
        fresh.history.entity("Person", "ana").page(5, page.next_page_token)


def test_a_branch_that_was_merged_into_a_merged_branch(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "people")
    graph.branches.create("outer")
    graph.branches.create("inner", "outer")
    with graph.write("inner", actor="ann") as w:
        w.update("Person", "ana", {"age": 1})
    with graph.write("outer", actor="bob") as w:
        w.update("Person", "bo", {"age": 2})
    graph.merge("inner", "outer", actor="first", delete_branch=True)
    with graph.write("outer", actor="cyd") as w:
        w.insert("Person", {"name": "eve"})
    graph.merge("outer", actor="second", delete_branch=True)

    assert setters(graph, "ana")["age"] == "ann"
    assert setters(graph, "bo")["age"] == "bob"
    assert setters(graph, "eve")["name"] == "cyd"
    event = next(iter(graph.history.entity("Person", "ana")))
    assert [c.commit.actor for c in event.merged] == ["first", "ann"]
    assert len({c.commit_id for c, _ in graph.history.ancestry()}) == len(
        list(graph.history.ancestry())
    )


def test_a_value_given_as_a_resolution_was_set_by_the_merge(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    with graph.write("dev", actor="ann") as w:
        w.update("Person", "ana", {"age": 31})
    with graph.write(actor="bob") as w:
        w.update("Person", "ana", {"age": 32})
    named = {"entity_kind": "node", "type_name": "Person", "entity_id": "ana"}
    given = [{**named, "properties": {"age": 33}}]
    graph.merge("dev", actor="max", resolutions=given, delete_branch=True)

    assert setters(graph, "ana") == {"name": "tester", "age": "max"}


def test_an_entity_that_comes_back_with_a_merge_keeps_its_older_setters(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    with graph.write("dev", actor="ann") as w:
        w.update("Person", "bo", {"age": 31})
    with graph.write(actor="bob") as w:
        w.delete("Person", "bo")
    graph.merge("dev", actor="max", strategy="theirs", delete_branch=True)

    assert setters(graph, "bo") == {"name": "tester", "age": "ann"}


def test_a_merge_the_bulk_way_records_the_same(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    with graph.write("dev", actor="ann") as w:
        w.update("Person", "ana", {"age": 31})
    with graph.write("dev", actor="bob") as w:
        w.insert("Person", {"name": "eve"})
    bulk_graph(graph).merge("dev", actor="max", delete_branch=True)

    fresh = omnigraph.open(graph.uri)
    assert setters(fresh, "ana") == {"name": "tester", "age": "ann"}
    assert setters(fresh, "eve") == {"name": "bob", "age": "bob"}


def test_ends_of_edges_are_followed_too(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "people")
    (edge,) = [
        c.id for c in graph.diff(graph.history.commits()[-1].commit_id, "main", types=["LivesIn"])
    ]
    graph.branches.create("dev")
    with graph.write("dev", actor="ann") as w:
        w.insert("City", {"name": "Rome"})
    moved = {"edge": "LivesIn", "from": "ana", "to": "Rome", "data": {"id": edge}}
    graph.load([moved], mode="merge", branch="dev", actor="bob")
    graph.merge("dev", delete_branch=True)

    assert setters(graph, edge, "LivesIn") == {"from": None, "to": "bob"}
    assert setters(graph, "Rome", "City") == {"name": "ann"}


class TestStored:
    def test_what_all_entities_have_in_common_needs_no_object(self, tmp_path: Path) -> None:
        graph = people_graph(tmp_path / "people")
        graph.branches.create("dev")
        people = [{"name": f"p{n}"} for n in range(2_000)]
        graph.load({"Person": people}, mode="append", branch="dev", actor="ann")
        graph.merge("dev", delete_branch=True)

        assert objects(graph) == []
        assert setters(graph, "p77") == {"name": "ann", "age": "ann"}

    def test_one_commit_that_wrote_most_is_not_listed(self, tmp_path: Path) -> None:
        graph = people_graph(tmp_path / "people")
        graph.branches.create("dev")
        people = [{"name": f"p{n}"} for n in range(2_000)]
        graph.load({"Person": people}, mode="append", branch="dev", actor="ann")
        with graph.write("dev", actor="bob") as w:
            w.update("Person", "p7", {"age": 7})
        graph.merge("dev", delete_branch=True)

        (path,) = objects(graph)
        assert len(AttributionList.from_bytes(repository_of(graph).objects.get(path), path)) == 1
        assert setters(graph, "p7") == {"name": "ann", "age": "bob"}
        assert setters(graph, "p8") == {"name": "ann", "age": "ann"}

    def test_an_object_survives_its_bytes(self) -> None:
        deeds = (AttributedChange("c1", "insert"), AttributedChange("c2", "update", ("a", "b")))
        listed = AttributionList.of({"L": {digest_of("x"): deeds, 2**64 - 1: deeds[:1]}, "M": {}})
        again = AttributionList.from_bytes(listed.to_bytes(), "path")
        assert again.find("L", digest_of("x")) == deeds
        assert again.find("L", 2**64 - 1) == deeds[:1]
        assert again.find("M", digest_of("x")) is None
        left = again.without({"L": ["x"], "N": ["x"]})
        assert (len(left), left.find("L", digest_of("x"))) == (1, None)

    def test_a_merge_that_was_refused_leaves_no_object(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph = people_graph(tmp_path / "people")
        graph.branches.create("dev")
        for age in (1, 2):
            with graph.write("dev") as w:
                w.insert("Person", {"name": f"p{age}"})
        real, calls = MergedHistory.rows, []

        def overtaken(self: MergedHistory, *given: Any) -> Any:
            calls.append(1)
            found = real(self, *given)
            if len(calls) == 1:
                with omnigraph.open(graph.uri).write() as w:
                    w.insert("Person", {"name": "faster"})
            return found

        monkeypatch.setattr(MergedHistory, "rows", overtaken)
        result = graph.merge("dev")

        assert result.commit is not None
        assert len(calls) == 2
        assert [merge_of(path) for path in objects(graph)] == [result.commit.commit_id]

    def test_a_merge_that_died_leaves_an_orphan_that_cleanup_takes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph = people_graph(tmp_path / "people")
        graph.branches.create("dev")
        for age in (1, 2):
            with graph.write("dev") as w:
                w.insert("Person", {"name": f"p{age}"})
        failpoints.arm("history.after_put", "error")
        try:
            with pytest.raises(failpoints.FailpointError):
                graph.merge("dev")
        finally:
            failpoints.disarm_all()
        (orphan,) = objects(graph)
        graph.merge("dev")
        assert len(objects(graph)) == 2

        graph.maintenance.cleanup(keep=100, confirm=True)
        assert len(objects(graph)) == 2  # it is young
        later = repository_of(graph).clock.now_us() + 8 * 86_400 * 1_000_000
        monkeypatch.setattr(type(repository_of(graph).clock), "now_us", lambda _: later)
        graph.maintenance.cleanup(keep=100, confirm=True)
        (left,) = objects(graph)
        assert left != orphan
        assert graph.maintenance.check().healthy

    def test_copies_have_them(self, merged: Graph, tmp_path: Path) -> None:
        assert len(objects(merged)) == 1
        merged.maintenance.clone(tmp_path / "clone")
        merged.maintenance.backup(tmp_path / "backup")
        for copy in ("clone", "backup"):
            graph = omnigraph.open(tmp_path / copy, read_only=True)
            assert setters(graph, "bo") == {"name": "tester", "age": "bob"}
            assert graph.maintenance.check().healthy

    def test_a_purge_takes_an_entity_out(self, merged: Graph) -> None:
        (path,) = objects(merged)

        def listed() -> int:
            return len(AttributionList.from_bytes(repository_of(merged).objects.get(path), path))

        before = listed()
        merged.maintenance.purge("node", "Person", "bo", confirm=True)
        merged.maintenance.purge("node", "Person", "eve", confirm=True)
        assert listed() < before
        digests = AttributionList.from_bytes(
            repository_of(merged).objects.get(path), path
        ).digests.tolist()
        assert digest_of("bo") not in digests
        assert digest_of("eve") not in digests
        assert setters(merged, "ana") == {"name": "tester", "age": "ann"}
        assert merged.maintenance.check().healthy

    def test_where_the_object_is_lost_the_merge_is_named(self, merged: Graph) -> None:
        repository_of(merged).objects.delete_prefix(HISTORY_PREFIX)
        assert setters(merged, "bo") == {"name": "tester", "age": "max"}
        assert {f.damage for f in merged.maintenance.check().findings} == {"attribution_damaged"}


class TestMergesFromBefore:
    @pytest.fixture
    def people(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
        """A merge that kept nothing."""
        graph = people_graph(tmp_path / "people")
        graph.branches.create("dev")
        with graph.write("dev", actor="ann") as w:
            w.update("Person", "ana", {"age": 31})
        with monkeypatch.context() as patch:
            patch.setattr(MergedHistory, "rows", lambda *_: ())
            graph.merge("dev", actor="max")
        return graph

    def test_the_branch_is_followed_while_it_lives(self, people: Graph) -> None:
        assert setters(people, "ana") == {"name": "tester", "age": "ann"}
        people.branches.delete("dev")
        assert setters(people, "ana") == {"name": "tester", "age": "max"}

    def test_a_later_merge_keeps_what_it_can_still_find(self, people: Graph) -> None:
        people.branches.create("next")
        with people.write("dev", actor="bob") as w:
            w.update("Person", "ana", {"age": 40})
        people.merge("dev", "next", delete_branch=True)
        people.merge("next", delete_branch=True)
        assert setters(people, "ana") == {"name": "tester", "age": "bob"}


def test_a_merge_base_is_found_through_a_deleted_branch(tmp_path: Path) -> None:
    """What came to the target by way of another branch is no conflict later."""
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.update("Person", "ana", {"age": 31})
    shared = graph.history.commits("dev", limit=1)[0].commit_id
    graph.branches.create("courier", "dev")
    with graph.write("courier") as w:
        w.insert("Person", {"name": "eve"})
    graph.merge("courier", delete_branch=True)
    with graph.write("dev") as w:
        w.update("Person", "ana", {"age": 32})

    result = graph.merge("dev")

    assert result.base_commit_id == shared
    assert graph.entity("node:Person", "ana")["age"] == 32


def test_states_that_were_cleaned_up_before_the_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wrote an entity last is still known from its row."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    graph = people_graph(tmp_path / "people")
    graph.branches.create("dev")
    for actor, name in (("ann", "p1"), ("bob", "p2"), ("cyd", "p3")):
        with graph.write("dev", actor=actor) as w:
            w.insert("Person", {"name": name})
    graph.maintenance.cleanup(keep=1, confirm=True)
    fresh = omnigraph.open(graph.uri)
    fresh.merge("dev", actor="max", delete_branch=True)

    found = {name: setters(fresh, name)["name"] for name in ("p1", "p2", "p3")}
    assert found == {"p1": "ann", "p2": "bob", "p3": "cyd"}


def test_who_updated_many_entities_is_known_after_the_states_are_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    graph = people_graph(tmp_path / "people")
    names = [f"p{number}" for number in range(300)]
    with graph.write(actor="zoe") as w:
        for name in names:
            w.insert("Person", {"name": name, "age": 1})
    graph.branches.create("dev")
    with graph.write("dev", actor="ann") as w:
        for name in names:
            w.update("Person", name, {"age": 2})
    graph.merge("dev", actor="max", delete_branch=True)
    graph.maintenance.cleanup(keep=1, confirm=True)

    fresh = omnigraph.open(graph.uri)
    blamed = {item.property: item for item in fresh.history.blame("Person", "p7")}
    assert blamed["age"].commit is not None
    assert blamed["age"].commit.actor == "ann"
    assert blamed["name"].reclaimed
