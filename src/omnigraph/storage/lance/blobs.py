"""Blob columns: bytes that the graph owns, and references to bytes outside it.

A scan of a blob column returns descriptors (locations of bytes), which cannot be written again.
``complete_rows`` reads rows in a form that can be staged. A stored value is ``bytes``
(owned) or ``str`` (the URI of a reference); null stays null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import lance
import pyarrow as pa

from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.row_delta import gather
from omnigraph.storage.lance.tables import PinnedTable

EXTERNAL_KIND: Final = 3
"""The descriptor kind of a reference to an object outside the table."""


def is_blob_type(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "lance.blob.v2"


def blob_array(values: Sequence[bytes | str | None]) -> pa.Array:
    """Stored values as a column that can be written."""
    return lance.blob_array(
        [lance.Blob.from_uri(value) if isinstance(value, str) else value for value in values]
    )


def blob_values(
    table: PinnedTable, column: str, descriptors: Sequence[Any], row_ids: Sequence[int]
) -> list[bytes | str | None]:
    """The stored values behind scanned descriptors, in their order."""
    values: list[bytes | str | None] = [None] * len(descriptors)
    owned = []
    for at, descriptor in enumerate(descriptors):
        if descriptor is None:
            continue
        if descriptor["kind"] == EXTERNAL_KIND:
            values[at] = descriptor["blob_uri"]
        else:
            owned.append(at)
    if owned:
        with translated(f"reading blobs of {table.ref.path}"):
            found = table.dataset.read_blobs(column, ids=[row_ids[at] for at in owned])
        for at, (_, value) in zip(owned, found, strict=True):
            values[at] = value
    return values


def complete_rows(table: PinnedTable, row_ids: Sequence[int]) -> pa.Table:
    """Whole rows by row id, with blobs as values, so that they can be staged again."""
    rows = gather(table, pa.array(row_ids, pa.uint64()), table.schema.names)
    columns = {}
    for field in table.schema:
        column: Any = rows[field.name]
        if is_blob_type(field.type):
            column = blob_array(blob_values(table, field.name, column.to_pylist(), row_ids))
        columns[field.name] = column
    fields = [field.with_nullable(True).remove_metadata() for field in table.schema]
    return pa.table(columns, schema=pa.schema(fields))
