"""Graph directories that were moved or copied with their branches: they open, and read themselves.

The branches of a copy never read the original's files: every test takes the original away, or
changes it, before it looks at the copy.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.graphs import files_below, people_graph, rows
from tests.support.promises import Expected, broken_promises
from tests.support.stores import open_objects

import omnigraph
from omnigraph import Graph
from omnigraph.cli.main import run
from omnigraph.errors import GraphMoved
from omnigraph.storage import failpoints
from omnigraph.storage.lance.files.relocation import relocate
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.recovery.audit import Action

QUERY = "query q() { match { $c: City } return { $c.name } order { $c.name } }"


def write(graph: Graph, city: str, branch: str = "main") -> None:
    with graph.write(branch) as w:
        w.insert("City", {"name": city})


def branched(where: Path | str) -> Graph:
    """Branches of branches with indexes, deletions, compaction, and older versions of each."""
    graph = people_graph(where)
    graph.maintenance.build_indexes()
    graph.branches.create("dev")
    write(graph, "Rome", "dev")
    graph.branches.create("deeper", "dev")
    write(graph, "Kiel", "deeper")
    graph.maintenance.optimize("dev")
    with graph.write("deeper") as w:
        w.delete("Person", "bo")
    write(graph, "Pisa", "dev")
    write(graph, "Bonn")
    graph.tags.create("v1", "deeper")
    return graph


def everything(graph: Graph) -> dict[tuple[str, str], bytes]:
    """Every commit of every branch as it is exported."""
    return {
        (branch, commit.commit_id): b"".join(graph.export(at=commit.commit_id))
        for branch in graph.branches.list()
        for commit in graph.history.commits(branch)
    }


def cities(graph: Graph, branch: str) -> list[str]:
    return [row["c.name"] for row in graph.query(QUERY, branch=branch).rows()]


def assert_works(graph: Graph) -> None:
    """Reading, writing, merging, compaction and the check of a graph at its place."""
    write(graph, "Oulu", "deeper")
    assert "Oulu" in cities(graph, "deeper")
    graph.merge("deeper", "dev")
    graph.maintenance.optimize("dev")
    graph.branches.create("fresh", "dev")
    write(graph, "Turku", "fresh")
    assert "Turku" in rows(graph, "node:City", "fresh")
    assert omnigraph.open(graph.uri, read_only=True).maintenance.check().findings == []
    assert broken_promises(graph.uri) == []


def moved(graph: Graph, target: Path) -> None:
    shutil.move(graph.uri, target)


def copied_and_original_removed(graph: Graph, target: Path) -> None:
    shutil.copytree(graph.uri, target)
    shutil.rmtree(graph.uri)


def copied_and_original_emptied(graph: Graph, target: Path) -> None:
    """The original's directory is there, with files of the same names that hold nothing."""
    shutil.copytree(graph.uri, target)
    for path in Path(graph.uri).rglob("*"):
        if path.is_file():
            path.write_bytes(b"")


@pytest.mark.parametrize("how", [moved, copied_and_original_removed, copied_and_original_emptied])
def test_a_moved_or_copied_graph_opens_and_works(
    tmp_path: Path, how: Callable[[Graph, Path], None]
) -> None:
    graph = branched(tmp_path / "people")
    before = everything(graph)
    target = tmp_path / "else where" / "people é"
    target.parent.mkdir()
    how(graph, target)
    there = omnigraph.open(target)
    assert everything(there) == before
    assert_works(there)


def test_a_copy_goes_its_own_way_while_the_original_stays(tmp_path: Path) -> None:
    original = branched(tmp_path / "people")
    shutil.copytree(original.uri, tmp_path / "copy")
    files = files_below(Path(original.uri))
    copy = omnigraph.open(tmp_path / "copy")
    write(copy, "Ulm", "dev")
    assert files_below(Path(original.uri)) == files
    write(original, "Nice", "dev")
    assert "Ulm" in cities(copy, "dev")
    assert "Nice" not in cities(copy, "dev")
    assert "Ulm" not in cities(original, "dev")
    assert_works(copy)
    assert_works(original)


def test_a_copy_that_takes_the_place_of_its_original_is_read_anew(tmp_path: Path) -> None:
    """Both have the same id, numbers of versions and rows: caches must tell them apart."""
    original = branched(tmp_path / "people")
    shutil.copytree(original.uri, tmp_path / "copy")
    write(omnigraph.open(tmp_path / "copy"), "Ulm", "dev")
    write(original, "Nice", "dev")
    assert "Nice" in cities(original, "dev")
    shutil.move(original.uri, tmp_path / "aside")
    shutil.move(tmp_path / "copy", original.uri)
    assert "Ulm" in cities(omnigraph.open(original.uri), "dev")
    assert "Nice" in cities(omnigraph.open(tmp_path / "aside"), "dev")


def test_a_graph_that_is_moved_back_works_again(tmp_path: Path) -> None:
    graph = branched(tmp_path / "people")
    before = everything(graph)
    for away, back in ((True, True), (False, True)):
        shutil.move(tmp_path / "people", tmp_path / "away")
        if away:
            assert everything(omnigraph.open(tmp_path / "away")) == before
        shutil.move(tmp_path / "away", tmp_path / "people")
        assert everything(omnigraph.open(tmp_path / "people", read_only=not back)) == before
    assert_works(omnigraph.open(tmp_path / "people"))


def test_reading_a_moved_graph_reads_main_and_refuses_branches_with_the_command_that_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = branched(tmp_path / "people")
    before, main_cities = everything(graph), cities(graph, "main")
    shutil.copytree(graph.uri, tmp_path / "the copy")
    shutil.rmtree(graph.uri)
    files = files_below(tmp_path / "the copy")
    reader = omnigraph.open(tmp_path / "the copy", read_only=True)
    assert cities(reader, "main") == main_cities
    with pytest.raises(GraphMoved) as refused:
        cities(reader, "dev")
    with pytest.raises(GraphMoved):
        reader.maintenance.clone(tmp_path / "further")
    assert {str(found.damage) for found in reader.maintenance.check().findings} == {
        "reads_elsewhere"
    }
    assert files_below(tmp_path / "the copy") == files
    command = refused.value.remedy.split("`")[1]
    assert run(shlex.split(command)[1:]) == 0
    assert "refer to this location now" in capsys.readouterr().out
    assert everything(omnigraph.open(tmp_path / "the copy", read_only=True)) == before
    assert run(shlex.split(command)[1:]) == 0
    assert "nothing to recover" in capsys.readouterr().out
    assert everything(reader) == before


def test_a_graph_behind_a_symbolic_link_is_not_a_moved_one(tmp_path: Path) -> None:
    graph = branched(tmp_path / "people")
    before = everything(graph)
    (tmp_path / "link").symlink_to(graph.uri)
    linked = omnigraph.open(tmp_path / "link", read_only=True)
    assert everything(linked) == before
    assert linked.maintenance.check().findings == []
    write(omnigraph.open(tmp_path / "link"), "Ulm", "dev")
    omnigraph.open(tmp_path / "link").branches.create("by-link", "dev")
    write(omnigraph.open(tmp_path / "link"), "Nice", "by-link")
    direct = omnigraph.open(graph.uri, read_only=True)
    assert "Nice" in cities(direct, "by-link")
    linked.maintenance.clone(tmp_path / "clone")
    (tmp_path / "link").unlink()
    with pytest.raises(GraphMoved):
        cities(omnigraph.open(graph.uri, read_only=True), "by-link")
    assert "Nice" in cities(omnigraph.open(graph.uri), "by-link")
    assert omnigraph.open(graph.uri, read_only=True).maintenance.check().findings == []
    assert "Nice" in cities(omnigraph.open(tmp_path / "clone", read_only=True), "by-link")
    assert omnigraph.open(tmp_path / "clone", read_only=True).maintenance.check().findings == []


def test_a_link_that_points_to_another_copy_does_not_lead_a_branch_there(tmp_path: Path) -> None:
    first = branched(tmp_path / "first")
    (tmp_path / "link").symlink_to(first.uri)
    linked = omnigraph.open(tmp_path / "link")
    linked.branches.create("by-link", "dev")
    write(linked, "Nice", "by-link")
    shutil.copytree(first.uri, tmp_path / "second")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "second")
    for path in (tmp_path / "second").rglob("*.lance"):
        if path.is_file():
            path.write_bytes(b"")
    assert "Nice" in cities(omnigraph.open(first.uri), "by-link")


def test_relative_and_absolute_paths_are_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = everything(branched("people"))
    assert everything(omnigraph.open(tmp_path / "people", read_only=True)) == before
    assert everything(omnigraph.open("../" + tmp_path.name + "/people", read_only=True)) == before


def test_a_backup_that_was_moved_can_be_restored_and_continued(tmp_path: Path) -> None:
    graph = branched(tmp_path / "people")
    graph.maintenance.backup(tmp_path / "backup")
    shutil.move(tmp_path / "backup", tmp_path / "archive")
    assert omnigraph.open(tmp_path / "archive").maintenance.relocate() > 0
    write(graph, "Ulm", "dev")
    graph.maintenance.backup(tmp_path / "archive")
    before = everything(graph)
    shutil.rmtree(graph.uri)
    archive = omnigraph.open(tmp_path / "archive", read_only=True)
    assert everything(archive) == before
    archive.maintenance.clone(graph.uri)
    assert_works(omnigraph.open(graph.uri))


def test_an_unfinished_write_on_a_branch_is_resolved_at_the_new_place(tmp_path: Path) -> None:
    graph = branched(tmp_path / "people")
    text = (
        "import omnigraph, sys\n"
        "with omnigraph.open(sys.argv[1]).write('dev') as w: w.insert('City', {'name': 'Ulm'})"
    )
    environment = {**os.environ, failpoints.ENVIRONMENT: "table.after_commit=kill"}
    killed = subprocess.run([sys.executable, "-c", text, graph.uri], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    shutil.move(graph.uri, tmp_path / "moved")
    there = omnigraph.open(tmp_path / "moved")
    (resolved,) = there.maintenance.recovered_at_open.resolved
    assert (resolved.branch, resolved.action) == ("dev", Action.ROLLED_FORWARD)
    assert "Ulm" in cities(there, "dev")
    expected = Expected(recovered=frozenset({resolved.operation_id}))
    assert broken_promises(there.uri, expected) == []


@pytest.mark.parametrize(
    "point", ["relocate.before_versions", "relocate.after_version@3", "relocate.after_versions"]
)
def test_a_relocation_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, point: str
) -> None:
    graph = branched(tmp_path / "people")
    before = everything(graph)
    shutil.move(graph.uri, tmp_path / "moved")
    text = "import omnigraph, sys\nomnigraph.open(sys.argv[1]).commits('dev')"
    environment = {**os.environ, failpoints.ENVIRONMENT: f"{point}=kill"}
    command = [sys.executable, "-c", text, str(tmp_path / "moved")]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert everything(omnigraph.open(tmp_path / "moved")) == before
    assert_works(omnigraph.open(tmp_path / "moved"))


def test_threads_and_processes_may_open_a_moved_graph_at_once(tmp_path: Path) -> None:
    graph = branched(tmp_path / "people")
    shutil.move(graph.uri, tmp_path / "moved")
    text = (
        "import omnigraph, sys\n"
        "graph = omnigraph.open(sys.argv[1])\n"
        "with graph.write('dev') as w: w.insert('City', {'name': sys.argv[2]})"
    )
    names = ["Ulm", "Nice", "Metz"]
    children = [
        subprocess.Popen([sys.executable, "-c", text, str(tmp_path / "moved"), name])
        for name in names
    ]
    there = omnigraph.open(tmp_path / "moved")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda branch: cities(there, branch), ["dev", "deeper"] * 4))
    assert all("Rome" in names for names in found)
    assert [child.wait(120) for child in children] == [0, 0, 0]
    assert set(names) <= set(cities(there, "dev"))
    assert_works(omnigraph.open(tmp_path / "moved"))


def test_a_version_that_another_process_relocates_or_deletes_meanwhile_is_left_alone(
    tmp_path: Path,
) -> None:
    graph = branched(tmp_path / "people")
    shutil.move(graph.uri, tmp_path / "moved")
    objects = open_objects(parse_location(tmp_path / "moved"))
    versions = [info.path for info in objects.list() if "/tree/" in info.path]
    versions = [path for path in versions if path.endswith(".manifest")]

    class Racing:
        """The store, with somebody who acts between a read and the replace that follows."""

        def __getattr__(self, name: str) -> object:
            return getattr(objects, name)

        def get_tagged(self, path: str) -> tuple[bytes, str]:
            read = objects.get_tagged(path)
            if path == versions[0]:
                objects.delete(path)
            elif path == versions[1]:
                relocate(objects)
            return read

    relocate(Racing())  # type: ignore[arg-type]
    assert not objects.exists(versions[0])
    assert relocate(objects) == 0


def test_an_unmoved_graph_is_not_asked_for_anything_more(tmp_path: Path) -> None:
    graph = omnigraph.open(branched(tmp_path / "people").uri)
    for name in ("relocate.before_versions", "relocate.after_versions"):
        failpoints.arm(name, "count")
    try:
        assert_works(graph)
        assert failpoints.reached("relocate.before_versions") == 0
    finally:
        failpoints.disarm_all()


@pytest.mark.s3
def test_a_prefix_of_a_bucket_can_be_copied(bucket: str) -> None:
    graph = branched(f"{bucket}/people")
    before = everything(graph)
    source, target = (open_objects(parse_location(f"{bucket}/{p}")) for p in ("people", "copy"))
    for info in source.list():
        target.put(info.path, source.get(info.path))
    source.delete_prefix("")
    with pytest.raises(GraphMoved, match="was moved or copied"):
        cities(omnigraph.open(f"{bucket}/copy", read_only=True), "dev")
    assert everything(omnigraph.open(f"{bucket}/copy")) == before
    assert_works(omnigraph.open(f"{bucket}/copy"))
