"""What updates and loads read by: rows by stable id, blobs by stable id, JSON as strict as ours."""

from __future__ import annotations

import io
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyarrow import json as arrow_json
from tests.guards.support import TYPE, content, fork, properties, several_fragments, upsert

from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.tables import TableStore


@pytest.mark.parametrize("on_branch", [False, True])
def test_rows_are_taken_by_stable_id_in_the_order_asked_for(
    store: TableStore, on_branch: bool
) -> None:
    """Depends on it: every update. Rewritten rows move, and their ids stay."""
    table = several_fragments(store)
    if on_branch:
        table = fork(store, table, "01BRANCH")
    table = upsert(store, table, ["b", "d", "new"], 7)
    table = store.commit(staging.stage_delete(table, pa.array(["a"]), properties()))
    found = table.scan(["id"], with_row_id=True)
    ids = list(reversed(found["_rowid"].to_pylist()))
    taken = table.take(ids, ["id", "n"])
    assert taken["id"].to_pylist() == list(reversed(found["id"].to_pylist()))
    assert dict(zip(taken["id"].to_pylist(), taken["n"].to_pylist(), strict=True)) == content(table)


def test_blobs_are_read_by_stable_id_after_their_rows_have_moved(store: TableStore) -> None:
    """Depends on it: every update of a type with blobs."""
    schema = pa.schema([pa.field("id", pa.string()), lance.blob_field("body")])
    table = store.create("nodes/blobs", schema, properties())
    for id, body in (("a", b"one"), ("b", b"")):
        rows = pa.table({"id": [id], "body": lance.blob_array([body])})
        table = store.commit(staging.stage_insert(table, rows, properties(), type_key=TYPE))
    changed = pa.table({"id": ["a"], "body": lance.blob_array([b"two"])})
    table = store.commit(staging.stage_upsert(table, changed, properties(), type_key=TYPE))
    found = table.scan(["id"], with_row_id=True)
    by_id = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
    read = table.dataset.read_blobs("body", ids=[by_id["b"], by_id["a"]])
    assert [value for _, value in read] == [b"", b"two"]
    (file,) = table.dataset.take_blobs("body", ids=[by_id["a"]])
    assert file.read() == b"two"


JSON = pa.schema(
    [
        ("a", pa.string()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.struct([("x", pa.int64())])),
    ]
)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":"x","a":"y"}', b'{"d":{"x":1,"x":2}}', b'{"zz":1}', b'{"i":1.0}', b'{"i":"1"}',
        b'{"i":2147483648}', b'{"a":1}', b'{"a":"\\ud800"}', b'{"a":"\t"}', b'{"f":1e999}',
        b'{"f":"1"}', b'{"i":01}', b'{"a":"x",}', b'{"a":"x"} x', b'{"i":true}',
    ],
)  # fmt: skip
def test_arrow_refuses_the_json_that_a_strict_load_refuses(line: bytes) -> None:
    """Depends on it: the fast reading of NDJSON, which re-reads what Arrow refuses."""
    with pytest.raises(pa.ArrowInvalid):
        _read(line)


def test_arrow_accepts_what_the_fast_reading_must_check_itself() -> None:
    """When one of these turns red, a check in ``ingest/ndjson.py`` has become needless."""
    assert _read(b'{"a":"x"}{"a":"y"}').num_rows == 2
    assert _read(b'{"a":\n"x"}').num_rows == 1
    assert _read(b'{"f":NaN}')["f"][0].as_py() != 0
    assert _read(b'{"d":null}')["d"].null_count == _read(b'{"a":"x"}')["d"].null_count == 1
    assert _read(b'\xef\xbb\xbf{"a":"x"}').num_rows == 1


def _read(data: bytes) -> Any:
    options = arrow_json.ParseOptions(explicit_schema=JSON, unexpected_field_behavior="error")
    return arrow_json.read_json(io.BytesIO(data), parse_options=options)
