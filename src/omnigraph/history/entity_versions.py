"""Reads one entity from versions of its table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.snapshots.diff import image_of
from omnigraph.snapshots.images import images
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.row_versions import WRITTEN
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """An entity in one version of its table."""

    written: int
    """The version of the table that wrote it."""
    image: dict[str, Any]
    values: dict[str, str]
    """Exact JSON spellings, by property identity (endpoints by name)."""


def search(
    owner: NodeType | EdgeType,
    table: PinnedTable,
    id: str,
    fragment_ids: Sequence[int] | None = None,
) -> EntityVersion | None:
    """The entity in a version, or in some fragments of it; None if it is not there."""
    condition = membership("id", pa.array([id]))
    rows = table.scan(_columns(owner), condition, with_row_id=True, fragment_ids=fragment_ids)
    return next(_versions(owner, table, rows), None)


def read_versions(
    owner: NodeType | EdgeType, parts: Sequence[tuple[PinnedTable, Sequence[int]]], id: str
) -> list[EntityVersion | None]:
    """The entity in some small fragments of each of several versions, in one scan.

    The versions belong to one dataset and have the same columns; no fragment may be given twice.
    Blobs are read from the first version, so types with blobs are read one version at a time.
    """
    (table, fragment_ids), *older = parts
    rows = table.scan(
        _columns(owner),
        with_row_id=True,
        with_row_address=True,
        fragment_ids=fragment_ids,
        older=older,
        batch_rows=sum(t.fragments[f].physical_rows for t, ids in parts for f in ids),
    )
    rows = rows.filter(pc.equal(rows["id"], id))
    holders = [address >> FRAGMENT_SHIFT for address in rows[ADDRESS].to_pylist()]
    found = dict(zip(holders, _versions(owner, table, rows), strict=True))
    return [next((found[f] for f in ids if f in found), None) for _, ids in parts]


def _columns(owner: NodeType | EdgeType) -> list[str]:
    return [*(column.name for column in owner.columns()), WRITTEN]


def _versions(
    owner: NodeType | EdgeType, table: PinnedTable, rows: pa.Table
) -> Iterator[EntityVersion]:
    for written, row in zip(rows[WRITTEN].to_pylist(), images(owner, table, rows), strict=True):
        values = {
            column.property_id or column.name: json.dumps(row[column.name])
            for column in owner.columns()
            if column.name != "id"
        }
        yield EntityVersion(written, image_of(owner, row), values)
