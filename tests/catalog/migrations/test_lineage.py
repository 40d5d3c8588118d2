"""Commits that older versions kept in datasets of their own move into the manifest (I-3)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pytest
from tests.catalog.migrations.old import (
    SIDE,
    cities,
    format_of,
    lineage,
    old_graph,
    people_with_a_side,
)
from tests.graphs import die_writing, files_below, repository
from tests.support.internals import repository_of
from tests.support.old_graphs import aged

import omnigraph
from omnigraph import Graph
from omnigraph.catalog import publisher
from omnigraph.catalog.format import stamp_of
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations import lineage as step_module
from omnigraph.catalog.migrations.legacy import ACTORS_PATH, COMMITS_PATH, UNRECORDED
from omnigraph.catalog.migrations.run_refs import PREFIX, SweepRunRefs
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.catalog.state import load_state
from omnigraph.errors import CorruptData, NotFound
from omnigraph.maintenance.fsck import Damage
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging.metadata import stage_schema_metadata


def stored_commits(where: Path, branch: str | None = None) -> Counter[str]:
    """How often each commit is a row of a manifest."""
    place = where / MANIFEST_PATH if branch is None else where / MANIFEST_PATH / "tree" / branch
    rows = lance.dataset(place).to_table(["object_id"], filter="object_type = 'graph_commit'")
    return Counter(rows["object_id"].to_pylist())


def test_I_3_of_two_backfills_that_meet_one_is_refused_and_nothing_is_there_twice(
    tmp_path: Path,
) -> None:
    told = old_graph(tmp_path / "g", 3)
    view = repository(omnigraph.open(tmp_path / "g", read_only=True))
    target = view.main.migrator.target
    stale = load_state(target.newest())
    rows = step_module.lineage_rows(target.lineage_of(stale), stale.only_schema)
    staged = step_module._stage(stale.table, rows, {})
    omnigraph.open(tmp_path / "g")
    with pytest.raises(CommitRefused):
        view.tables.commit_rebasing(staged)
    assert set(stored_commits(tmp_path / "g").values()) == {1}
    step_module.MoveLineage().apply(target, {})  # looks again, and has nothing to do
    assert len(stored_commits(tmp_path / "g")) == len(told["main"])


def test_I_3_a_stamp_that_another_process_wrote_is_a_success_and_never_goes_back(
    tmp_path: Path,
) -> None:
    old_graph(tmp_path / "g", 3)
    view = repository(omnigraph.open(tmp_path / "g", read_only=True))
    migrator = view.main.migrator
    staged = stage_schema_metadata(migrator.target.newest(), stamp_of(4, view.graph_id), {})
    omnigraph.open(tmp_path / "g")
    with pytest.raises(CommitRefused):
        view.tables.commit_rebasing(staged)
    before = files_below(tmp_path)
    migrator._stamp(4, {})
    migrator._stamp(2, {})
    assert files_below(tmp_path) == before


def test_I_3_a_crash_between_the_work_and_the_stamp_is_finished_without_doing_it_again(
    tmp_path: Path,
) -> None:
    told = old_graph(tmp_path / "g", 3)
    view = repository(omnigraph.open(tmp_path / "g", read_only=True))
    step_module.MoveLineage().apply(view.main.migrator.target, {})
    half = omnigraph.open(tmp_path / "g", read_only=True)
    assert format_of(half) == 3
    assert lineage(half.history.commits()) == lineage(told["main"])
    graph = omnigraph.open(tmp_path / "g")
    assert format_of(graph) == INTERNAL_VERSION
    assert lineage(graph.history.commits()) == lineage(told["main"])
    assert set(stored_commits(tmp_path / "g").values()) == {1}


def test_moved_commits_keep_their_versions_when_the_manifest_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = old_graph(tmp_path / "g", 3)
    graph = omnigraph.open(tmp_path / "g")
    monkeypatch.setattr(publisher, "SMALL_FRAGMENTS_MAX", 1)
    for name in ("Lima", "Quito"):
        with graph.write() as w:
            w.insert("City", {"name": name})
    again = omnigraph.open(tmp_path / "g", read_only=True)
    assert lineage(again.history.commits())[:-2] == lineage(told["main"])
    assert cities(again, at=told["main"][1].commit_id) == {"Oslo"}
    assert again.maintenance.check().healthy


def test_the_changes_of_every_commit_stay_the_same(tmp_path: Path) -> None:
    graph = people_with_a_side(tmp_path / "g", 3)
    commits = [c.commit_id for c in graph.history.commits(branch=SIDE)][
        :-1
    ]  # the first one has none
    before = {c: graph.history.commit_changes(c).to_json() for c in commits}
    assert all(one["changes"] for one in before.values())
    aged(graph.uri, 3)
    reader = omnigraph.open(graph.uri, read_only=True)
    assert {c: reader.history.commit_changes(c).to_json() for c in commits} == before
    upgraded = omnigraph.open(graph.uri)
    upgraded.maintenance.upgrade(apply=True)
    assert {c: upgraded.history.commit_changes(c).to_json() for c in commits} == before
    assert [b.commit.actor for b in upgraded.history.blame("City", "Rome", SIDE)] == ["sam"]


def test_I_3_every_branch_gets_its_own_commits_and_no_other(tmp_path: Path) -> None:
    told = old_graph(tmp_path / "g", 3)
    graph = omnigraph.open(tmp_path / "g")
    graph.maintenance.upgrade(apply=True)
    ref = repository_of(graph).branch(SIDE).ref
    assert len(stored_commits(tmp_path / "g")) == len(told["main"]) == 3
    assert len(stored_commits(tmp_path / "g", ref)) == len(told[SIDE]) == 4
    assert graph.history.commits(branch=SIDE)[0].actor == "sam"


@pytest.mark.parametrize("read_only", [True, False])
def test_I_3_no_dataset_of_commits_means_no_commits(tmp_path: Path, read_only: bool) -> None:
    old_graph(tmp_path / "g", 3, legacy=False)
    graph = omnigraph.open(tmp_path / "g", read_only=read_only)
    (only,) = graph.history.commits()
    assert (only.message, only.parent) == (UNRECORDED, None)
    assert cities(graph, at=only.commit_id) == {"Oslo"}
    (other,) = graph.history.commits(branch=SIDE)
    assert other.commit_id != only.commit_id  # they are different states
    again = omnigraph.open(tmp_path / "g", read_only=True)
    assert [c.commit_id for c in again.history.commits()] == [only.commit_id]
    if not read_only:
        with graph.write(SIDE) as w:
            w.insert("City", {"name": "Lima"})
        assert [c.parent for c in graph.history.commits(branch=SIDE)] == [other.commit_id, None]
        with pytest.raises(NotFound, match="in common"):
            graph.merge(SIDE)
        assert {f.damage for f in graph.maintenance.check().findings} == {Damage.TAG_DANGLING}


def no_versions(dataset: Path) -> None:
    shutil.rmtree(dataset / "_versions")


def garbage(dataset: Path) -> None:
    for version in (dataset / "_versions").glob("*.manifest"):
        version.write_bytes(b"garbage")


def no_data(dataset: Path) -> None:
    shutil.rmtree(dataset / "data")


@pytest.mark.parametrize("path", [COMMITS_PATH, ACTORS_PATH])
@pytest.mark.parametrize("damage", [no_versions, garbage, no_data])
def test_I_3_a_dataset_of_commits_that_cannot_be_read_stops_the_migration(
    tmp_path: Path, path: str, damage: Callable[[Path], None]
) -> None:
    told = old_graph(tmp_path / "g", 3)
    shutil.copytree(tmp_path / "g" / path, tmp_path / "aside")
    damage(tmp_path / "g" / path)
    before = files_below(tmp_path)
    with pytest.raises(CorruptData, match=path):
        omnigraph.open(tmp_path / "g")
    assert files_below(tmp_path) == before
    shutil.rmtree(tmp_path / "g" / path)
    (tmp_path / "aside").rename(tmp_path / "g" / path)
    assert lineage(omnigraph.open(tmp_path / "g").history.commits()) == lineage(told["main"])


def test_I_3_a_branch_whose_commits_are_missing_is_not_taken_for_one_without_any(
    tmp_path: Path,
) -> None:
    old_graph(tmp_path / "g", 3)
    shutil.rmtree(tmp_path / "g" / COMMITS_PATH / "tree")
    graph = omnigraph.open(tmp_path / "g")
    assert format_of(graph) == INTERNAL_VERSION  # main has all of its own
    with pytest.raises(CorruptData, match="cannot be read"), graph.write(SIDE) as w:
        w.insert("City", {"name": "Lima"})
    with graph.write() as w:
        w.insert("City", {"name": "Lima"})
    assert cities(graph) == {"Oslo", "Lima"}


@pytest.mark.parametrize(
    ("version", "failpoint", "action", "expected"),
    [
        (3, "record.after_put", "rolled_back", {"Oslo"}),
        (1, "table.after_commit", "rolled_forward", {"Oslo", "Rome"}),
    ],
)
def test_I_3_a_pending_write_of_an_old_program_is_resolved_after_the_steps(
    tmp_path: Path, version: int, failpoint: str, action: str, expected: set[str]
) -> None:
    people_with_a_side(tmp_path / "g", version)
    die_writing(str(tmp_path / "g"), failpoint)
    told = aged(str(tmp_path / "g"), version)
    reader = omnigraph.open(tmp_path / "g", read_only=True)
    assert (cities(reader), len(reader.maintenance.pending_writes())) == ({"Oslo"}, 1)
    graph = omnigraph.open(tmp_path / "g")
    assert [r["action"] for r in graph.maintenance.recoveries()] == [action]
    assert cities(graph) == expected
    assert lineage(graph.history.commits())[:3] == lineage(told["main"])
    assert graph.maintenance.check().healthy


def test_I_3_stale_refs_are_swept_also_where_they_are_half_gone(tmp_path: Path) -> None:
    old_graph(tmp_path / "g", 2)
    manifest = tmp_path / "g" / MANIFEST_PATH
    (manifest / "_refs" / "branches" / f"{PREFIX}01.json").unlink()  # only the files are left
    shutil.rmtree(manifest / "tree" / f"{PREFIX}02")  # only the ref is left
    target = repository(omnigraph.open(tmp_path / "g", read_only=True)).main.migrator.target
    stale = [f"the ref {PREFIX}01", f"the ref {PREFIX}02"]
    assert SweepRunRefs().preview(target) == stale
    graph = omnigraph.open(tmp_path / "g")
    assert SweepRunRefs().preview(target) == []
    assert graph.branches.list() == ["main", SIDE]


def test_I_3_afterwards_the_prefix_is_an_ordinary_name(tmp_path: Path) -> None:
    old_graph(tmp_path / "g", 1)
    graph = omnigraph.open(tmp_path / "g")
    graph.branches.create(f"{PREFIX}01")
    with graph.write(f"{PREFIX}01") as w:
        w.insert("City", {"name": "Lima"})
    again = omnigraph.open(tmp_path / "g")
    again.maintenance.upgrade(apply=True)
    assert cities(again, f"{PREFIX}01") == {"Oslo", "Lima"}


@pytest.mark.parametrize("source", ["main", SIDE])
def test_a_branch_can_be_forked_from_a_commit_of_an_older_version(
    tmp_path: Path, source: str
) -> None:
    told = old_graph(tmp_path / "g", 1, restated=True)
    graph = omnigraph.open(tmp_path / "g")
    with graph.write() as w:
        w.insert("City", {"name": "Lima"})
    graph.branches.create("past", told[source][-1].commit_id)
    assert format_of(graph, "past") == INTERNAL_VERSION
    assert lineage(graph.history.commits(branch="past")) == lineage(told[source])
    graph.branches.create("further", "past")
    assert cities(graph, "further") == ({"Oslo"} if source == "main" else {"Oslo", "Rome"})
    assert graph.maintenance.check().healthy


def test_I_3_cleanup_reclaims_what_no_branch_reads_any_more(tmp_path: Path) -> None:
    old_graph(tmp_path / "g", 3)
    graph = omnigraph.open(tmp_path / "g")
    (tmp_path / "g" / "_graph_runs.lance").mkdir()
    (tmp_path / "g" / "_graph_runs.lance" / "x").write_text("inert")
    inert = {"_graph_runs.lance", COMMITS_PATH, ACTORS_PATH}
    assert _reclaimed(graph) == {"_graph_runs.lance"}  # a branch still reads the others
    graph.maintenance.upgrade(apply=True)
    assert _reclaimed(graph) == _reclaimed(graph, confirm=True) == inert
    assert not any(path.split("/")[0] in inert for path in files_below(tmp_path / "g"))
    assert graph.maintenance.check().healthy
    assert len(omnigraph.open(tmp_path / "g").history.commits(branch=SIDE)) == 4


def _reclaimed(graph: Graph, *, confirm: bool = False) -> set[str]:
    report = graph.maintenance.cleanup(older_than=timedelta(days=1), confirm=confirm)
    return {one.type_key for one in report.datasets if one.type_key.startswith("_graph")}


@pytest.mark.parametrize("version", [1, 3])
def test_a_backup_of_an_old_graph_is_whole_and_follows_the_upgrade(
    tmp_path: Path, version: int
) -> None:
    told = old_graph(tmp_path / "g", version)
    omnigraph.open(tmp_path / "g", read_only=True).maintenance.backup(tmp_path / "backup")
    backup = omnigraph.open(tmp_path / "backup", read_only=True)
    assert (format_of(backup), backup.maintenance.check().healthy) == (version, True)
    graph = omnigraph.open(tmp_path / "g")
    graph.maintenance.upgrade(apply=True)
    graph.maintenance.backup(tmp_path / "backup")
    shutil.rmtree(tmp_path / "g")
    copy = omnigraph.open(tmp_path / "backup")
    for branch in ("main", SIDE):
        assert lineage(copy.history.commits(branch=branch)) == lineage(told[branch])
    assert copy.maintenance.check().healthy


def test_an_old_backup_is_a_graph_that_can_be_upgraded(tmp_path: Path) -> None:
    told = old_graph(tmp_path / "g", 2)
    omnigraph.open(tmp_path / "g", read_only=True).maintenance.clone(tmp_path / "copy")
    shutil.rmtree(tmp_path / "g")
    copy = omnigraph.open(tmp_path / "copy")
    copy.maintenance.upgrade(apply=True)
    for branch in ("main", SIDE):
        assert lineage(copy.history.commits(branch=branch)) == lineage(told[branch])
    assert copy.maintenance.check().healthy
