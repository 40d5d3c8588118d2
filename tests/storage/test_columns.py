"""Column changes keep data, row ids and version stamps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.support.stores import open_tables

from omnigraph.lang.schema import accept_schema
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.field_ids import FieldSchema
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.staging.columns import (
    ColumnChange,
    fill_in_process,
    hidden_name,
    stage_columns,
)
from omnigraph.storage.lance.staging.rows import stage_delete, stage_insert, stage_update
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.locations import parse_location

STAMPS = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("age", pa.int32(), nullable=False, metadata={"omnigraph:property_id": "A"}),
        pa.field("name", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.list_(pa.float32(), 2)),
    ]
)


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    location = parse_location(tmp_path)
    return open_tables(location)


def rows(*ids: str) -> pa.Table:
    made = [
        {"id": i, "age": n, "name": f"n-{i}", "tags": [i], "place": [n, n]}
        for n, i in enumerate(ids)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


@pytest.fixture
def table(store: TableStore) -> PinnedTable:
    """Two fragments, a row that was replaced, and one that is gone."""
    made = store.create("t", SCHEMA, {}, rows("a", "b", "c"))
    made = store.commit(stage_insert(made, rows("d", "e"), {}, type_key="t"))
    made = store.commit(stage_delete(made, pa.array(["b"]), {}))
    return store.commit(stage_update(made, rows("d"), {}, type_key="t"))


def evolve(store: TableStore, table: PinnedTable, *changes: ColumnChange) -> PinnedTable:
    def fork() -> PinnedTable:
        return store.open(store.fork(table.ref, new_ulid()))

    moved = store.commit(stage_columns(store, table, changes, {}, fork, fill_in_process))
    moved.dataset.validate()
    return moved


def stamps(table: PinnedTable) -> list[dict[str, Any]]:
    return list(table.scan(STAMPS, with_row_id=True).to_pylist())


def column(table: PinnedTable, name: str) -> dict[str, Any]:
    found = table.scan(["id", name]).to_pylist()
    return {row["id"]: row[name] for row in found}


def given(value: int) -> PropertyBackfill:
    """What rows have of a property ``note`` that came after them."""
    newer = accept_schema("node T { note: I64 }", mint=new_ulid).nodes["T"]
    item = replace(newer.properties["note"], fill=value)
    return PropertyBackfill(item, newer, replace(newer, properties={}))


CHANGES = {
    "rename": ColumnChange("name", pa.field("title", pa.string())),
    "hide": ColumnChange("tags", pa.field(hidden_name("T"), pa.list_(pa.string()))),
    "drop": ColumnChange("age", None),
    "relax": ColumnChange("age", pa.field("age", pa.int32(), nullable=True)),
    "add": ColumnChange(None, pa.field("note", pa.list_(pa.int64()))),
    "add with a value": ColumnChange(None, pa.field("note", pa.int64(), nullable=False), given(7)),
    "widen": ColumnChange("age", pa.field("age", pa.int64(), nullable=False), cast=True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_no_change_of_columns_writes_a_row(
    store: TableStore, table: PinnedTable, what: str
) -> None:
    moved = evolve(store, table, CHANGES[what])
    assert stamps(moved) == stamps(table)
    change = CHANGES[what]
    kept = {"age", "name", "tags", "place"} - {change.stored}
    for name in kept:
        assert column(moved, name) == column(table, name)
    if change.field is not None and not change.field.name.startswith("#"):
        assert moved.schema.field(change.field.name).type == change.field.type
        assert moved.schema.field(change.field.name).nullable >= change.field.nullable


@pytest.mark.parametrize("what", CHANGES)
def test_writing_and_compacting_go_on_after_a_change(
    store: TableStore, table: PinnedTable, what: str
) -> None:
    moved = evolve(store, table, CHANGES[what])
    more = [{**dict.fromkeys(moved.schema.names), "id": i} for i in ("a", "z")]
    for row in more:
        for field in moved.schema:
            if not field.nullable and field.name != "id":
                row[field.name] = 5 if pa.types.is_integer(field.type) else "x"
    fresh = pa.Table.from_pylist(more, schema=moved.schema)
    moved = store.commit(stage_update(moved, fresh.slice(0, 1), {}, type_key="t"))
    moved = store.commit(stage_insert(moved, fresh.slice(1), {}, type_key="t"))
    before = {row["id"]: row for row in moved.scan().to_pylist()}
    where = moved.dataset.uri
    lance.dataset(where).optimize.compact_files(target_rows_per_fragment=100)
    after = lance.dataset(where).to_table(columns=moved.schema.names).to_pylist()
    assert {row["id"]: row for row in after} == before
    assert set(before) == {"a", "c", "d", "e", "z"}


def test_dropping_a_middle_column_does_not_swap_the_data_of_others(
    store: TableStore, table: PinnedTable
) -> None:
    moved = evolve(store, table, ColumnChange("name", None))
    assert moved.schema.names == ["id", "age", "tags", "place"]
    assert column(moved, "tags") == column(table, "tags")


def test_a_name_can_go_to_another_column_in_one_change(
    store: TableStore, table: PinnedTable
) -> None:
    moved = evolve(
        store,
        table,
        ColumnChange("name", pa.field("title", pa.string())),
        ColumnChange(None, pa.field("name", pa.string())),
    )
    assert column(moved, "title") == column(table, "name")
    assert set(column(moved, "name").values()) == {None}
    assert stamps(moved) == stamps(table)


def test_two_columns_can_swap_names(store: TableStore, table: PinnedTable) -> None:
    moved = evolve(
        store,
        table,
        ColumnChange("name", pa.field("tags", pa.string())),
        ColumnChange("tags", pa.field("name", pa.list_(pa.string()))),
    )
    assert column(moved, "tags") == column(table, "name")
    assert column(moved, "name") == column(table, "tags")


def test_a_hidden_column_comes_back_with_its_data(store: TableStore, table: PinnedTable) -> None:
    hidden = evolve(store, table, CHANGES["hide"])
    assert "tags" not in hidden.schema.names
    again = evolve(store, hidden, ColumnChange(None, pa.field("tags", pa.list_(pa.string()))))
    assert set(map(str, column(again, "tags").values())) == {"None"}
    text_lists = pa.list_(pa.string())
    back = evolve(
        store,
        again,
        ColumnChange("tags", pa.field(hidden_name("U"), text_lists)),
        ColumnChange(hidden_name("T"), pa.field("tags", text_lists)),
    )
    assert column(back, "tags") == column(table, "tags")


def test_an_empty_table_changes_like_any_other(store: TableStore) -> None:
    empty = store.create("t", SCHEMA, {})
    moved = evolve(store, empty, CHANGES["widen"], CHANGES["add with a value"], CHANGES["rename"])
    assert moved.schema.field("age").type == pa.int64()
    assert set(moved.schema.names) == {"id", "age", "title", "tags", "place", "note"}


def test_a_column_that_may_hold_nulls_stays_so(store: TableStore, table: PinnedTable) -> None:
    required = pa.field("name", pa.string(), nullable=False)
    assert evolve(store, table, ColumnChange("name", required)).schema.field("name").nullable


def test_a_schema_survives_being_taken_apart(table: PinnedTable) -> None:
    taken = FieldSchema.of(table.dataset.lance_schema)
    assert taken.to_lance().to_pyarrow() == table.dataset.schema
    assert list(taken.columns()) == SCHEMA.names


def test_an_index_does_not_outlive_the_name_of_its_column(
    store: TableStore, table: PinnedTable
) -> None:
    for column in ("name", "age"):
        table.dataset.create_scalar_index(column, "BTREE", name=f"{column}_btree")
        table = store.open(table.ref.at(table.ref.version + 1))
    moved = evolve(store, table, CHANGES["rename"])
    assert [index.name for index in moved.dataset.describe_indices()] == ["age_btree"]
    assert moved.scan(["id"], "title = 'n-a'")["id"].to_pylist() == ["a"]
    assert stamps(moved) == stamps(table)
