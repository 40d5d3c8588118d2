"""Metadata changes of a table, on which format upgrades rely, and their conflicts."""

from __future__ import annotations

import pytest
from tests.guards.support import PATH, SCHEMA, create, insert, properties

from omnigraph.errors import OmnigraphError
from omnigraph.storage.lance.arrow_schema import PRIMARY_KEY
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging.metadata import stage_column_metadata, stage_schema_metadata
from omnigraph.storage.lance.tables import TableStore

STAMP = {"omnigraph:test": "2"}


def test_two_changes_of_one_key_exclude_each_other_also_with_the_same_value(
    store: TableStore,
) -> None:
    table = insert(store, create(store), ["a"])
    second = stage_schema_metadata(table, STAMP, properties())
    stamped = store.commit(stage_schema_metadata(table, STAMP, properties()))
    assert stamped.schema.metadata[b"omnigraph:test"] == b"2"
    with pytest.raises(CommitRefused):
        store.commit_rebasing(second)


def test_a_change_of_metadata_and_a_write_pass_each_other(store: TableStore) -> None:
    """Why a stamp alone does not keep an older program from publishing (ADR 14)."""
    table = insert(store, create(store), ["a"])
    staged = stage_schema_metadata(table, STAMP, properties())
    written = insert(store, table, ["b"])
    landed = store.commit_rebasing(staged)
    assert landed.ref.version == written.ref.version + 1
    assert landed.rows == 2


def test_a_primary_key_can_be_declared_later_but_only_once_and_for_good(
    store: TableStore,
) -> None:
    bare = SCHEMA.set(0, SCHEMA.field("id").with_metadata({}))
    table = store.create(PATH, bare, properties())
    second = stage_column_metadata(table, "id", PRIMARY_KEY, properties())
    keyed = store.commit(stage_column_metadata(table, "id", PRIMARY_KEY, properties()))
    (key,) = PRIMARY_KEY
    assert keyed.schema.field("id").metadata[key.encode()] == b"true"
    with pytest.raises(CommitRefused):
        store.commit_rebasing(second)
    with pytest.raises(OmnigraphError, match="cannot be changed"):
        store.commit(stage_column_metadata(keyed, "id", {key: "false"}, properties()))
