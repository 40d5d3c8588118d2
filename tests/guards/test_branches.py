"""Physical branches of a table: separate datasets that share files with their source."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import LanceFragment
from tests.guards.support import (
    PATH,
    content,
    fork,
    index,
    insert,
    new_store,
    one_fragment,
    properties,
    rows,
    several_fragments,
    upsert,
)
from tests.support.stores import open_tables

from omnigraph.errors import CorruptData, GraphMoved
from omnigraph.storage.lance.files.relocation import relocated
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableStore


def test_opening_the_tree_path_equals_checking_out_the_branch(store: TableStore) -> None:
    """Depends on it: ``TableRef.dataset_path``."""
    branch = upsert(store, fork(store, several_fragments(store), "01BRANCH"), ["a", "x"], 1)
    root = lance.dataset(str(Path(store.location.path, PATH)))

    checked_out = root.checkout_version(("01BRANCH", branch.ref.version))
    opened = open_tables(store.location, store.objects).open(branch.ref).dataset

    assert opened.version == checked_out.version == branch.ref.version
    columns = ["id", "n", "_rowid", "_row_created_at_version"]
    assert opened.to_table(columns=columns).equals(checked_out.to_table(columns=columns))
    assert opened.uri.endswith("/tree/01BRANCH")
    assert not checked_out.uri.endswith("/tree/01BRANCH")  # why it is not opened this way


def test_a_branch_and_its_source_do_not_see_each_other(store: TableStore) -> None:
    source = several_fragments(store)
    branch = fork(store, source, "01BRANCH")
    branch = upsert(store, branch, ["a", "x"], 1)
    source = store.commit(staging.stage_delete(source, pa.array(["a", "e"]), properties()))

    assert content(branch) == {"a": 1, "b": 0, "c": 0, "d": 0, "e": 0, "x": 1}
    assert content(source) == {"b": 0, "c": 0, "d": 0}


def test_a_branch_may_be_forked_from_a_branch(store: TableStore) -> None:
    """Depends on it: ``TableStore.fork`` with a reference of (branch, version)."""
    first = upsert(store, fork(store, several_fragments(store), "01BRANCH"), ["a", "x"], 1)
    second = fork(store, first, "02BRANCH")
    assert second.ref.version == first.ref.version
    second = upsert(store, second, ["x", "b", "y"], 2)
    third = upsert(store, fork(store, second, "03BRANCH"), ["y"], 3)
    first = store.commit(staging.stage_delete(first, pa.array(["x"]), properties()))

    assert content(third) == {"a": 1, "b": 2, "c": 0, "d": 0, "e": 0, "x": 2, "y": 3}
    assert content(second) == {"a": 1, "b": 2, "c": 0, "d": 0, "e": 0, "x": 2, "y": 2}
    assert content(first) == {"a": 1, "b": 0, "c": 0, "d": 0, "e": 0}
    for table in (first, second, third):
        fresh = open_tables(store.location, store.objects).open(table.ref)
        assert content(fresh) == content(table)
        fresh.dataset.validate()


def test_a_branch_may_be_forked_from_an_older_version_of_a_branch(store: TableStore) -> None:
    first = fork(store, several_fragments(store), "01BRANCH")
    older = insert(store, first, ["x"])
    insert(store, older, ["y"])

    second = fork(store, older, "02BRANCH")
    assert content(second) == content(older)
    assert "y" not in content(second)


def test_creating_a_branch_copies_no_data(store: TableStore) -> None:
    """Depends on it: a branch costs the same whatever the graph holds."""
    table = several_fragments(store)
    fork(store, table, "01BRANCH")

    tree = Path(store.location.path, PATH, "tree", "01BRANCH")
    written = sorted(path.relative_to(tree).parts[0] for path in tree.rglob("*") if path.is_file())
    assert set(written) <= {"_versions", "_transactions"}
    assert "data" not in written


def test_files_of_a_branch_are_written_below_the_branch(store: TableStore) -> None:
    """Depends on it: ``staging.write_rows``, which passes the handle and never its uri."""
    branch = fork(store, one_fragment(store), "01BRANCH")
    main_files = _data_files(store, PATH)
    insert(store, branch, ["x"])

    assert _data_files(store, PATH) == main_files
    assert len(_data_files(store, f"{PATH}/tree/01BRANCH")) == 1


def test_a_handle_that_was_checked_out_writes_to_the_wrong_place(store: TableStore) -> None:
    """Why branches are opened by path: the uri of a checked-out handle is that of the root."""
    branch = fork(store, one_fragment(store), "01BRANCH")
    root = lance.dataset(str(Path(store.location.path, PATH)))
    checked_out = root.checkout_version(("01BRANCH", branch.ref.version))

    LanceFragment.create(checked_out.uri, rows(["x"]))

    assert _data_files(store, f"{PATH}/tree/01BRANCH") == []
    assert len(_data_files(store, PATH)) == 2


def test_lances_own_compaction_breaks_the_inherited_indexes_of_a_branch(store: TableStore) -> None:
    """Why ``compaction.stage_compaction`` commits a ``Rewrite`` of its own, shown safe here."""
    branch = _indexed_branch(store, "01BRANCH")
    path = str(Path(store.location.path, branch.ref.dataset_path))
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=100)
    with pytest.raises((OSError, ValueError), match="Not found"):
        lance.dataset(path).to_table(filter="id = 'a'")

    safe = _indexed_branch(store, "02BRANCH")
    compaction = stage_compaction(safe, properties())
    assert compaction is not None
    safe = store.commit(compaction)
    assert safe.scan(["id"], "id = 'a'")["id"].to_pylist() == ["a"]
    assert safe.scan(["id"], "id IN ('e', 'x')").num_rows == 2


def test_a_branch_names_its_source_by_absolute_path(store: TableStore, tmp_path: Path) -> None:
    """Why branches of a graph that was moved or copied as files are relocated; main needs nothing.

    To Lance, the copy's branch reads the *original's* files, silently, while they are there.
    """
    branch = insert(store, fork(store, several_fragments(store), "01BRANCH"), ["x"])
    main = store.open_newest(PATH)
    on_main = content(main)
    copied = tmp_path / "elsewhere"
    shutil.copytree(Path(store.location.path, "nodes"), copied / "nodes")

    copy = new_store(copied)
    with pytest.raises(GraphMoved, match="was moved or copied"):
        copy.open(branch.ref)
    assert content(copy.open(main.ref)) == on_main
    lances = lance.dataset(str(copied / branch.ref.dataset_path), version=branch.ref.version)
    assert lances.count_rows(filter="id != ''") == len(content(branch))

    for path in Path(store.location.path, PATH, "data").iterdir():
        path.unlink()
    with pytest.raises((OSError, ValueError), match="Not found"):
        lance.dataset(str(copied / branch.ref.dataset_path)).to_table()
    copy.relocates = True
    assert content(copy.open(branch.ref)) == {**on_main, "x": 0}
    assert content(new_store(copied).open(main.ref)) == on_main


def test_a_moved_branch_is_read_through_other_base_paths_without_a_write(
    store: TableStore, tmp_path: Path
) -> None:
    """Depends on it: ``relocation.rebased``, by which moved graphs of the original are read."""
    indexed = index(store, several_fragments(store), "id")
    branch = insert(store, fork(store, indexed, "01BRANCH"), ["x"])
    expected = content(branch)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(Path(store.location.path, "nodes"), moved)
    files = {path: path.read_bytes() for path in moved.rglob("*") if path.is_file()}

    there = new_store(moved)
    there.rebases = True
    opened = there.open(branch.ref)
    assert content(opened) == expected
    assert opened.scan(["id"], "id IN ('a', 'x')").num_rows == 2
    assert {path: path.read_bytes() for path in moved.rglob("*") if path.is_file()} == files


def test_the_places_that_a_version_names_can_be_rewritten(
    store: TableStore, tmp_path: Path
) -> None:
    """Depends on it: ``relocation.relocated``, and with it backups and clones."""
    fork(store, index(store, several_fragments(store), "id"), "01BRANCH")
    root = Path(store.location.path)
    files = sorted(root.rglob("*.manifest"))
    seen: list[str] = []

    def same(base: str) -> str:
        seen.append(base)
        return base

    assert all(relocated(file.read_bytes(), same) == file.read_bytes() for file in files)
    assert set(seen) == {f"{root}/{PATH}"}

    elsewhere = tmp_path / "elsewhere, with a longer name"
    shutil.copytree(root / "nodes", elsewhere / "nodes")
    for file in sorted(elsewhere.rglob("*.manifest")):
        moved = relocated(file.read_bytes(), lambda base: base.replace(str(root), str(elsewhere)))
        file.write_bytes(moved)
    shutil.rmtree(root / "nodes")
    copy = new_store(elsewhere).open_newest(PATH, "01BRANCH")
    assert content(copy)["a"] == 0
    assert copy.scan(["id"], "id = 'a'")["id"].to_pylist() == ["a"]
    for damaged in (b"", b"short", bytes(64), files[0].name.encode() * 8):
        with pytest.raises(CorruptData):
            relocated(damaged, same)


def _indexed_branch(store: TableStore, name: str) -> PinnedTable:
    path = f"nodes/{name}"
    table = store.create(path, rows([]).schema, properties())
    for ids in (["a", "b"], ["c", "d", "e"]):
        table = insert(store, table, ids)
    return insert(store, fork(store, index(store, table, "id"), name), ["x"])


def _data_files(store: TableStore, path: str) -> list[str]:
    directory = Path(store.location.path, path, "data")
    return sorted(p.name for p in directory.iterdir()) if directory.is_dir() else []
