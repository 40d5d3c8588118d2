"""Lance calls that silently lose or duplicate data, which the engine never makes.

Each test shows the trap itself, so that nobody simplifies the code back into it. When one of these
fails after an upgrade, Lance has repaired something and the code around it may become simpler.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from tests.guards.support import (
    PATH,
    SHAPES,
    TYPE,
    content,
    create,
    index,
    insert,
    properties,
    rows,
    several_fragments,
    staged_by_hand,
)
from tests.support.stores import open_tables

from omnigraph.errors import Drift, KeyConflict
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.tables import PinnedTable, TableStore


def test_an_update_that_names_no_fragment_is_rebased(store: TableStore) -> None:
    """Why ``staging._stage`` uses ``Merge`` on an empty table."""
    table = create(store)
    staged = [
        staged_by_hand(table, LanceOperation.Update(new_fragments=_written(table, ["same"])))
        for _ in range(2)
    ]

    versions = [store.commit_rebasing(write).ref.version for write in staged]

    assert versions == [2, 3]
    assert _ids(store) == ["same", "same"]


def test_a_plain_append_slips_through_a_widened_update(store: TableStore) -> None:
    """Why no module ever issues an ``Append``: neither side of this race is told."""
    table = several_fragments(store)
    widened = staging.stage_insert(table, rows(["same"]), properties(), type_key=TYPE)
    store.commit_rebasing(staged_by_hand(table, LanceOperation.Append(_written(table, ["same"]))))

    landed = store.commit_rebasing(widened)

    assert landed.ref.version == table.ref.version + 2
    assert _ids(store).count("same") == 2


@pytest.mark.parametrize("indexed", [False, True])
def test_lances_own_staged_upsert_doubles_a_new_key(store: TableStore, indexed: bool) -> None:
    """Why ``staging`` builds its transactions by hand instead of using ``merge_insert``."""
    table = SHAPES["indexed" if indexed else "several_fragments"](store)
    staged = [
        table.dataset.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .conflict_retries(0)
        .execute_uncommitted(rows([existing, "same"], 7))[0]
        for existing in ("a", "e")  # of different fragments
    ]

    for transaction in staged:
        LanceDataset.commit(table.dataset, transaction, max_retries=0)

    assert _ids(store).count("same") == 2


@pytest.mark.parametrize("indexed", [False, True])
def test_of_two_staged_upserts_of_the_same_new_key_one_wins(
    store: TableStore, indexed: bool
) -> None:
    """The same race through ``staging``, also when each side updates another fragment."""
    table = SHAPES["indexed" if indexed else "several_fragments"](store)
    first, second = (
        staging.stage_upsert(table, rows([existing, "same"], n), properties(), type_key=TYPE)
        for n, existing in ((7, "a"), (8, "e"))
    )

    landed = store.commit(first)
    with pytest.raises(CommitRefused):
        store.commit(second)

    assert content(landed) == {"a": 7, "b": 0, "c": 0, "d": 0, "e": 0, "same": 7}
    assert landed.scan(["n"], "id = 'same'")["n"].to_pylist() == [7]


def test_lance_inserts_the_duplicates_of_one_batch(store: TableStore) -> None:
    """Why ``staging._require_distinct`` refuses them before anything is written."""
    table = create(store)
    transaction, _ = (
        table.dataset.merge_insert("id")
        .when_not_matched_insert_all()
        .execute_uncommitted(rows(["same", "same"]))
    )
    LanceDataset.commit(table.dataset, transaction, max_retries=0)
    assert _ids(store) == ["same", "same"]

    for stage in (staging.stage_insert, staging.stage_upsert, staging.stage_overwrite):
        with pytest.raises(KeyConflict):
            stage(table, rows(["same", "same"]), properties(), type_key=TYPE)


def test_committing_a_plain_append_twice_doubles_its_rows(store: TableStore) -> None:
    """Why an unclear outcome is looked up by transaction uuid and never simply repeated."""
    table = several_fragments(store)
    append = staged_by_hand(table, LanceOperation.Append(_written(table, ["once"])))

    store.commit_rebasing(append)
    store.commit_rebasing(append)

    assert _ids(store).count("once") == 2


def test_restore_never_conflicts(store: TableStore) -> None:
    """Why recovery claims a record first, and why ``TableStore.commit`` looks where it landed."""
    table = several_fragments(store)
    restore = staging.stage_restore(table, table.ref.version - 1, 3, properties())
    insert(store, table, ["written in between"])

    with pytest.raises(Drift):
        store.commit(restore)

    newest = store.open_newest(PATH)
    assert newest.ref.version == table.ref.version + 2
    assert "written in between" not in content(newest)  # HEAD lost it; the published version stays
    assert "written in between" in content(store.open(table.ref.at(table.ref.version + 1)))


def test_an_index_build_is_rebased_over_a_write(store: TableStore) -> None:
    """Why ``TableStore.commit`` verifies the version: the staged index knows nothing of the row."""
    table = several_fragments(store)
    build = stage_indexes(table, [IndexSpec("n", "BTREE")], properties())
    insert(store, table, ["unindexed"], n=5)

    with pytest.raises(Drift):
        store.commit(build)

    newest = store.open_newest(PATH)
    assert newest.ref.version == table.ref.version + 2
    assert newest.scan(["id"], "n = 5")["id"].to_pylist() == ["unindexed"]


def test_a_write_is_rebased_over_an_index_build(store: TableStore) -> None:
    """The other order: harmless for the data, and reported as drift, not as a success."""
    table = several_fragments(store)
    write = staging.stage_update(table, rows(["a"], 9), properties(), type_key=TYPE)
    index(store, table, "n")

    with pytest.raises(Drift):
        store.commit(write)

    newest = store.open_newest(PATH)
    assert newest.scan(["id"], "n = 9")["id"].to_pylist() == ["a"]
    assert sorted(newest.scan(["id"], "n = 0")["id"].to_pylist()) == ["b", "c", "d", "e"]


def test_numbering_new_fragments_by_hand_is_left_to_lance(store: TableStore) -> None:
    """``staging`` leaves the raw id 0 on new fragments; Lance gives them ids never used before."""
    table = several_fragments(store)
    highest = max(table.fragments)
    table = store.commit(staging.stage_delete(table, pa.array(["d", "e"]), properties()))
    assert max(table.fragments) < highest  # the last fragment is gone

    staged = staging.stage_insert(table, rows(["later"]), properties(), type_key=TYPE)
    assert {fragment.id for fragment in staged.transaction.operation.new_fragments} == {0}
    table = store.commit(staged)

    assert max(table.fragments) == highest + 1


def test_an_overwrite_made_from_version_zero_is_refused_on_an_existing_table(
    store: TableStore,
) -> None:
    """Why ``TableStore.create`` is exclusive."""
    table = several_fragments(store)
    again = Transaction(0, LanceOperation.Overwrite(table.schema, []))

    with pytest.raises(OSError, match=r"0\.manifest was not found|already exists"):
        LanceDataset.commit(str(table.dataset.uri), again, max_retries=0)

    assert store.newest_from(table.ref) == table.ref


def _written(table: PinnedTable, ids: list[str]) -> list[Any]:
    return list(write_fragments(rows(ids), table.dataset, mode="append"))


def _ids(store: TableStore) -> list[str]:
    found = open_tables(store.location, store.objects).open_newest(PATH).scan(["id"])
    return sorted(found["id"].to_pylist())
