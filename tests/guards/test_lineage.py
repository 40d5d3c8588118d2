"""Fork points and row addresses, read from Lance's files.

Depends on it: ``storage.delta`` and ``storage.places``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.guards.support import fork, insert, properties, several_fragments, upsert

from omnigraph.storage.lance.row_addresses import addresses
from omnigraph.storage.lance.row_delta import gather
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import PinnedTable, TableStore


def test_the_ref_of_a_fork_says_where_it_began(store: TableStore) -> None:
    table = several_fragments(store)
    first = insert(store, fork(store, table, "01FIRST"), ["x"])
    second = fork(store, first, "02SECOND")

    assert store.fork_point(first.ref) == table.ref
    assert store.fork_point(second.ref) == first.ref


def check_places(table: PinnedTable) -> None:
    rows = table.scan(["id"], with_row_id=True, with_row_address=True)
    row_ids = rows["_rowid"].combine_chunks()
    assert addresses(table, row_ids).tolist() == rows["_rowaddr"].to_pylist()
    some = row_ids.take(np.arange(len(row_ids))[::-1])
    assert gather(table, some, ["id"])["id"].to_pylist() == rows["id"].to_pylist()[::-1]


def test_the_newest_fragment_that_names_a_row_holds_it(store: TableStore) -> None:
    table = several_fragments(store)
    check_places(table)
    for n, ids in enumerate((["a", "e", "new"], ["a"], ["c", "new"]), start=1):
        table = upsert(store, table, ids, n)
        check_places(table)
    branch = upsert(store, fork(store, table, "01BRANCH"), ["b", "other"], 9)
    check_places(branch)
    compacted = stage_compaction(table, properties())
    assert compacted is not None
    table = store.commit(compacted)
    check_places(table)
    table = store.commit(staging.stage_delete(table, pa.array(["a"]), properties()))
    check_places(upsert(store, table, ["a", "b"], 10))


def test_a_filter_on_addresses_is_a_look_up(store: TableStore) -> None:
    table = several_fragments(store)
    plan = table.dataset.scanner(columns=["id"], filter="_rowaddr IN (0, 1)").explain_plan()
    assert "full_filter=--" in plan
    assert "OneShotStream" in plan
