"""Fragments that lack a column: how a reader tells current rows from history without reading.

Depends on it: ``catalog/rows.py`` and ``catalog/state.py``. The column ``current`` is in the
schema of ``__manifest`` and absent from the files of fragments that hold only history.
"""

from __future__ import annotations

import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments
from tests.guards.support import properties, staged_by_hand

from omnigraph.catalog.rows import (
    CURRENT,
    Commit,
    Head,
    Row,
    history_schema,
    manifest_schema,
    rows_to_arrow,
)
from omnigraph.catalog.state import current_fragments, history_fragments, load_state
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableStore


def commits(first: int, count: int) -> list[Row]:
    return [
        Commit(commit_id=f"C{n:03}", branch="main", kind="write", created_at_us=n).to_row()
        for n in range(first, first + count)
    ]


def manifest_with_history(store: TableStore) -> PinnedTable:
    """A fragment with a head and two commits, then one with five commits and no marker column."""
    head = Head("C001", "hash", "main").to_row()
    table = store.create(
        "__manifest", manifest_schema(), properties(), rows_to_arrow([*commits(0, 2), head])
    )
    bare = rows_to_arrow(commits(2, 5), history_only=True)
    added = write_fragments(bare, table.dataset, mode="append", schema=bare.schema)
    update = LanceOperation.Update(
        updated_fragments=list(table.fragments.values()), new_fragments=list(added)
    )
    return store.commit(staged_by_hand(table, update))


def test_a_fragment_without_the_column_reads_as_null(store: TableStore) -> None:
    table = manifest_with_history(store)

    found = table.scan(["object_id", CURRENT])

    assert found.num_rows == 8
    assert found[CURRENT].to_pylist() == [False, False, True] + [None] * 5
    assert table.schema.names == manifest_schema().names
    table.dataset.validate()


def test_it_is_recognised_by_the_fields_of_its_files(store: TableStore) -> None:
    table = manifest_with_history(store)

    assert list(current_fragments(table)) == [0]
    assert list(history_fragments(table)) == [1]
    state = load_state(table)
    assert sorted(state.current) == ["graph_head:main"]
    assert state.head.commit_id == "C001"


def test_a_filter_on_the_missing_column_skips_its_rows(store: TableStore) -> None:
    table = manifest_with_history(store)

    assert table.scan(["object_id"], f"{CURRENT} = true").num_rows == 1
    assert table.scan(["object_id"], f"{CURRENT} IS NULL").num_rows == 5
    by_type = table.scan(["object_id"], "object_type = 'graph_commit'")
    assert by_type.num_rows == 7


def test_it_keeps_row_ids_and_creation_versions(store: TableStore) -> None:
    table = manifest_with_history(store)
    found = table.scan(["object_id", "_row_created_at_version"], with_row_id=True).to_pylist()
    assert [row["_row_created_at_version"] for row in found] == [1] * 3 + [2] * 5
    assert len({row["_rowid"] for row in found}) == 8


def test_native_compaction_may_fill_the_column_in(store: TableStore) -> None:
    """Why the publisher folds by itself: Lance's compaction would make history look current.

    The content stays right, but every fragment would have to be read to find the current rows.
    """
    table = manifest_with_history(store)
    compaction = stage_compaction(table, properties())
    assert compaction is not None
    table = store.commit(compaction)

    assert list(history_fragments(table)) == []
    assert load_state(table).head.commit_id == "C001"
    assert table.scan(["object_id"], f"{CURRENT} IS NULL").num_rows == 5


def test_history_and_manifest_schemas_differ_by_the_marker_only() -> None:
    assert history_schema().names == [n for n in manifest_schema().names if n != CURRENT]
    assert manifest_schema().field(CURRENT).type == pa.bool_()
