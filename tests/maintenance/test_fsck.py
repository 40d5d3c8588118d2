"""The check of a graph: each planted kind of damage is found, and healthy graphs have none."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.support.internals import repository_of, transaction_of

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import MANIFEST_PATH, Commit, Head, Row
from omnigraph.maintenance.fsck import Damage
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging import indexes as indexing
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

SCHEMA = """
node Person { name: String @key  email: String? @unique  photo: Blob? }
node City { name: String @key }
edge LivesIn: Person -> City { since: I32? @index }
"""
LARGE = base64.b64encode(bytes(200_000)).decode()  # a blob of this size gets a file of its own


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that has been lived in: branches, tags, indexes, deletions, a cleaned history."""
    where = tmp_path_factory.mktemp("fsck") / "g"
    graph = omnigraph.init(where, SCHEMA)
    people = [{"name": f"p{n}", "email": f"p{n}@x"} for n in range(6)]
    people[0]["photo"] = f"base64:{LARGE}"
    graph.load({"Person": people, "City": [{"name": "Oslo"}, {"name": "Rome"}]}, mode="append")
    edges = [{"from": f"p{n}", "to": "Oslo", "since": 2000 + n} for n in range(4)]
    graph.load({"LivesIn": edges}, mode="append")
    graph.load({"City": [{"name": "Bonn"}]}, mode="append")
    graph.load({"City": [{"name": "Kiel"}]}, mode="append")
    graph.mutate('query q() { delete Person where name = "p5" }')
    graph.branches.create("done")
    for city in ("Bern", "Graz"):
        graph.load({"City": [{"name": city}]}, mode="append", branch="done")
    graph.merge("done", delete_branch=True)
    graph.tags.create("v1")
    graph.maintenance.build_indexes()
    graph.branches.create("dev")
    graph.load({"Person": [{"name": "dev-only"}]}, mode="append", branch="dev")
    return where


@pytest.fixture
def graph(healthy: Path, tmp_path: Path) -> Graph:
    """A copy to damage."""
    omnigraph.open(healthy, read_only=True).maintenance.clone(tmp_path / "g")
    return omnigraph.open(tmp_path / "g")


def found(graph: Graph) -> set[Damage]:
    report = omnigraph.open(graph.uri, read_only=True).maintenance.check()
    return {finding.damage for finding in report.findings}


def test_a_healthy_graph_has_no_damage(healthy: Path) -> None:
    graph = omnigraph.open(healthy, read_only=True)
    report = graph.maintenance.check()
    assert report.findings == []
    assert (report.branches, report.tables) == (2, 4)
    assert graph.maintenance.check(quick=True).healthy


@pytest.mark.parametrize("step", ["optimize", "cleanup", "merge", "overwrite"])
def test_what_the_graph_does_to_itself_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load({"City": [{"name": "Oslo"}], "Person": [{"name": "a"}]}, mode="append")
    graph.branches.create("dev")
    graph.load({"City": [{"name": "Rome"}]}, mode="append", branch="dev")
    graph.load({"Person": [{"name": "b"}]}, mode="append")
    if step == "optimize":
        graph.maintenance.optimize()
        graph.maintenance.optimize("dev")
    elif step == "cleanup":
        graph.maintenance.cleanup(keep=1, confirm=True)
    elif step == "merge":
        graph.merge("dev")
    else:
        graph.load({"City": [{"name": "Kiel"}]}, mode="overwrite")
    assert omnigraph.open(graph.uri, read_only=True).maintenance.check().findings == []


# -- planting --------------------------------------------------------------------------------------

Plant = Callable[[Graph], None]
PLANTS: list[tuple[Damage, Plant]] = []


def plants(damage: Damage) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        PLANTS.append((damage, plant))
        return plant

    return register


def table(graph: Graph, key: str) -> PinnedTable:
    return repository_of(graph).tables.open(graph.snapshot().pin(key).ref)


def place(graph: Graph, key: str) -> Path:
    return Path(graph.uri) / graph.snapshot().pin(key).ref.path


def data_files(graph: Graph, key: str) -> list[Path]:
    fragments = table(graph, key).fragments.values()
    return [place(graph, key) / "data" / file.path for f in fragments for file in f.files]


def version_file(graph: Graph, key: str) -> Path:
    version = graph.snapshot().pin(key).ref.version
    return place(graph, key) / "_versions" / f"{2**64 - 1 - version:020d}.manifest"


def index_files(graph: Graph, key: str) -> list[Path]:
    index = table(graph, key).dataset.describe_indices()[0]
    return sorted((place(graph, key) / "_indices" / index.segments[0].uuid).iterdir())


def deletion_file(graph: Graph, key: str) -> Path:
    (path,) = (place(graph, key) / "_deletions").iterdir()
    return path


def cut(path: Path, share: float = 0.5) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def put(graph: Graph, *rows: Row, drop: tuple[str, ...] = ()) -> None:
    """Make rows of the manifest true that no writer would write."""
    manifest = repository_of(graph).main
    manifest.publish(Publication(new_ulid(), "main", put=rows, drop=drop))


def write(graph: Graph, key: str, stage: Callable[[PinnedTable], StagedWrite]) -> None:
    """Commit something that no check has seen."""
    pin = graph.snapshot().pin(key)
    staged = stage(repository_of(graph).tables.open(pin.ref))
    prepared = PreparedTable(pin, staged)
    write = PreparedWrite(new_ulid(), graph.snapshot(), WriteInfo("planted"), (prepared,))
    transaction_of(graph).commit(write)


def inserted(rows: list[dict[str, Any]]) -> Callable[[PinnedTable], StagedWrite]:
    def stage(table: PinnedTable) -> StagedWrite:
        full = [{name: row.get(name) for name in table.schema.names} for row in rows]
        added = pa.Table.from_pylist(full, schema=table.schema)
        new = staging.write_rows(table, added)
        return staging.stage_fragments(table, "insert", {}, new=new, rows_inserted=len(rows))

    return stage


@plants(Damage.FILE_MISSING)
def a_data_file_is_missing(graph: Graph) -> None:
    data_files(graph, "node:City")[0].unlink()


@plants(Damage.FILE_SIZE)
def a_data_file_is_cut_off(graph: Graph) -> None:
    cut(data_files(graph, "node:City")[0])


@plants(Damage.FILE_SIZE)
def a_data_file_is_empty(graph: Graph) -> None:
    cut(data_files(graph, "edge:LivesIn")[0], 0)


@plants(Damage.FILE_SIZE)
def a_data_file_has_grown(graph: Graph) -> None:
    with data_files(graph, "node:City")[0].open("ab") as file:
        file.write(b"more")


@plants(Damage.FILE_DIGEST)
def a_byte_of_a_data_file_has_changed(graph: Graph) -> None:
    path = data_files(graph, "node:City")[0]
    overwrite(path, 3, bytes([path.read_bytes()[3] ^ 255]))


@plants(Damage.FILE_DIGEST)
def two_files_of_a_type_are_swapped(graph: Graph) -> None:
    first, second = data_files(graph, "node:City")[1:3]
    assert first.stat().st_size == second.stat().st_size
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])


@plants(Damage.FILE_DIGEST)
def an_older_file_took_the_place_of_a_newer_one(graph: Graph) -> None:
    first, second = data_files(graph, "node:City")[1:3]
    shutil.copy(first, second)


@plants(Damage.VERSION_MISSING)
def the_published_version_is_missing(graph: Graph) -> None:
    version_file(graph, "node:City").unlink()


@plants(Damage.VERSION_MISSING)
def a_whole_table_is_missing(graph: Graph) -> None:
    shutil.rmtree(place(graph, "edge:LivesIn"))


@plants(Damage.VERSION_UNREADABLE)
def the_published_version_is_cut_off(graph: Graph) -> None:
    cut(version_file(graph, "node:City"))


@plants(Damage.VERSION_UNREADABLE)
def the_published_version_is_all_zeros(graph: Graph) -> None:
    path = version_file(graph, "node:City")
    path.write_bytes(bytes(path.stat().st_size))


@plants(Damage.VERSION_UNREADABLE)
def an_older_version_took_the_place_of_the_published_one(graph: Graph) -> None:
    path = version_file(graph, "node:City")
    older = path.with_name(f"{int(path.stem) + 1:020d}.manifest")
    shutil.copy(older, path)


@plants(Damage.WRONG_VERSION)
def another_transaction_made_the_published_version(graph: Graph) -> None:
    pin = graph.snapshot().pin("node:City")
    put(graph, replace(pin, transaction="00000000-0000-0000-0000-000000000000").to_row())


@plants(Damage.WRONG_VERSION)
def another_transaction_made_what_a_reset_brought_back(graph: Graph) -> None:
    graph.reset(graph.history.commits()[1].commit_id, "main")
    another_transaction_made_the_published_version(graph)


@plants(Damage.STATE_MISSING)
def an_older_version_that_was_not_given_up_is_missing(graph: Graph) -> None:
    path = version_file(graph, "node:City")
    path.with_name(f"{int(path.stem) + 1:020d}.manifest").unlink()


@plants(Damage.DELETIONS_DAMAGED)
def the_list_of_deleted_rows_is_missing(graph: Graph) -> None:
    deletion_file(graph, "node:Person").unlink()


@plants(Damage.DELETIONS_DAMAGED)
def the_list_of_deleted_rows_is_cut_off(graph: Graph) -> None:
    cut(deletion_file(graph, "node:Person"))


@plants(Damage.INDEX_MISSING)
def an_index_has_no_files(graph: Graph) -> None:
    shutil.rmtree(index_files(graph, "node:City")[0].parent)


@plants(Damage.INDEX_SIZE)
def a_file_of_an_index_is_missing(graph: Graph) -> None:
    index_files(graph, "node:City")[0].unlink()


@plants(Damage.INDEX_SIZE)
def a_file_of_an_index_is_cut_off(graph: Graph) -> None:
    cut(index_files(graph, "node:City")[0])


@plants(Damage.INDEX_DISAGREES)
def an_index_claims_rows_that_it_does_not_know(graph: Graph) -> None:
    def stage(table: PinnedTable) -> StagedWrite:
        some = list(table.fragments)[:1]
        name = indexing.IndexSpec("name", "BTREE").name
        made = table.dataset.create_index_uncommitted(
            "name", "BTREE", name=name, fragment_ids=some, replace=True
        )
        made = replace(made, fragment_ids=set(table.fragments))
        spec = indexing.IndexSpec("name", "BTREE")
        built = indexing.BuiltIndex(spec, made, {}, True, table.ref.dataset_path)
        staged = indexing.stage_built(table, [built], {})
        assert staged is not None
        return staged

    write(graph, "node:City", stage)


@plants(Damage.ROW_COUNT)
def the_published_number_of_rows_is_wrong(graph: Graph) -> None:
    pin = graph.snapshot().pin("node:City")
    put(graph, replace(pin, rows=pin.rows + 1).to_row())


@plants(Damage.DUPLICATE_ID)
def an_id_is_there_twice(graph: Graph) -> None:
    write(graph, "node:City", inserted([{"id": "Oslo", "name": "Oslo"}]))


@plants(Damage.DUPLICATE_VALUE)
def a_unique_value_is_there_twice(graph: Graph) -> None:
    write(graph, "node:Person", inserted([{"id": "new", "name": "new", "email": "p1@x"}]))


@plants(Damage.ORPHAN_EDGE)
def an_edge_has_lost_its_source(graph: Graph) -> None:
    write(graph, "edge:LivesIn", inserted([{"id": "e", "src": "nobody", "dst": "Oslo"}]))


@plants(Damage.ORPHAN_EDGE)
def an_edge_has_lost_its_target(graph: Graph) -> None:
    write(graph, "edge:LivesIn", inserted([{"id": "e", "src": "p1", "dst": "nowhere"}]))


@plants(Damage.BLOB_MISSING)
def the_bytes_of_a_blob_are_missing(graph: Graph) -> None:
    (blob,) = place(graph, "node:Person").rglob("*.blob")
    blob.unlink()


@plants(Damage.DRIFT)
def a_type_was_changed_from_outside(graph: Graph) -> None:
    lance.dataset(str(place(graph, "node:City"))).delete("id = 'Oslo'")


@plants(Damage.HEAD_DANGLING)
def the_head_is_no_commit(graph: Graph) -> None:
    state = repository_of(graph).main.current()
    # A publish restores the head it found: a second head under another name is what can be planted.
    put(graph, Head("01UNKNOWN", state.head.schema_hash, "elsewhere").to_row())


@plants(Damage.LINEAGE_BROKEN)
def a_commit_has_lost_its_parent(graph: Graph) -> None:
    commit = Commit(new_ulid(), "main", "planted", 1, parent="01UNKNOWN")
    put(graph, commit.to_row())


@plants(Damage.SCHEMA_MISSING)
def the_schema_is_missing(graph: Graph) -> None:
    put(graph, drop=(f"schema:{graph.snapshot().schema_hash}",))


@plants(Damage.TYPE_WITHOUT_TABLE)
def a_type_has_no_table(graph: Graph) -> None:
    put(graph, drop=("table:node:City",))


@plants(Damage.TABLE_WITHOUT_TYPE)
def a_table_has_no_type(graph: Graph) -> None:
    put(graph, replace(graph.snapshot().pin("node:City"), key="node:Ghost").to_row())


@plants(Damage.PARENT_UNKNOWN)
def a_branch_has_no_parent(graph: Graph) -> None:
    branch = repository_of(graph).branch("dev")
    put(graph, replace(branch, parent=new_ulid()).to_row())


@plants(Damage.MANIFEST_UNREADABLE)
def the_manifest_of_a_branch_is_missing(graph: Graph) -> None:
    branch = repository_of(graph).branch("dev")
    shutil.rmtree(Path(graph.uri) / MANIFEST_PATH / "tree" / branch.incarnation)


@plants(Damage.FORK_REF_MISSING)
def a_physical_branch_does_not_say_what_it_is(graph: Graph) -> None:
    branch = repository_of(graph).branch("dev")
    name = f"{branch.incarnation}.json"
    (Path(graph.uri) / MANIFEST_PATH / "_refs" / "branches" / name).unlink()


@plants(Damage.TAG_DANGLING)
def a_tag_has_no_commit(graph: Graph) -> None:
    (tag,) = graph.tags.list()
    put(graph, replace(tag, commit_id=new_ulid()).to_row())


@plants(Damage.READS_ELSEWHERE)
def a_copy_was_made_by_hand(graph: Graph) -> None:
    elsewhere = f"{graph.uri} elsewhere"
    graph.maintenance.clone(elsewhere)
    shutil.rmtree(graph.uri)
    shutil.copytree(elsewhere, graph.uri)


def attribution(graph: Graph) -> Path:
    (path,) = (Path(graph.uri) / "__history").iterdir()
    return path


@plants(Damage.ATTRIBUTION_DAMAGED)
def who_did_what_on_a_merged_branch_is_gone(graph: Graph) -> None:
    attribution(graph).unlink()


@plants(Damage.ATTRIBUTION_DAMAGED)
def who_did_what_on_a_merged_branch_is_cut_off(graph: Graph) -> None:
    cut(attribution(graph))


@plants(Damage.RECORD_UNREADABLE)
def a_record_of_an_unfinished_write_makes_no_sense(graph: Graph) -> None:
    repository_of(graph).objects.put(f"__recovery/main/{new_ulid()}.json", b"{")


def test_there_are_thirty_kinds_of_damage_and_every_kind_is_planted() -> None:
    assert len(PLANTS) >= 30
    assert {damage for damage, _ in PLANTS} == set(Damage) - {Damage.ROWS_UNREADABLE}


@pytest.mark.parametrize(("damage", "plant"), PLANTS, ids=[plant.__name__ for _, plant in PLANTS])
def test_planted_damage_is_found(graph: Graph, damage: Damage, plant: Plant) -> None:
    plant(graph)
    assert damage in found(graph)


def test_rows_that_cannot_be_decoded_are_found_without_a_digest(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.maintenance.fsck import check

    monkeypatch.setattr(check, "_digests", lambda state: {})
    path = data_files(graph, "node:City")[0]
    overwrite(path, path.stat().st_size - 60, bytes(40))
    assert found(graph) & {Damage.ROWS_UNREADABLE, Damage.VERSION_UNREADABLE}


def test_damage_is_reported_for_the_branch_that_has_it(graph: Graph) -> None:
    put(graph, drop=(f"schema:{graph.snapshot().schema_hash}",))
    report = graph.maintenance.check()
    assert {(f.branch, f.damage) for f in report.findings} == {("main", Damage.SCHEMA_MISSING)}


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_reset_leaves_a_healthy_graph(graph: Graph, branch: str) -> None:
    before = graph.history.commits(branch)
    graph.reset(before[1].commit_id, branch)
    assert graph.maintenance.check().findings == []
    graph.load({"City": [{"name": "Ulm"}]}, mode="append", branch=branch)  # builds on the forks
    graph.reset(before[2].commit_id, branch)
    graph.maintenance.cleanup(keep=1, confirm=True)
    assert omnigraph.open(graph.uri).maintenance.check().findings == []


def test_a_reset_to_another_schema_leaves_a_healthy_graph(graph: Graph) -> None:
    before = graph.history.commits()[0].commit_id
    graph.apply_schema(SCHEMA.replace("since: I32?", "since: I32?  note: String?"))
    graph.reset(before, "main")
    assert graph.maintenance.check().findings == []
