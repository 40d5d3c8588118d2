"""Small tables for the guard tests, made and changed by the same code that the engine uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.stores import open_tables

from omnigraph.storage.lance.arrow_schema import PRIMARY_KEY
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.tables import OPERATION_PROPERTY, PinnedTable, StagedWrite, TableStore
from omnigraph.storage.locations import parse_location

PATH = "nodes/guarded"
TYPE = "node:Guarded"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("n", pa.int64()),
        pa.field("s", pa.string()),
    ]
)


def new_store(directory: Path) -> TableStore:
    """A table store on local disk; a store opened twice stands for two processes."""
    location = parse_location(directory)
    return open_tables(location)


def rows(ids: Sequence[str], n: int = 0) -> pa.Table:
    """Rows with these ids; ``s`` spells ``n``."""
    return pa.table(
        {"id": list(ids), "n": [n] * len(ids), "s": [f"s{n}"] * len(ids)}, schema=SCHEMA
    )


def properties(operation: str = "guard") -> dict[str, str]:
    return {OPERATION_PROPERTY: operation}


def create(store: TableStore, path: str = PATH) -> PinnedTable:
    return store.create(path, SCHEMA, properties())


def insert(store: TableStore, table: PinnedTable, ids: Sequence[str], n: int = 0) -> PinnedTable:
    """Add one fragment of rows."""
    return store.commit(staging.stage_insert(table, rows(ids, n), properties(), type_key=TYPE))


def upsert(store: TableStore, table: PinnedTable, ids: Sequence[str], n: int) -> PinnedTable:
    return store.commit(staging.stage_upsert(table, rows(ids, n), properties(), type_key=TYPE))


def index(store: TableStore, table: PinnedTable, column: str, kind: str = "BTREE") -> PinnedTable:
    return store.commit(stage_indexes(table, [IndexSpec(column, kind)], properties()))


def fork(store: TableStore, table: PinnedTable, name: str) -> PinnedTable:
    return store.open(store.fork(table.ref, name))


def staged_by_hand(table: PinnedTable, operation: Any) -> StagedWrite:
    """A transaction of our own making, for what the engine never does."""
    from lance import Transaction

    made = Transaction(table.ref.version, operation, transaction_properties=properties())
    return StagedWrite(table.ref, made, "guard", rows_after=0)


def content(table: PinnedTable) -> dict[str, int]:
    """id to n; fails when an id is stored twice."""
    found = table.scan(["id", "n"])
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids)), f"an id is stored twice: {sorted(ids)}"
    return dict(zip(ids, found["n"].to_pylist(), strict=True))


# -- shapes ---------------------------------------------------------------------------------------


def empty(store: TableStore) -> PinnedTable:
    return create(store)


def single_row(store: TableStore) -> PinnedTable:
    return insert(store, create(store), ["a"])


def one_fragment(store: TableStore) -> PinnedTable:
    return insert(store, create(store), ["a", "b", "c", "d"])


def several_fragments(store: TableStore) -> PinnedTable:
    table = create(store)
    for ids in (["a", "b"], ["c"], ["d", "e"]):
        table = insert(store, table, ids)
    return table


def emptied(store: TableStore) -> PinnedTable:
    """A table that had rows once: it has no fragment left, but fragment ids were used."""
    table = single_row(store)
    return store.commit(staging.stage_delete(table, pa.array(["a"]), properties()))


def indexed(store: TableStore) -> PinnedTable:
    return index(store, several_fragments(store), "id")


def on_a_branch(store: TableStore) -> PinnedTable:
    return fork(store, several_fragments(store), "01BRANCH")


def empty_on_a_branch(store: TableStore) -> PinnedTable:
    return fork(store, empty(store), "01BRANCH")


def on_a_nested_branch(store: TableStore) -> PinnedTable:
    first = insert(store, on_a_branch(store), ["x"])
    return fork(store, first, "02BRANCH")


SHAPES = {
    shape.__name__: shape
    for shape in (
        empty,
        emptied,
        single_row,
        one_fragment,
        several_fragments,
        indexed,
        empty_on_a_branch,
        on_a_branch,
        on_a_nested_branch,
    )
}
