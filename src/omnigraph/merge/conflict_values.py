"""The values of entities in conflict on the sides of a merge, for the conflict report.

Columns have the target's names, the ends of an edge are ``from`` and ``to``, and a blob is shown as
its length and digest, which suffice to distinguish two blobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.snapshots.entity_delta import Side
from omnigraph.snapshots.equality import comparable
from omnigraph.snapshots.images import images
from omnigraph.storage.lance.row_delta import gather

Shown = dict[str, Any] | None


def shown_names(owner: NodeType | EdgeType, columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(owner.shown_name(column) for column in columns))


class ConflictValues:
    """The values of entities on one side, by their position among the given row ids."""

    def __init__(
        self, side: Side | None, owner: NodeType | EdgeType, row_ids: Sequence[int | None]
    ) -> None:
        self._owner = owner
        self._found: list[Shown] = [None] * len(row_ids)
        present = [at for at, row in enumerate(row_ids) if row is not None]
        if side is None or not present:
            return
        wanted = pa.array([row_ids[at] for at in present], pa.uint64())
        for at, image in zip(present, _images(side, owner, wanted), strict=True):
            self._found[at] = image

    def of(self, at: int, columns: Collection[str]) -> Shown:
        """Some columns of one entity; None where the side does not have it."""
        found = self._found[at]
        if found is None:
            return None
        chosen = sorted(column for column in columns if column in found)
        return {self._owner.shown_name(column): found[column] for column in chosen}


def _images(side: Side, owner: NodeType | EdgeType, row_ids: Any) -> list[dict[str, Any]]:
    """Rows of a side as values by column name of ``owner``."""
    rows = gather(side.table, row_ids, side.columns)
    blobs = [name for name, item in side.owner.properties.items() if item.type.is_blob]
    plain = images(side.owner, side.table, rows.drop_columns(blobs))
    digests = comparable(side.table, rows)
    for name in blobs:
        for image, digest in zip(plain, digests[name].to_pylist(), strict=True):
            image[name] = digest
    names = {item.property_id: item.name for item in side.owner.properties.values()}
    columns = {
        column.name: column.name if column.property_id is None else names.get(column.property_id)
        for column in owner.columns()
    }
    return [
        {name: image[old] for name, old in columns.items() if old is not None} for image in plain
    ]
