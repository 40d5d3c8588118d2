"""Rows keep their identity: stable row ids, and the version in which each was created.

Delta, time travel and a commit's manifest version all read these columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from lance import LanceOperation
from lance.fragment import RowIdSequence, write_fragments
from lance.optimize import Compaction
from tests.guards.support import (
    SCHEMA,
    TYPE,
    content,
    fork,
    insert,
    one_fragment,
    properties,
    rows,
    several_fragments,
    staged_by_hand,
    upsert,
)

from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableStore

CREATED, UPDATED = "_row_created_at_version", "_row_last_updated_at_version"


def identities(table: PinnedTable) -> dict[str, tuple[int, int, int]]:
    """id to (row id, created at, last updated at)."""
    found = table.scan(["id", CREATED, UPDATED], with_row_id=True).to_pylist()
    return {row["id"]: (row["_rowid"], row[CREATED], row[UPDATED]) for row in found}


def test_a_replaced_row_is_a_new_row_and_the_others_keep_theirs(store: TableStore) -> None:
    """Depends on it: ``storage.delta``."""
    table = several_fragments(store)
    before = identities(table)

    after = identities(upsert(store, table, ["d", "a", "new"], 1))

    version = table.ref.version + 1
    for id_ in ("b", "c", "e"):
        assert after[id_] == before[id_]
    for id_ in ("a", "d", "new"):
        row_id, created, updated = after[id_]
        assert (created, updated) == (version, version)
        assert row_id > max(row_id for row_id, _, _ in before.values())


def test_one_commit_may_replace_insert_and_delete(store: TableStore) -> None:
    """Depends on it: ``staging.stage_change``; a merge of branches is one commit per table."""
    table = fork(store, several_fragments(store), "01BRANCH")
    before = identities(table)
    staged = staging.stage_change(
        table, rows(["a", "new"], 1), pa.array(["e"]), properties(), type_key=TYPE
    )

    landed = store.commit(staged)

    assert content(landed) == {"a": 1, "b": 0, "c": 0, "d": 0, "new": 1}
    landed.dataset.validate()
    delta = landed.dataset.delta(compared_against=table.ref.version)
    assert delta.get_inserted_rows().read_all()["id"].to_pylist() == ["a", "new"]
    assert delta.get_updated_rows().read_all()["id"].to_pylist() == []
    gone = delta.get_deleted_row_ids().read_all().column(0).to_pylist()
    assert sorted(gone) == sorted([before["a"][0], before["e"][0]])


def test_replacing_a_row_many_times_leaves_the_others_alone(store: TableStore) -> None:
    table = several_fragments(store)
    before = identities(table)
    for n in range(1, 8):
        table = upsert(store, table, ["c", "e"], n)

    after = identities(table)
    assert {id_: after[id_] for id_ in "abd"} == {id_: before[id_] for id_ in "abd"}
    assert content(table) == {"a": 0, "b": 0, "c": 7, "d": 0, "e": 7}
    table.dataset.validate()


def test_deletion_by_address_counts_physical_rows(store: TableStore) -> None:
    """Depends on it: ``staging.delete_addresses`` and the publisher, where rows were deleted."""
    table = insert(store, one_fragment(store), ["x", "y"])
    for gone in ("b", "a", "y"):
        table = store.commit(staging.stage_delete(table, pa.array([gone]), properties()))

    assert sorted(content(table)) == ["c", "d", "x"]
    addresses = table.scan(["id"], with_row_address=True)
    offsets = {row["id"]: row["_rowaddr"] & 0xFFFF_FFFF for row in addresses.to_pylist()}
    assert offsets == {"c": 2, "d": 3, "x": 0}


def test_leading_row_ids_may_be_given_and_the_rest_is_new(store: TableStore) -> None:
    """Depends on it: ``publisher._with_row_ids``, which folds old and new rows into one fragment.

    The fragment has four rows and its row id sequence only two.
    """
    table = several_fragments(store)
    before = identities(table)
    kept = table.scan(["id", "n", "s"], "id IN ('b', 'd')", with_row_id=True)
    mixed = pa.concat_tables([kept.drop_columns(["_rowid"]).cast(SCHEMA), rows(["p", "q"], 9)])
    (fragment,) = write_fragments(mixed, table.dataset, mode="append")
    ids = RowIdSequence(kept["_rowid"].to_pylist()).to_inline_metadata()
    operation = LanceOperation.Update(
        removed_fragment_ids=[0, 2], new_fragments=[replace(fragment, row_id_meta=ids)]
    )

    landed = store.commit(staged_by_hand(table, operation))

    after, version = identities(landed), table.ref.version + 1
    assert sorted(after) == ["b", "c", "d", "p", "q"]
    assert after["b"][:2] == before["b"][:2]
    assert after["d"][:2] == before["d"][:2]
    assert after["p"][1:] == after["q"][1:] == (version, version)
    assert len({row_id for row_id, _, _ in after.values()} | {v[0] for v in before.values()}) == 7
    landed.dataset.validate()


def test_compaction_keeps_row_ids_and_versions(store: TableStore) -> None:
    """Depends on it: ``compaction.stage_compaction``."""
    table = upsert(store, several_fragments(store), ["a", "e", "new"], 1)
    table = store.commit(staging.stage_delete(table, pa.array(["c"]), properties()))
    before, rows_before = identities(table), content(table)
    staged = stage_compaction(table, properties())
    assert staged is not None

    landed = store.commit(staged)

    assert len(landed.fragments) < len(table.fragments)
    assert identities(landed) == before
    assert content(landed) == rows_before
    landed.dataset.validate()
    again = identities(upsert(store, landed, ["a"], 5))
    assert {id_: again[id_] for id_ in before if id_ != "a"} == {
        id_: before[id_] for id_ in before if id_ != "a"
    }


def test_compaction_leaves_excluded_fragments_alone(store: TableStore) -> None:
    """Depends on it: ``tiers``: the cost of upkeep follows what was written, not what is stored."""
    table = several_fragments(store)
    for ids in (["f"], ["g"]):
        table = insert(store, table, ids)
    options: dict[str, Any] = {"excluded_fragment_ids": [0, 4], "target_rows_per_fragment": 100}

    plan = Compaction.plan(table.dataset, options)
    results = [task.execute(table.dataset) for task in plan.tasks]
    groups = [LanceOperation.RewriteGroup(r.original_fragments, r.new_fragments) for r in results]
    landed = store.commit(staged_by_hand(table, LanceOperation.Rewrite(groups, [])))

    rewritten = {fragment.id for result in results for fragment in result.original_fragments}
    assert rewritten == {1, 2, 3}
    assert {0, 4} < set(landed.fragments)
    assert len(landed.fragments) == 3
    assert content(landed) == content(table)


def test_a_single_fragment_is_not_compacted(store: TableStore) -> None:
    """Upkeep comes to rest: it never rewrites a fragment onto itself."""
    assert stage_compaction(one_fragment(store), properties()) is None


def test_overwrite_and_restore_never_hand_out_a_row_id_again(store: TableStore) -> None:
    """Depends on it: caches and delta, which take a row id for the row's identity."""
    table = several_fragments(store)
    used = {row_id for row_id, _, _ in identities(table).values()}
    start = table.ref.version
    over = staging.stage_overwrite(table, rows(["a", "b"], 1), properties(), type_key=TYPE)
    table = store.commit(over)
    fresh = {row_id for row_id, _, _ in identities(table).values()}
    assert not fresh & used

    table = store.commit(staging.stage_restore(table, start, 5, properties()))
    assert {row_id for row_id, _, _ in identities(table).values()} == used
    table = insert(store, table, ["after"])
    assert identities(table)["after"][0] > max(used | fresh)
