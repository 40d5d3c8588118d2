"""The uncommitted rows of a mutation over a pinned snapshot.

Later statements see the effects of earlier ones: of a changed entity only the newest version
matches a condition, not the stored one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.image import last_per_id, without
from omnigraph.errors import ResourceLimit
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.predicates.condition import RowCondition
from omnigraph.prepare.entity_rows import Row, rows_to_arrow
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable


class PendingType:
    """Pending rows of one type."""

    def __init__(self, owner: NodeType | EdgeType, table: PinnedTable, bytes_max: int) -> None:
        self.owner = owner
        self._table = table
        self._bytes_max = bytes_max
        self._rows: pa.Table | None = None
        self._inserted: list[Row] = []
        self.only_fresh = True

    @property
    def rows(self) -> pa.Table | None:
        """All pending rows, the newest version of each id."""
        if self._inserted:
            added = rows_to_arrow(self.owner, self._inserted)
            self._inserted = []
            both = added if self._rows is None else pa.concat_tables([self._rows, added])
            self._rows = last_per_id(both)
        return self._rows

    def insert(self, row: Row, *, fresh: bool) -> None:
        self._inserted.append(row)
        self.only_fresh = self.only_fresh and fresh

    def put(self, rows: pa.Table) -> None:
        """Add newer versions of entities."""
        before = self.rows
        self.only_fresh = False
        if before is not None:
            rows = last_per_id(pa.concat_tables([before, rows.cast(before.schema)]))
        self._rows = rows
        self._require_memory(rows.nbytes)

    def matching(self, condition: RowCondition) -> pa.Table | None:
        """The newest version of every entity that matches; None when there is none."""
        if not condition.can_match:
            return None
        found = []
        pending = self.rows
        stored = self._stored(condition, pending)
        if stored is not None:
            found.append(stored)
        if pending is not None:
            matched = condition.matching(pending)
            if matched.num_rows:
                found.append(matched.cast(stored.schema) if stored is not None else matched)
        return pa.concat_tables(found) if found else None

    def _stored(self, condition: RowCondition, pending: pa.Table | None) -> pa.Table | None:
        """Matching stored rows without a pending version."""
        if not self._table.rows:
            return None
        wanted = list(dict.fromkeys(("id", *condition.columns)))
        seen = self._table.scan(wanted, condition.filter(), with_row_id=True)
        seen = condition.matching(seen)
        if pending is not None:
            visible = without(as_array(seen["id"]), as_array(pending["id"]))
            seen = seen.filter(pc.is_in(seen["id"], value_set=visible))
        if not seen.num_rows:
            return None
        rows = complete_rows(self._table, seen[ROW_ID].to_pylist())
        self._require_memory(rows.nbytes)
        return rows

    def _require_memory(self, size: int) -> None:
        if size > self._bytes_max:
            raise ResourceLimit(
                "bytes held in memory by a mutation",
                self._bytes_max,
                size,
                remedy="Change fewer entities at once, load them on Spark, or raise "
                "OMNIGRAPH_MUTATION_BYTES_MAX.",
            )


def matching_ids(table: PinnedTable, condition: RowCondition) -> Any:
    """The ids of stored entities that match."""
    if not condition.can_match or not table.rows:
        return pa.array([], type=pa.string())
    wanted = list(dict.fromkeys(("id", *condition.columns)))
    seen = condition.matching(table.scan(wanted, condition.filter()))
    return as_array(seen["id"])
