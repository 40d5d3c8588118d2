"""Stored entities of one snapshot, as checks and writers read them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.storage.lance.lookup import lookup_filter
from omnigraph.storage.lance.tables import PinnedTable


class StoredSnapshot:
    """Reads the tables of one snapshot; implements ``constraints.StoredTypes``."""

    def __init__(self, repository: Repository, snapshot: SnapshotPins) -> None:
        self._tables = repository.tables
        self._snapshot = snapshot

    def table(self, key: str) -> PinnedTable:
        return self._tables.open(self._snapshot.pin(key).ref)

    def count(self, key: str) -> int:
        return self._snapshot.pin(key).rows

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        return self.table(key).scan(list(columns))

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows with one of these values: few values by a filter that can use an index, many by a
        scan."""
        table = self.table(key)
        condition = lookup_filter(table, column, values)
        wanted = list(dict.fromkeys((*columns, column)))
        found = table.scan(wanted, condition)
        if condition is None:
            given = found[column]
            if pa.types.is_floating(values.type):  # both zeros are one value
                given, values = pc.add(given, 0.0), pc.add(values, 0.0)
            found = found.filter(pc.is_in(given, value_set=values.cast(given.type)))
        return found.select(list(columns))
