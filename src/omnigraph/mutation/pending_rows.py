"""What a mutation has done so far: pending rows over a pinned snapshot.

Later statements see earlier ones: an entity that was changed counts in its newest version only, and
its stored version no longer matches anything.
"""

from __future__ import annotations

import os
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.image import last_per_id, without
from omnigraph.errors import ResourceLimit
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.predicates.condition import Condition
from omnigraph.prepare.entity_rows import Row, rows_to_arrow
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

MUTATION_BYTES_MAX: Final = 2 << 30
"""Rows held in memory by one mutation, unless OMNIGRAPH_MUTATION_BYTES_MAX says otherwise."""


class PendingType:
    """Pending rows of one type."""

    def __init__(self, owner: NodeType | EdgeType, table: PinnedTable) -> None:
        self.owner = owner
        self._table = table
        self._rows: pa.Table | None = None
        self._inserted: list[Row] = []
        self.only_fresh = True

    @property
    def rows(self) -> pa.Table | None:
        """All pending rows, one per id, the newest version each."""
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
        """Newer versions of entities."""
        before = self.rows
        self.only_fresh = False
        if before is not None:
            rows = last_per_id(pa.concat_tables([before, rows.cast(before.schema)]))
        self._rows = rows
        _require_memory(rows.nbytes)

    def matching(self, condition: Condition) -> pa.Table | None:
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

    def _stored(self, condition: Condition, pending: pa.Table | None) -> pa.Table | None:
        """Matching rows as stored, unless a pending version hides them."""
        if not self._table.rows:
            return None
        wanted = list(dict.fromkeys(("id", condition.column)))
        seen = self._table.scan(wanted, condition.filter(), with_row_id=True)
        seen = condition.matching(seen)
        if pending is not None:
            visible = without(as_array(seen["id"]), as_array(pending["id"]))
            seen = seen.filter(pc.is_in(seen["id"], value_set=visible))
        if not seen.num_rows:
            return None
        rows = complete_rows(self._table, seen[ROW_ID].to_pylist())
        _require_memory(rows.nbytes)
        return rows


def matching_ids(table: PinnedTable, condition: Condition) -> Any:
    """The ids of stored entities that match."""
    if not condition.can_match or not table.rows:
        return pa.array([], type=pa.string())
    wanted = list(dict.fromkeys(("id", condition.column)))
    seen = condition.matching(table.scan(wanted, condition.filter()))
    return as_array(seen["id"])


def _require_memory(size: int) -> None:
    limit = int(os.environ.get("OMNIGRAPH_MUTATION_BYTES_MAX", MUTATION_BYTES_MAX))
    if size > limit:
        raise ResourceLimit(
            "bytes held in memory by a mutation",
            limit,
            size,
            remedy="Change fewer entities at once, do it on Spark, or raise "
            "OMNIGRAPH_MUTATION_BYTES_MAX.",
        )
