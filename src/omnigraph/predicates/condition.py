"""A condition on stored rows: ``column operator value``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.model.types import PropertyType
from omnigraph.predicates.compare import compare
from omnigraph.predicates.table_filter import lookup_filter
from omnigraph.predicates.values import Literal, Mask, column_values

BLOCK_ROWS = 1 << 20
"""Rows that are compared at a time, which bounds the size of temporary copies."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison with a stored value; null, on either side, never matches."""

    column: str
    kind: PropertyType
    operator: ComparisonOperator
    value: Any

    @property
    def can_match(self) -> bool:
        return self.value is not None

    def filter(self) -> str | None:
        """A table filter that keeps at least the matching rows; None when a scan is needed."""
        return lookup_filter(self.column, self.kind, self.operator, self.value)

    def mask(self, rows: pa.Table) -> Mask:
        """Which rows match."""
        column, literal = rows[self.column], Literal(self.value, self.kind)
        found = [np.zeros(0, dtype=bool)]
        for start in range(0, rows.num_rows, BLOCK_ROWS):
            part = column_values(column.slice(start, BLOCK_ROWS), self.kind)
            found.append(compare(self.operator, part, literal, len(part)))
        return np.concatenate(found)

    def matching(self, rows: pa.Table) -> pa.Table:
        """The rows that match."""
        return rows.filter(pa.array(self.mask(rows)))
