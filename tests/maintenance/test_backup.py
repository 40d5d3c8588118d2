"""Backups and clones: whole graphs with history, consistent, incremental, independent."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from tests.graphs import files_below, people_graph, rows
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BackupRefused, GraphMoved


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Branches of branches, a tag, indexes, a deletion, in a place with an odd name."""
    graph = people_graph(tmp_path / "my graph é")
    graph.maintenance.build_indexes()
    graph.tags.create("v1")
    graph.branches.create("dev")
    write(graph, "Rome", "dev")
    graph.branches.create("deeper", "dev")
    write(graph, "Kiel", "deeper")
    graph.maintenance.optimize("dev")
    with graph.write("deeper") as w:
        w.delete("Person", "bo")
    write(graph, "Bonn")
    return graph


def write(graph: Graph, city: str, branch: str = "main") -> None:
    with graph.write(branch) as w:
        w.insert("City", {"name": city})


def exports(graph: Graph, *states: str) -> list[bytes]:
    return [b"".join(graph.export(at=state)) for state in states]


def everything(graph: Graph) -> list[bytes]:
    """Every branch, and every commit of every branch, as bytes."""
    found = []
    for branch in sorted(graph.branches.list()):
        for commit in graph.history.commits(branch):
            found.append(b"".join(graph.export(at=commit.commit_id)))
    return found


def healthy(where: str) -> bool:
    return omnigraph.open(where).maintenance.check().findings == [] and not broken_promises(where)


def test_a_clone_has_every_branch_and_all_history_and_needs_nothing_of_the_original(
    graph: Graph, tmp_path: Path
) -> None:
    before = everything(graph)
    done = graph.maintenance.clone(tmp_path / "b" / "the clone")
    assert done.branches == 3
    shutil.rmtree(graph.uri)
    clone = omnigraph.open(tmp_path / "b" / "the clone")
    assert everything(clone) == before
    assert [tag.name for tag in clone.tags.list()] == ["v1"]
    assert healthy(clone.uri)
    write(clone, "Oulu", "deeper")
    clone.merge("deeper", "dev")
    clone.maintenance.optimize("dev")
    assert "Oulu" in rows(clone, "node:City", "dev")
    assert healthy(clone.uri)


def test_a_copy_by_hand_is_noticed_and_copied_further_once_it_is_relocated(
    graph: Graph, tmp_path: Path
) -> None:
    """Its branches refer to the original's files, which nobody who made it expects."""
    shutil.copytree(graph.uri, tmp_path / "by hand")
    by_hand = omnigraph.open(tmp_path / "by hand", read_only=True)
    damage = {(f.branch, f.damage) for f in by_hand.maintenance.check().findings}
    assert damage == {("dev", "reads_elsewhere"), ("deeper", "reads_elsewhere")}
    with pytest.raises(GraphMoved, match="was moved or copied"):
        by_hand.maintenance.clone(tmp_path / "further")
    before = everything(graph)
    shutil.rmtree(graph.uri)
    assert omnigraph.open(tmp_path / "by hand").maintenance.relocate() > 0
    by_hand.maintenance.clone(tmp_path / "further")
    assert everything(omnigraph.open(tmp_path / "further", read_only=True)) == before


def test_a_backup_copies_only_what_is_new(graph: Graph, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    first = graph.maintenance.backup(target)
    assert first.files_there == 0
    assert everything(omnigraph.open(target, read_only=True)) == everything(graph)
    again = graph.maintenance.backup(target)
    assert again.files == 0
    write(graph, "Turku")
    write(graph, "Espoo", "dev")
    second = graph.maintenance.backup(target)
    assert 0 < second.bytes < first.bytes / 4
    copy = omnigraph.open(target, read_only=True)
    assert everything(copy) == everything(graph)
    assert copy.maintenance.check().findings == []
    assert copy.history.commits()[0].commit_id == second.commit_id


def test_restoring_is_cloning_the_backup_to_where_the_graph_was(
    graph: Graph, tmp_path: Path
) -> None:
    before = everything(graph)
    cursor = graph.history.changes().cursor
    graph.maintenance.backup(tmp_path / "backup")
    shutil.rmtree(graph.uri)
    omnigraph.open(tmp_path / "backup", read_only=True).maintenance.clone(graph.uri)
    restored = omnigraph.open(graph.uri)
    assert everything(restored) == before
    write(restored, "Turku")
    assert len(restored.history.changes(cursor=cursor).blocks) == 1  # readers go on where they were
    restored.maintenance.backup(tmp_path / "backup")  # and so does the backup
    assert healthy(graph.uri)


def test_a_backup_that_was_written_to_or_is_something_else_is_refused(
    graph: Graph, tmp_path: Path
) -> None:
    graph.maintenance.backup(tmp_path / "backup")
    write(omnigraph.open(tmp_path / "backup"), "Elsewhere")
    write(graph, "Turku")
    with pytest.raises(BackupRefused, match="written to"):
        graph.maintenance.backup(tmp_path / "backup")
    other = people_graph(tmp_path / "other")
    other.maintenance.backup(tmp_path / "of another")
    with pytest.raises(BackupRefused, match="another graph"):
        graph.maintenance.backup(tmp_path / "of another")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    before = files_below(tmp_path / "full")
    for copy in (graph.maintenance.backup, graph.maintenance.clone):
        with pytest.raises(BackupRefused):
            copy(tmp_path / "full")
    with pytest.raises(BackupRefused, match="not empty"):
        graph.maintenance.clone(other.uri)
    assert files_below(tmp_path / "full") == before


def test_writers_go_on_and_a_backup_is_one_state_of_every_branch(
    tmp_path: Path,
) -> None:
    """Both types are written together: no copy may have one without the other."""
    graph = people_graph(tmp_path / "g")
    over = threading.Event()
    failures: list[Exception] = []

    def keep_writing() -> None:
        writer = omnigraph.open(graph.uri)
        number = 0
        while not over.is_set():
            number += 1
            try:
                with writer.write() as w:
                    w.insert("City", {"name": f"c{number}"})
                    w.insert("Person", {"name": f"p{number}"})
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        for _ in range(4):
            omnigraph.open(graph.uri, read_only=True).maintenance.backup(tmp_path / "backup")
            copy = omnigraph.open(tmp_path / "backup", read_only=True)
            assert copy.maintenance.check().findings == []
            people, cities = rows(copy, "node:Person"), rows(copy, "node:City")
            assert len(people) - 2 == len(cities) - 1
    finally:
        over.set()
        thread.join()
    assert failures == []


def test_a_cleaned_graph_is_backed_up_with_what_it_can_still_show(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    graph = omnigraph.open(graph.uri)
    graph.maintenance.backup(tmp_path / "backup")
    graph.maintenance.cleanup(keep=1, confirm=True)
    write(graph, "Turku")
    graph.maintenance.backup(tmp_path / "backup")
    fresh = omnigraph.open(tmp_path / "backup", read_only=True)
    states = ("main", "dev", "deeper", "v1")
    assert exports(fresh, *states) == exports(omnigraph.open(graph.uri), *states)
    assert fresh.maintenance.check().findings == []
    graph.maintenance.clone(tmp_path / "clone")
    assert exports(omnigraph.open(tmp_path / "clone"), *states) == exports(fresh, *states)
    assert healthy(str(tmp_path / "clone"))


@pytest.mark.s3
def test_between_a_disk_and_an_object_store(graph: Graph, tmp_path: Path, bucket: str) -> None:
    graph = omnigraph.open(graph.uri)  # with the settings of the bucket
    before = everything(graph)
    there = f"{bucket}/backups/g"
    graph.maintenance.backup(there)
    assert everything(omnigraph.open(there, read_only=True)) == before
    write(graph, "Turku")
    assert graph.maintenance.backup(there).files_there > 0
    omnigraph.open(there, read_only=True).maintenance.clone(tmp_path / "back")
    back = omnigraph.open(tmp_path / "back")
    assert everything(back) == everything(graph)
    assert healthy(back.uri)


def test_the_drill_for_a_lost_manifest(graph: Graph, tmp_path: Path) -> None:
    """Without a backup the newest rows of main are still in their tables (guides/upkeep.md)."""
    import lance

    schema = graph.schema().source
    before = exports(graph, "main")
    shutil.rmtree(Path(graph.uri) / "__manifest")
    tables: dict[str, list[dict[str, object]]] = {}
    for place in sorted(Path(graph.uri).glob("*s/????????????????")):
        dataset = lance.dataset(str(place))
        key = dataset.schema.metadata[b"omnigraph:type_key"].decode()
        found = dataset.to_table().to_pylist()
        if key.startswith("edge:"):
            found = [{"from": r.pop("src"), "to": r.pop("dst"), **r} for r in found]
        tables[key.partition(":")[2]] = found
    rebuilt = omnigraph.init(tmp_path / "rebuilt", schema)
    rebuilt.load(tables, mode="append")
    assert exports(rebuilt, "main") == before
