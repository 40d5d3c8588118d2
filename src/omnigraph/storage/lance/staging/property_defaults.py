"""What rows have of a property that is newer than they are: nothing, a value, a computed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType, Property
from omnigraph.model.types import PropertyType
from omnigraph.storage.lance.arrays import as_integers, stored_array


@dataclass(frozen=True, slots=True)
class OlderRows:
    """The values of ``item``, which ``newer`` has and ``older`` has not, for rows of ``older``."""

    item: Property
    newer: NodeType | EdgeType
    older: NodeType | EdgeType

    @property
    def gives_values(self) -> bool:
        return self.item.fill is not None or self.item.computed is not None

    def reads(self) -> set[str]:
        """The columns of the older rows that the values are made of."""
        names, parts = self._sources()
        return set(names.values()).union(*(part.reads() for part in parts.values()))

    def values(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """One value per row; all null when entities older than the property got none."""
        kind, computed = self.item.type, self.item.computed
        if computed is None:
            if self.item.fill is None:
                return pa.nulls(rows.num_rows)
            return stored_array(kind, [self.item.fill]).take(np.zeros(rows.num_rows, np.int64))
        names, parts = self._sources()
        older = self.older.properties
        columns = {key: _operands(rows[n], older[n].type) for key, n in names.items()}
        columns |= {key: _operands(p.values(rows), p.item.type) for key, p in parts.items()}
        for key in computed.sources():  # what was dropped since is not there any more
            columns.setdefault(key, [None] * rows.num_rows)
        return stored_array(kind, computed.values(kind, columns, rows.num_rows))

    def _sources(self) -> tuple[dict[str, str], dict[str, OlderRows]]:
        """What an expression is made of: columns, and properties that are newer than the rows."""
        if self.item.computed is None:
            return {}, {}
        wanted = self.item.computed.sources()
        stored = {item.property_id: name for name, item in self.older.properties.items()}
        newer = {item.property_id: item for item in self.newer.properties.values()}
        return (
            {key: stored[key] for key in wanted if key in stored},
            {
                key: OlderRows(newer[key], self.newer, self.older)
                for key in wanted
                if key not in stored and key in newer
            },
        )


def _operands(column: pa.Array | pa.ChunkedArray, kind: PropertyType) -> list[object]:
    """Stored values as expressions have them: dates and instants are numbers."""
    return list(as_integers(column, kind.scalar.family).to_pylist())
