"""Of two writers that staged on one version exactly one commits, at pinned + 1.

Depends on it: everything. ``storage/lance/staging/rows.py`` builds the transactions, and
``TableStore.commit`` trusts Lance to refuse the second one; unique ids, endpoints and row counts
trust the commit.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.guards.support import SHAPES, TYPE, content, insert, properties, rows
from tests.support.stores import open_tables

from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, TableStore

Stage = Callable[[PinnedTable], StagedWrite]


def stage_insert(table: PinnedTable) -> StagedWrite:
    return staging.stage_insert(table, rows(["new"], 1), properties(), type_key=TYPE)


def stage_upsert(table: PinnedTable) -> StagedWrite:
    return staging.stage_upsert(table, rows(["a", "new"], 2), properties(), type_key=TYPE)


def stage_update(table: PinnedTable) -> StagedWrite:
    return staging.stage_update(table, rows(["a"], 3), properties(), type_key=TYPE)


def stage_update_last(table: PinnedTable) -> StagedWrite:
    """Of another fragment than ``stage_update``, where there are several."""
    last = max(content(table))
    return staging.stage_update(table, rows([last], 4), properties(), type_key=TYPE)


def stage_delete(table: PinnedTable) -> StagedWrite:
    return staging.stage_delete(table, pa.array(["a"]), properties())


def stage_delete_all(table: PinnedTable) -> StagedWrite:
    return staging.stage_delete(table, pa.array(list(content(table))), properties())


def stage_change(table: PinnedTable) -> StagedWrite:
    gone = pa.array(["a"])
    return staging.stage_change(table, rows(["d", "new"], 5), gone, properties(), type_key=TYPE)


def stage_overwrite(table: PinnedTable) -> StagedWrite:
    return staging.stage_overwrite(table, rows(["a", "new"], 6), properties(), type_key=TYPE)


def stage_overwrite_by_nothing(table: PinnedTable) -> StagedWrite:
    return staging.stage_overwrite(table, rows([]), properties(), type_key=TYPE)


ANY_TABLE: list[Stage] = [
    stage_insert,
    stage_upsert,
    stage_change,
    stage_overwrite,
    stage_overwrite_by_nothing,
]
WITH_ROWS: list[Stage] = [stage_update, stage_update_last, stage_delete, stage_delete_all]
PAIRS = [
    pytest.param(shape, first, second, id=f"{name}-{first.__name__[6:]}-{second.__name__[6:]}")
    for name, shape in SHAPES.items()
    for kinds in [ANY_TABLE if name.startswith("empt") else ANY_TABLE + WITH_ROWS]
    for first in kinds
    for second in kinds
]


@pytest.mark.parametrize(("shape", "first", "second"), PAIRS)
def test_the_second_of_two_staged_writes_is_refused(
    store: TableStore, shape: Callable[[TableStore], PinnedTable], first: Stage, second: Stage
) -> None:
    pinned = shape(store)
    winner, loser = first(pinned), second(pinned)

    landed = store.commit(winner)
    after_first = content(landed)
    with pytest.raises(CommitRefused):
        store.commit(loser)

    assert landed.ref == pinned.ref.at(pinned.ref.version + 1)
    assert landed.rows == winner.rows_after
    assert store.newest_from(pinned.ref) == landed.ref
    # Seen with other eyes, too: from files, not from this store's handles.
    assert content(_reopened(store, landed)) == after_first


@pytest.mark.parametrize("compaction_first", [True, False])
@pytest.mark.parametrize("shape", [SHAPES["several_fragments"], SHAPES["on_a_branch"]])
@pytest.mark.parametrize("kind", ANY_TABLE + WITH_ROWS)
def test_compaction_and_a_write_exclude_each_other(
    store: TableStore,
    shape: Callable[[TableStore], PinnedTable],
    kind: Stage,
    compaction_first: bool,
) -> None:
    """Depends on it: ``maintenance/upkeep.py`` compacts while others write."""
    pinned = shape(store)
    compaction, write = stage_compaction(pinned, properties()), kind(pinned)
    assert compaction is not None
    winner, loser = (compaction, write) if compaction_first else (write, compaction)

    landed = store.commit(winner)
    with pytest.raises(CommitRefused):
        store.commit(loser)

    assert landed.ref.version == pinned.ref.version + 1
    assert store.newest_from(pinned.ref) == landed.ref
    assert len(content(landed)) == winner.rows_after


@pytest.mark.parametrize("kind", ANY_TABLE + WITH_ROWS)
def test_a_stale_write_is_refused_after_any_number_of_versions(
    store: TableStore, kind: Stage
) -> None:
    """Also when the versions in between cancelled each other out and the content is the same."""
    pinned = SHAPES["several_fragments"](store)
    stale = kind(pinned)
    table = insert(store, pinned, ["passing"])
    table = store.commit(staging.stage_delete(table, pa.array(["passing"]), properties()))
    compaction = stage_compaction(table, properties())
    assert compaction is not None
    table = store.commit(compaction)
    before = content(table)

    with pytest.raises(CommitRefused):
        store.commit(stale)

    assert store.newest_from(pinned.ref) == table.ref
    assert content(_reopened(store, table)) == before == content(pinned)


@pytest.mark.parametrize("kind", ANY_TABLE + WITH_ROWS)
def test_committing_the_same_staged_write_twice_lands_once(store: TableStore, kind: Stage) -> None:
    """Depends on it: a client that repeats a request whose answer was lost.

    Lance refuses the repetition because the first one is in the way; ``TableStore.commit``
    recognises its own transaction and reports the success that it was.
    """
    pinned = SHAPES["several_fragments"](store)
    staged = kind(pinned)

    first, second = store.commit(staged), store.commit(staged)

    assert first.ref == second.ref
    assert store.newest_from(pinned.ref) == first.ref
    assert len(content(second)) == staged.rows_after


def _reopened(store: TableStore, table: PinnedTable) -> PinnedTable:
    return open_tables(store.location, store.objects).open(table.ref)
