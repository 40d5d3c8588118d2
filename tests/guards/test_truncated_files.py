"""On a local disk Lance may report a truncated file as written.

When the *last* write to a file fails (disk full, quota, file-size limit) the error is lost: the
call returns metadata with the intended size, and a commit that names the file succeeds. Nothing but
a read finds out. Depends on it: ``storage/lance/files/completeness.py`` looks at the files before a
commit.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from tests.guards.support import PATH, create, insert, new_store, rows, several_fragments
from tests.storage.file_limit import files_of_at_most
from tests.storage.small_disk import mounted

from omnigraph.storage.lance.errors import translate
from omnigraph.storage.lance.tables import TableStore


def test_a_data_file_that_was_cut_short_is_reported_as_written(store: TableStore) -> None:
    table = several_fragments(store)

    with files_of_at_most(400):
        (fragment,) = write_fragments(rows(["x"]), table.dataset, mode="append")

    (file,) = fragment.files
    on_disk = os.path.getsize(Path(store.location.path, PATH, "data", file.path))
    assert on_disk == 400
    assert file.file_size_bytes > on_disk


@pytest.mark.parametrize(("count", "suffix"), [(3, "arrow"), (15_000, "bin")])
def test_a_deletion_file_that_was_cut_short_is_reported_as_written(
    store: TableStore, count: int, suffix: str
) -> None:
    table = insert(store, create(store), [f"k{n}" for n in range(20_000)])

    with files_of_at_most(20):
        left = table.dataset.get_fragment(0).delete_rows(list(range(count)))

    assert left.deletion_file.num_deleted_rows == count
    path = Path(store.location.path, PATH, left.deletion_file.path(0))
    assert path.suffix == f".{suffix}"
    assert path.stat().st_size == 20


def test_an_index_file_that_was_cut_short_is_reported_as_written(store: TableStore) -> None:
    table = insert(store, create(store), [f"k{n}" for n in range(50)])
    whole = table.dataset.create_index_uncommitted("n", "BTREE", name="w", fragment_ids=[0])
    limit = min(file.size_bytes for file in whole.files) - 30

    with files_of_at_most(limit):
        built = table.dataset.create_index_uncommitted("n", "BTREE", name="n", fragment_ids=[0])

    directory = Path(store.location.path, PATH, "_indices", built.uuid)
    sizes = {file.path: file.size_bytes for file in built.files}
    assert any((directory / name).stat().st_size < size for name, size in sizes.items())


def test_it_happens_on_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A file whose tail does not fit any more, and a deletion file of no bytes at all."""
    with mounted(tmp_path / "disk", size="400k") as disk:
        store = new_store(disk / "graph")
        table = insert(store, create(store), [f"k{n}" for n in range(2_000)])
        filler = disk / "filler"
        blocks = _fill(filler)
        shortened = 0
        for count in range(90, 130, 3):  # the file's end wanders over the last block
            os.truncate(filler, (blocks - 1) * 4096)
            shortened += _is_cut_short(store, count)
        assert shortened > 0

        _fill(filler)
        left = table.dataset.get_fragment(0).delete_rows([0])
        assert Path(disk, "graph", PATH, left.deletion_file.path(0)).stat().st_size == 0


def test_an_error_before_the_last_write_is_reported(store: TableStore) -> None:
    """The usual case: the limit is hit in the middle, and Lance says so in words we know."""
    table = several_fragments(store)
    many = rows([f"k{n}" for n in range(50_000)])

    with files_of_at_most(10_000), pytest.raises(OSError, match="File too large") as caught:
        write_fragments(many, table.dataset, mode="append")

    assert translate(caught.value, "testing").code == "storage_full"


def test_a_deletion_of_the_arrow_kind_is_an_arrow_file(store: TableStore) -> None:
    """What ``storage/lance/files/completeness.py`` reads back."""
    table = insert(store, create(store), ["a", "b", "c"])
    left = table.dataset.get_fragment(0).delete_rows([0, 2])
    path = Path(store.location.path, PATH, left.deletion_file.path(0))
    assert sorted(pa.ipc.open_file(path).read_all().column(0).to_pylist()) == [0, 2]


def _is_cut_short(store: TableStore, count: int) -> bool:
    ids = [f"q{n:06}{'z' * (n % 50)}" for n in range(count)]
    data = Path(store.location.path, PATH, "data")
    before = set(data.iterdir())
    table = store.open_newest(PATH)
    try:
        (fragment,) = write_fragments(rows(ids), table.dataset, mode="append")
        (file,) = fragment.files
        return (data / file.path).stat().st_size < file.file_size_bytes
    except OSError:
        return False
    finally:
        for path in set(data.iterdir()) - before:
            path.unlink()


def _fill(filler: Path) -> int:
    """Write until the disk is full; returns the number of whole blocks."""
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler.stat().st_size // 4096
    raise AssertionError("the disk has no end")
