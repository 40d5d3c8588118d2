"""Row deltas, compared with a full read of both versions."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.guards.support import (
    TYPE,
    content,
    create,
    fork,
    index,
    insert,
    new_store,
    properties,
    rows,
    upsert,
)

from omnigraph.storage.lance.row_delta import NEW, OLD, common_ancestor, row_pairs
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore

HISTORIES = 6
STEPS = 24


def step(store: TableStore, table: PinnedTable, rng: random.Random) -> PinnedTable:
    """One random change, as writers, upkeep and recovery make them."""
    there = sorted(content(table))
    some = rng.sample(there, min(len(there), rng.randint(1, 3)))
    fresh = sorted({f"k{rng.randint(0, 30):02d}" for _ in range(3)})
    value = rng.randint(1, 5)
    match rng.randint(0, 7):
        case 0:
            return insert(store, table, sorted(set(fresh) - set(there)) or ["z"], value)
        case 1 if some:
            return store.commit(staging.stage_delete(table, pa.array(some), properties()))
        case 2 if some:
            mixed = rows(sorted({*fresh} - {*some}), value)
            staged = staging.stage_change(table, mixed, pa.array(some), properties(), type_key=TYPE)
            return store.commit(staged)
        case 3 if rng.random() < 0.3:
            whole = rows(sorted({*fresh, *some}), value)
            return store.commit(staging.stage_overwrite(table, whole, properties(), type_key=TYPE))
        case 4:
            staged_or_none = stage_compaction(table, properties())
            return table if staged_or_none is None else store.commit(staged_or_none)
        case 5:
            drifted = upsert(store, table, fresh, value + 100)  # a write that is undone
            back = staging.stage_restore(drifted, table.ref.version, table.rows, properties())
            return store.commit(back)
        case 6 if table.rows:
            return index(store, table, "id")
    return upsert(store, table, sorted({*fresh, *some}), value)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_pairs_name_every_difference_and_the_rows_that_make_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = new_store(tmp_path)
    heads = [insert(store, create(store), [f"k{n:02d}" for n in range(8)])]
    published = [heads[0].ref]
    for number in range(STEPS):
        at = rng.randrange(len(heads))
        if rng.random() < 0.2:
            heads.append(fork(store, store.open(rng.choice(published)), f"01FORK{number:02d}"))
        else:
            heads[at] = step(store, heads[at], rng)
            published.append(heads[at].ref)

    for _ in range(60):
        old, new = rng.choice(published), rng.choice(published)
        check(store, old, new)


def check(store: TableStore, old: TableRef, new: TableRef) -> None:
    found = row_pairs(store, old, new)
    named = found.pairs.to_pylist()
    ids = [pair["id"] for pair in named]
    assert ids == sorted(set(ids))
    sides = {}
    for ref, column in ((old, OLD), (new, NEW)):
        scanned = store.open(ref).scan(["id", "n"], with_row_id=True).to_pylist()
        sides[column] = {row["id"]: (row["_rowid"], row["n"]) for row in scanned}
        for pair in named:
            assert sides[column].get(pair["id"], (None,))[0] == pair[column], (old, new, pair)
    for id_ in sides[OLD].keys() | sides[NEW].keys():
        if id_ not in ids:
            assert sides[OLD][id_] == sides[NEW][id_], (old, new, id_)


def test_only_what_was_touched_is_named(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    table = insert(store, create(store), [f"k{n}" for n in range(100)])
    branch = fork(store, table, "01BRANCH")
    branch = upsert(store, branch, ["k1", "new"], 1)
    main = upsert(store, table, ["k2"], 2)
    compacted = stage_compaction(main, properties())
    assert compacted is not None

    pairs = row_pairs(store, store.commit(compacted).ref, branch.ref)

    assert pairs.pairs["id"].to_pylist() == ["k1", "k2", "new"]
    assert common_ancestor(store, main.ref, branch.ref) == table.ref


def test_a_side_that_does_not_exist_shares_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    table = insert(store, create(store), ["a", "b"])

    pairs = row_pairs(store, table.ref, None)

    assert pairs.pairs["id"].to_pylist() == ["a", "b"]
    assert pairs.pairs[NEW].null_count == 2


def test_versions_that_are_the_same_differ_in_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    table = insert(store, create(store), ["a", "b"])

    assert not len(row_pairs(store, table.ref, table.ref))
    assert not len(row_pairs(store, table.ref, fork(store, table, "01BRANCH").ref))
