"""A commit whose files are truncated on disk is refused (F-10)."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.graphs import files_below, people_graph, repository, rows
from tests.guards import support
from tests.storage.file_limit import files_of_at_most

from omnigraph.errors import StorageFailure, StorageFull
from omnigraph.storage.lance.files import completeness
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, TableStore

Stage = Callable[[PinnedTable], StagedWrite]
P = support.properties()
T = support.TYPE
IDS = [f"k{n:05}" for n in range(20_000)]

STAGES: dict[str, Stage] = {
    "insert": lambda t: staging.stage_insert(t, support.rows(["x"]), P, type_key=T),
    "update": lambda t: staging.stage_update(t, support.rows(["k00001"]), P, type_key=T),
    "delete few": lambda t: staging.stage_delete(t, pa.array(IDS[:3]), P),
    "delete many": lambda t: staging.stage_delete(t, pa.array(IDS[:15_000:2]), P),
    "overwrite": lambda t: staging.stage_overwrite(t, support.rows(["x"]), P, type_key=T),
}


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return support.new_store(tmp_path)


@pytest.mark.parametrize("name", STAGES)
def test_a_staged_write_that_was_cut_short_is_refused(store: TableStore, name: str) -> None:
    stage = STAGES[name]
    table = support.insert(store, support.create(store), IDS)
    before = files_below(Path(store.location.path))
    stage(table)
    sizes = [v for k, v in files_below(Path(store.location.path)).items() if k not in before]

    with files_of_at_most(max(sizes) - 5):
        staged = stage(table)

    with pytest.raises(StorageFull, match="was truncated"):
        store.commit(staged)

    assert store.newest_from(table.ref) == table.ref
    store.commit(stage(table))  # and with room again the same write succeeds


@pytest.mark.parametrize("short_by", [1, 30, 100, 200])
def test_an_index_that_was_cut_short_is_refused(store: TableStore, short_by: int) -> None:
    """By Lance, where it reads the file back while merging; otherwise before the commit."""
    table = support.insert(store, support.create(store), IDS[:50])
    whole = table.dataset.create_index_uncommitted("n", "BTREE", name="w", fragment_ids=[0])

    with pytest.raises(StorageFailure), files_of_at_most(whole.files[0].size_bytes - short_by):
        store.commit(stage_indexes(table, [IndexSpec("n", "BTREE")], P))

    assert store.newest_from(table.ref) == table.ref
    support.index(store, table, "n")


@pytest.mark.parametrize("branch", [False, True])
def test_a_whole_write_is_never_refused(store: TableStore, branch: bool) -> None:
    table = support.insert(store, support.create(store), IDS)
    if branch:
        table = support.fork(store, table, "01BRANCH")
    order = random.Random(7)
    left = set(IDS)
    for count in (1, 2, 4_500, 300, 6_000):
        gone = order.sample(sorted(left), count)
        left -= set(gone)
        table = store.commit(staging.stage_delete(table, pa.array(gone), P))
        table = support.upsert(store, table, sorted(left)[:3], count)
    assert set(support.content(support.index(store, table, "n"))) == left


def test_a_compaction_is_never_refused_without_a_reason(store: TableStore) -> None:
    table = support.on_a_nested_branch(store)
    compaction = stage_compaction(table, P)
    assert compaction is not None
    assert support.content(store.commit(compaction)) == support.content(table)


def test_a_publish_that_was_cut_short_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "graph")
    head = graph.snapshot().commit_id
    view = repository(graph)
    state = view.main.current()
    deletion = state.table.dataset.get_fragment(max(state.table.fragments))

    with files_of_at_most(20):
        left = deletion.delete_rows([0])

    with pytest.raises(StorageFull, match="was truncated"):
        completeness.require_complete_files(
            view.location.child("__manifest"), _update(left), state.table.fragments
        )
    assert graph.snapshot().commit_id == head
    assert set(rows(graph, "node:Person")) == {"ana", "bo"}


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("containers", [1, 5])
def test_a_bitmap_is_complete_only_at_its_full_length(runs: bool, containers: int) -> None:
    """Both spellings of the portable roaring format; Lance writes the first today."""
    data, count = _bitmap(runs, containers)
    assert completeness.is_complete_bitmap(data, count)
    assert not completeness.is_complete_bitmap(data, count + 1)
    for cut in {0, 1, 7, 8, 9, len(data) // 2, len(data) - 1}:
        assert not completeness.is_complete_bitmap(data[:cut], count)
    assert not completeness.is_complete_bitmap(os.urandom(4) + data[4:], count)


def _update(fragment: object) -> object:
    from lance import LanceOperation

    return LanceOperation.Update(updated_fragments=[fragment])


def _bitmap(runs: bool, containers: int) -> tuple[bytes, int]:
    """Containers of one run of 10 rows each, or arrays of 3 rows and one bitmap of 5,000."""
    if runs:
        bitset = bytes([0xFF]) * ((containers + 7) // 8)
        head = struct.pack("<I", 12347 | (containers - 1) << 16) + bitset
        cards = b"".join(struct.pack("<HH", key, 9) for key in range(containers))
        offsets = b"\0" * (4 * containers if containers >= 4 else 0)
        body = struct.pack("<HHH", 1, 0, 9) * containers
        return head + cards + offsets + body, 10 * containers
    sizes = [5_000] + [3] * (containers - 1)
    head = struct.pack("<II", 12346, containers)
    cards = b"".join(struct.pack("<HH", key, size - 1) for key, size in enumerate(sizes))
    body = b"\0" * 8192 + b"\0" * (6 * (containers - 1))
    return head + cards + b"\0" * (4 * containers) + body, sum(sizes)
