"""Rows of older versions: read in one scan, and their update versions from metadata.

The history of an entity is read this way.
"""

from __future__ import annotations

import random

import pyarrow as pa
from tests.guards.support import (
    content,
    create,
    fork,
    insert,
    one_fragment,
    properties,
    several_fragments,
    upsert,
)

from omnigraph.storage.lance.row_versions import WRITTEN, only_writer
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableStore


def stamps(table: PinnedTable, fragment_id: int) -> list[int]:
    found: list[int] = table.scan([WRITTEN], fragment_ids=[fragment_id])[WRITTEN].to_pylist()
    return found


def test_fragments_of_several_versions_are_read_as_they_were_then(store: TableStore) -> None:
    first = one_fragment(store)
    second = upsert(store, first, ["a"], 7)
    third = upsert(store, second, ["a", "b"], 8)
    (old,), (lone,) = list(first.fragments), second.fragments.keys() - first.fragments.keys()

    found = third.scan(
        ["id", "n", WRITTEN],
        fragment_ids=third.fragments.keys() - second.fragments.keys(),
        older=[(second, [lone]), (first, [old])],
    )

    assert set(zip(*(found[name].to_pylist() for name in ("id", "n", WRITTEN)), strict=True)) == {
        ("a", 8, third.ref.version),
        ("b", 8, third.ref.version),
        ("a", 7, second.ref.version),
        *((name, 0, first.ref.version) for name in "abcd"),
    }


def test_a_branch_reads_what_it_shares_with_its_parent(store: TableStore) -> None:
    parent = several_fragments(store)
    branch = fork(store, parent, "01BRANCH")
    changed = upsert(store, branch, ["a", "c"], 5)
    fresh = changed.fragments.keys() - branch.fragments.keys()

    found = changed.scan(["n"], fragment_ids=fresh, older=[(branch, list(branch.fragments))])

    assert sorted(found["n"].to_pylist()) == [0] * branch.rows + [5, 5]


def test_the_only_writer_of_a_fragment_is_the_one_its_rows_name(store: TableStore) -> None:
    chance = random.Random(11)
    table = insert(store, create(store), [f"k{number:03d}" for number in range(200)])
    told = 0
    for step in range(150):  # so that versions take one byte, and later two
        before = table.fragments.keys()
        some = chance.sample(sorted(content(table)), chance.choice([1, 1, 5]))
        table = upsert(store, table, some, step)
        if step % 40 == 39:
            compacted = stage_compaction(table, properties())
            assert compacted is not None
            table = store.commit(compacted)
        for fragment_id in table.fragments.keys() - before:
            writer = only_writer(table.fragments[fragment_id])
            found = set(stamps(table, fragment_id))
            assert found == {writer} if writer is not None else len(found) > 1
            told += writer is not None
    assert told > 100


def test_no_writer_is_told_of_rows_that_several_versions_wrote(store: TableStore) -> None:
    table = several_fragments(store)
    staged = stage_compaction(table, properties())
    assert staged is not None
    (fragment,) = store.commit(staged).fragments.values()

    assert only_writer(fragment) is None


def test_a_row_that_is_gone_is_no_longer_read(store: TableStore) -> None:
    table = one_fragment(store)
    without = store.commit(staging.stage_delete(table, pa.array(["b"]), properties()))
    (fragment_id,) = table.fragments
    newest = insert(store, without, ["z"])

    found = newest.scan(["id"], fragment_ids=[], older=[(without, [fragment_id])])

    assert found["id"].to_pylist() == ["a", "c", "d"]
