"""Cleanup: what goes, and above all what stays."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest
from tests.graphs import die_writing, files_below, grow_old, people_graph, rows
from tests.support.internals import context_of, repository_of, transaction_of
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import MANIFEST_PATH, Row, RowKind
from omnigraph.errors import ChangeFeedGap, HistoryReclaimed, InvalidInput, OmnigraphError, ReadOnly
from omnigraph.maintenance.cleanup import CleanupReport
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.indexes import IndexSpec, build_indexes, stage_built
from omnigraph.storage.lance.staging.rows import stage_delete, write_rows
from omnigraph.storage.lance.tables import OPERATION_PROPERTY
from omnigraph.transaction import reader_leases as leases
from omnigraph.transaction.ownership import this_process
from omnigraph.transaction.recovery.drift import find_drift

DAY = 86_400


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but the test reads the graph; most of it was written seconds ago."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    for number in range(4):
        touch(graph, number)
    return graph


def touch(graph: Graph, number: int, branch: str = "main") -> str:
    """One more commit; returns its id."""
    with graph.write(branch) as w:
        w.update("Person", "ana", {"age": number})
        w.replace("Person", {"name": f"p{number}-{branch}"})
    return graph.history.commits(branch, limit=1)[0].commit_id


def age_of_ana(graph: Graph, at: str | None = None, branch: str | None = None) -> int:
    text = 'query q() { match { $p: Person { name: "ana" } } return { $p.age } }'
    (row,) = graph.query(text, at=at, branch=branch).rows()
    return int(row["p.age"])


def by_key(report: CleanupReport) -> dict[str, int]:
    return {one.type_key: one.old_versions_removed for one in report.datasets}


def reopened(graph: Graph) -> Graph:
    return omnigraph.open(graph.uri)


def test_X_40_a_cleanup_without_limits_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidInput, match="needs a retention policy"):
        graph.maintenance.cleanup()
    with pytest.raises(ReadOnly):
        omnigraph.open(graph.uri, read_only=True).maintenance.cleanup(keep=1, confirm=True)


def test_without_confirmation_nothing_changes_and_the_preview_is_exact(graph: Graph) -> None:
    before = files_below(Path(graph.uri))
    preview = omnigraph.open(graph.uri, read_only=True).maintenance.cleanup(keep=1)
    assert files_below(Path(graph.uri)) == before
    assert preview.bytes_removed > 0
    assert preview.commits_given_up == {"main": len(graph.history.commits()) - 1}
    done = graph.maintenance.cleanup(keep=1, confirm=True)
    assert by_key(done)["node:Person"] == by_key(preview)["node:Person"] == 5
    removed = {one.type_key: one.bytes_removed for one in done.datasets}
    assert (
        removed["node:Person"]
        == {o.type_key: o for o in preview.datasets}["node:Person"].bytes_removed
    )
    gone = sum(before.values()) - sum(
        size for name, size in files_below(Path(graph.uri)).items() if name in before
    )
    assert gone == done.bytes_removed


def test_X_40_X_42_what_is_outside_the_limits_is_gone_and_says_so(graph: Graph) -> None:
    commits = graph.history.commits()  # newest first
    head, answer = graph.snapshot(), rows(graph, "node:Person")
    graph.maintenance.cleanup(keep=2, confirm=True)
    fresh = reopened(graph)
    assert rows(fresh, "node:Person") == answer
    assert fresh.snapshot().pins == head.pins
    assert [age_of_ana(fresh, c.commit_id) for c in commits[:2]] == [3, 2]
    for commit in commits[2:]:
        with pytest.raises(HistoryReclaimed):
            age_of_ana(fresh, commit.commit_id)
    with pytest.raises(HistoryReclaimed):
        fresh.diff(commits[2].commit_id, "main")
    with pytest.raises(HistoryReclaimed):
        fresh.branches.create("late", commits[2].commit_id)
    with pytest.raises(HistoryReclaimed):
        fresh.tags.create("late", commits[2].commit_id)
    assert list(fresh.diff(commits[1].commit_id, "main"))
    fresh.branches.create("early", commits[1].commit_id)
    assert age_of_ana(fresh, branch="early") == 2
    assert not broken_promises(graph.uri)


def test_X_42_the_newest_of_a_history_are_read_though_the_older_are_gone(graph: Graph) -> None:
    for age in range(20, 32):
        with graph.write() as w:
            w.update("Person", "ana", {"age": age})
    commits = [event.commit for event in graph.history.entity("Person", "ana")]
    graph.maintenance.cleanup(keep=6, confirm=True)
    fresh = reopened(graph)
    page = fresh.history.entity("Person", "ana").page(4)
    assert [event.commit for event in page.events] == commits[:4]
    with pytest.raises(HistoryReclaimed):
        list(fresh.history.entity("Person", "ana"))


def test_X_42_the_feed_reports_the_gap_and_goes_on_after_it(graph: Graph) -> None:
    commits = graph.history.commits()
    graph.maintenance.cleanup(keep=2, confirm=True)
    fresh = reopened(graph)
    with pytest.raises(ChangeFeedGap):
        fresh.history.changes(start="beginning")
    page = fresh.history.changes(start=f"after:{commits[1].commit_id}")
    assert [block.commit.commit_id for block in page.blocks] == [commits[0].commit_id]


@pytest.mark.parametrize(
    ("keep", "older_than", "kept"),
    [(0, None, 1), (2, None, 2), (None, 0, 1), (None, 3_600, 7), (2, 3_600, 7), (3, 0, 3)],
)
def test_X_40_a_commit_goes_only_outside_both_limits(
    graph: Graph, keep: int | None, older_than: int | None, kept: int
) -> None:
    age = None if older_than is None else timedelta(seconds=older_than)
    commits = graph.history.commits()
    graph.maintenance.cleanup(keep=keep, older_than=age, confirm=True)
    fresh = reopened(graph)
    readable = 0
    for commit in commits:
        try:
            context_of(fresh).reader.pin(at=commit.commit_id)
            readable += 1
        except HistoryReclaimed:
            pass
    assert readable == kept


def test_readers_have_an_hour(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that was the newest one within the grace stays, whatever the limits say."""
    monkeypatch.delenv("OMNIGRAPH_READER_GRACE_SECONDS")
    graph = reopened(graph)
    commits = graph.history.commits()
    report = graph.maintenance.cleanup(keep=1, confirm=True)
    assert by_key(report)["node:Person"] == 0
    assert report.commits_in_grace == {"main": len(commits) - 1}
    grow_old(graph, 2 / 24)
    touch(graph, 50)
    graph.maintenance.cleanup(keep=1, confirm=True)
    fresh = reopened(graph)
    assert age_of_ana(fresh, commits[0].commit_id) == 3  # superseded just now
    with pytest.raises(HistoryReclaimed):
        age_of_ana(fresh, commits[1].commit_id)


def test_a_pinned_reader_with_a_lease_is_never_disturbed(graph: Graph) -> None:
    commits = graph.history.commits()
    with graph.maintenance.hold(commits[2].commit_id) as snapshot:
        reopened(graph).maintenance.cleanup(keep=1, confirm=True)
        fresh = reopened(graph)
        assert age_of_ana(fresh, snapshot.commit_id) == 1
        with pytest.raises(HistoryReclaimed):
            age_of_ana(fresh, commits[1].commit_id)
    reopened(graph).maintenance.cleanup(keep=1, confirm=True)
    with pytest.raises(HistoryReclaimed):
        age_of_ana(reopened(graph), snapshot.commit_id)


def test_a_dead_readers_lease_holds_nothing_and_is_removed(graph: Graph) -> None:
    owner = {**asdict(this_process()), "started": "long ago"}
    body = {"owner": owner, "branch": "main", "version": 1}
    lease = Path(graph.uri) / leases.PREFIX / f"{new_ulid()}.json"
    lease.parent.mkdir()
    lease.write_text(json.dumps(body))
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert not lease.exists()


def test_J07_branches_keep_what_they_inherited_and_what_a_merge_needs(graph: Graph) -> None:
    graph.branches.create("dev")
    touch(graph, 10, "dev")
    for number in range(20, 23):
        with graph.write() as w:
            w.insert("City", {"name": f"c{number}"})
            w.update("Person", "bo", {"age": number})
    before = rows(graph, "node:Person", "dev")
    graph.maintenance.cleanup(keep=1, confirm=True)
    fresh = reopened(graph)
    assert rows(fresh, "node:Person", "dev") == before
    assert rows(fresh, "node:City", "dev").keys() == {"Oslo"}
    assert age_of_ana(fresh, branch="dev") == 10
    fresh.merge("dev")
    assert age_of_ana(fresh) == 10
    assert rows(fresh, "node:Person")["bo"]["age"] == 22
    fresh.maintenance.cleanup(keep=1, confirm=True)
    with fresh.write("dev") as w:
        w.insert("Person", {"name": "after"})
    reopened(graph).merge("dev")
    assert "after" in rows(graph, "node:Person")
    assert not broken_promises(graph.uri)


def test_tags_keep_their_commit_alive_until_they_go(graph: Graph) -> None:
    tagged = graph.history.commits()[3]
    graph.tags.create("release", tagged.commit_id)
    state = list(graph.export(at="release"))
    for _ in range(2):
        graph.maintenance.cleanup(keep=1, confirm=True)
        touch(graph, 60)
    fresh = reopened(graph)
    assert list(fresh.export(at="release")) == state
    fresh.branches.create("hotfix", "release")
    assert rows(fresh, "node:Person", "hotfix")
    fresh.branches.delete("hotfix", force=True)
    fresh.tags.delete("release")
    fresh.maintenance.cleanup(keep=1, confirm=True)
    with pytest.raises(OmnigraphError):
        list(reopened(graph).export(at=tagged.commit_id))


def test_a_tag_of_the_head_outlives_an_optimize(graph: Graph) -> None:
    """The head is kept as optimize left it; its tag must mean those files, not the older ones."""
    graph.maintenance.optimize()
    graph.maintenance.cleanup(keep=1, confirm=True)
    fresh = reopened(graph)
    fresh.tags.create("v1")
    touch(fresh, 70)
    fresh.maintenance.cleanup(keep=1, confirm=True)
    assert age_of_ana(reopened(graph), "v1") == 3


def test_optimize_and_cleanup_give_the_space_back(graph: Graph) -> None:
    graph.maintenance.optimize()
    graph.maintenance.cleanup(keep=1, confirm=True)
    path = Path(graph.uri) / graph.snapshot().pin("node:Person").ref.path
    assert len(list((path / "data").glob("*.lance"))) == 1
    assert age_of_ana(reopened(graph)) == 3
    assert not broken_promises(graph.uri)


def test_staged_files_of_a_live_writer_survive_and_those_of_dead_ones_do_not(
    graph: Graph,
) -> None:
    """No intent says whose they are: their age alone decides."""
    path = Path(graph.uri) / graph.snapshot().pin("node:City").ref.path
    table = repository_of(graph).tables.open(graph.snapshot().pin("node:City").ref)
    before = set(files_below(path))
    write_rows(table, table.scan())
    (staged,) = set(files_below(path)) - before
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert (path / staged).exists()
    grow_old(graph)
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert not (path / staged).exists()
    assert rows(graph, "node:City").keys() == {"Oslo"}


def test_files_of_a_step_that_was_undone_stay_for_whoever_tries_it_again(graph: Graph) -> None:
    """Found by six processes: an index was committed, undone, cleaned up, and committed again."""
    tables = repository_of(graph).tables
    table = tables.open(graph.snapshot().pin("node:City").ref)
    built = list(build_indexes(table, [IndexSpec("name", "BTREE")]))
    staged = stage_built(table, built, {})
    assert staged is not None
    moved = tables.commit(staged)
    assert graph.maintenance.repair(confirm=True)  # takes the index over ...
    graph.maintenance.drop_indexes("node:City")
    pin = graph.snapshot().pin("node:City")
    again = stage_built(tables.open(pin.ref), built, {})
    assert again is not None
    undone = tables.commit(again)
    transaction_of(graph).recovery.undo_drift(  # ... and this one is undone
        repository_of(graph).branch("main"), pin, find_drift(tables, pin.ref)
    )
    touch(graph, 95)
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert not tables.has_version(moved.ref)
    assert tables.has_version(undone.ref)
    name = f"_indices/{built[0].index.uuid}"
    assert (Path(graph.uri) / pin.ref.path / name).exists()
    grow_old(graph)
    touch(graph, 96)
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert not tables.has_version(undone.ref)
    assert not files_below(Path(graph.uri) / pin.ref.path / name)


def test_a_live_intent_protects_everything_younger_than_itself(graph: Graph) -> None:
    """A bulk load may take longer than a week."""
    path = Path(graph.uri) / graph.snapshot().pin("node:City").ref.path
    table = repository_of(graph).tables.open(graph.snapshot().pin("node:City").ref)
    before = set(files_below(path))
    write_rows(table, table.scan())
    (staged,) = set(files_below(path)) - before
    grow_old(graph, 20)
    started = _ulid_days_ago(30)
    intent = Path(graph.uri) / "_staging" / started / "intent.json"
    intent.parent.mkdir(parents=True)
    intent.write_text(json.dumps({"owner": asdict(this_process())}))
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert (path / staged).exists()
    assert intent.exists()
    dead = {**asdict(this_process()), "started": "long ago"}
    intent.write_text(json.dumps({"owner": dead}))
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert not (path / staged).exists()
    assert not intent.exists()


def _ulid_days_ago(days: int) -> str:
    from omnigraph.model.ids import encode_ulid

    return encode_ulid(int((time.time() - days * DAY) * 1_000) << 80)


def test_forks_and_refs_that_nobody_registered_go_when_they_are_old(graph: Graph) -> None:
    pin = graph.snapshot().pin("node:Person")
    repository_of(graph).tables.fork(pin.ref, fork := new_ulid())
    state = repository_of(graph).main.current()
    repository_of(graph).tables.fork(state.ref, unregistered := new_ulid())
    places = [
        Path(graph.uri) / pin.ref.path / "tree" / fork,
        Path(graph.uri) / MANIFEST_PATH / "tree" / unregistered,
    ]
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert all(place.exists() for place in places)
    grow_old(graph)
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert [files_below(place) for place in places] == [{}, {}]
    assert not (Path(graph.uri) / pin.ref.path / "_refs" / "branches" / f"{fork}.json").exists()
    assert not broken_promises(graph.uri)


def test_foreign_files_are_counted_and_left_alone(graph: Graph) -> None:
    root = Path(graph.uri)
    table = root / graph.snapshot().pin("node:City").ref.path
    strangers = [root / "notes.txt", table / "README", table / "data" / "mine.csv"]
    for stranger in strangers:
        stranger.write_text("not yours")
    grow_old(graph, 30)
    done = {one.type_key: one for one in graph.maintenance.cleanup(keep=1, confirm=True).datasets}
    assert all(stranger.exists() for stranger in strangers)
    assert done["node:City"].foreign_files == 2
    assert done["staging"].foreign_files >= 1


def test_X_41_a_table_that_was_changed_from_outside_is_left_alone(graph: Graph) -> None:
    import lance

    path = Path(graph.uri) / graph.snapshot().pin("node:Person").ref.path
    lance.dataset(str(path)).delete("id = 'bo'")
    before = files_below(path)
    done = {one.type_key: one for one in graph.maintenance.cleanup(keep=1, confirm=True).datasets}
    assert done["node:Person"].error == "drift_needs_repair"
    assert files_below(path) == before


def test_pending_writes_are_resolved_first(graph: Graph) -> None:
    die_writing(graph.uri, "publish.before_commit")
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert rows(graph, "node:City").keys() == {"Oslo", "Rome"}


def test_marks_of_abandoned_writes_go_when_they_are_old_and_explain_nothing(graph: Graph) -> None:
    """A mark that explains why a table moved stays until the next writer has undone that."""
    manifest, now = repository_of(graph).main, repository_of(graph).clock.now_us()
    tables, pin = repository_of(graph).tables, graph.snapshot().pin("node:City")
    late, table = new_ulid(), tables.open(pin.ref)
    tables.commit(stage_delete(table, table.scan(["id"])["id"], {OPERATION_PROPERTY: late}))
    ages = {"old": 8, "young": 1, late: 8}
    marks = [
        Row(f"abandoned:{name}", RowKind.ABANDONED, {"at_us": now - days * DAY * 1_000_000})
        for name, days in ages.items()
    ]
    manifest.publish(Publication(new_ulid(), "main", put=tuple(marks)))
    graph.maintenance.cleanup(keep=1, confirm=True)
    left = {row.object_id for row in manifest.current().rows(RowKind.ABANDONED)}
    assert left == {"abandoned:young", f"abandoned:{late}"}
    with graph.write() as w:  # undoes what the late one did
        w.insert("City", {"name": "Rome"})
    assert rows(graph, "node:City").keys() == {"Oslo", "Rome"}
    graph.maintenance.cleanup(keep=1, confirm=True)
    left = {row.object_id for row in manifest.current().rows(RowKind.ABANDONED)}
    assert left == {"abandoned:young"}


def test_old_manifest_versions_go_and_warm_handles_do_not_notice(graph: Graph) -> None:
    warm = reopened(graph)
    assert age_of_ana(warm) == 3
    grow_old(graph, 1)
    removed = by_key(graph.maintenance.cleanup(keep=1, confirm=True))[MANIFEST_PATH]
    assert removed > 0
    assert age_of_ana(warm) == 3
    touch(graph, 90)
    assert age_of_ana(warm) == 90
    touch(warm, 91)
    assert not broken_promises(graph.uri)


def test_a_branch_that_is_created_while_its_source_is_given_up_is_refused(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The creator registers and then looks at the horizon; cleanup does the reverse."""
    from omnigraph.catalog.branches import changes as branching

    old = graph.history.commits()[3].commit_id
    register = branching.register_branch

    def after_a_cleanup(*given: object) -> None:
        reopened(graph).maintenance.cleanup(keep=1, confirm=True)
        register(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(branching, "register_branch", after_a_cleanup)
    with pytest.raises(HistoryReclaimed):
        graph.branches.create("late", old)
    monkeypatch.undo()
    assert "late" not in reopened(graph).branches.list()
    assert not broken_promises(graph.uri)


def test_history_says_where_it_was_cut(graph: Graph) -> None:
    graph.maintenance.cleanup(keep=1, confirm=True)
    fresh = reopened(graph)
    assert len(fresh.history.commits()) == 7  # the log is not history's content: it stays
    with pytest.raises(HistoryReclaimed):
        fresh.reset(fresh.history.commits()[3].commit_id, "main")
