"""Backfill: the values of a new property in existing rows (null, a constant or computed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType, Property
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_integers, stored_array


@dataclass(frozen=True, slots=True)
class PropertyBackfill:
    """The values of ``item``, which ``newer`` has and ``older`` lacks, for rows of ``older``."""

    item: Property
    newer: NodeType | EdgeType
    older: NodeType | EdgeType

    @property
    def gives_values(self) -> bool:
        return self.item.fill is not None or self.item.computed is not None

    def reads(self) -> set[str]:
        """The columns of the older rows that the values are computed from."""
        names, parts = self._sources()
        return set(names.values()).union(*(part.reads() for part in parts.values()))

    def values(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """One value per row; null without a fill value and an expression."""
        kind, computed = self.item.type, self.item.computed
        if computed is None:
            if self.item.fill is None:
                return pa.nulls(rows.num_rows)
            return stored_array(kind, [self.item.fill]).take(np.zeros(rows.num_rows, np.int64))
        names, parts = self._sources()
        older = self.older.properties
        columns = {key: _operands(rows[n], older[n].type) for key, n in names.items()}
        columns |= {key: _operands(p.values(rows), p.item.type) for key, p in parts.items()}
        for key in computed.sources():  # sources that ``newer`` does not have were dropped
            columns.setdefault(key, [None] * rows.num_rows)
        return stored_array(kind, computed.values(kind, columns, rows.num_rows))

    def _sources(self) -> tuple[dict[str, str], dict[str, PropertyBackfill]]:
        """The operands of the expression: stored columns, and properties with a backfill."""
        if self.item.computed is None:
            return {}, {}
        wanted = self.item.computed.sources()
        stored = {item.property_id: name for name, item in self.older.properties.items()}
        newer = {item.property_id: item for item in self.newer.properties.values()}
        return (
            {key: stored[key] for key in wanted if key in stored},
            {
                key: PropertyBackfill(newer[key], self.newer, self.older)
                for key in wanted
                if key not in stored and key in newer
            },
        )


def _operands(column: pa.Array | pa.ChunkedArray, kind: PropertyType) -> list[object]:
    """Stored values as operands of expressions: dates and instants as numbers."""
    return list(as_integers(column, kind.scalar.family).to_pylist())
