"""The differences of a type between two states, as rows of the data source.

    spark.read.format("omnigraph").option("type", "Person").option("changes", old).load(uri)

One row per entity that differs by value: ``op`` (insert, update, delete), ``id``, and the entity
``before`` and ``after`` as structs, null where it does not exist. The driver finds the rows that
the two states do not share, at a cost proportional to their number; executors read and compare
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.exchange_types import spark_field, to_exchange
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import from_ipc, to_ipc
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.snapshots.entity_delta import ChangedRows, Op, Side, State, TypeDelta, paired_types
from omnigraph.storage.lance.row_delta import row_pairs
from omnigraph.storage.lance.tables import TableStore

PAIRS_PER_TASK: Final = 65_536


@dataclass(frozen=True, slots=True)
class PairPartition:
    """The row pairs of one task that may differ, as an Arrow IPC stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class _ChangeSide:
    """A type in one of the states: a picklable value."""

    owner: NodeType | EdgeType
    pin: TablePin

    def open(self, store: TableStore) -> Side:
        return Side(self.owner, self.pin, store.open(self.pin.ref))


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """One type in two states; a side is None where the type does not exist."""

    graph: GraphStorage
    old: _ChangeSide | None
    new: _ChangeSide | None
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls, repository: Repository, old: State, new: State, key: str, columns: Sequence[str]
    ) -> ChangesPlan:
        keys = next(
            (pair for pair in paired_types(old.snapshot, new.snapshot) if key in pair), (None, key)
        )
        sides = [
            None if name is None else _ChangeSide(state.schema.type(name), state.snapshot.pin(name))
            for name, state in zip(keys, (old, new), strict=True)
        ]
        known = {name for side in sides if side is not None for name in _readable_names(side.owner)}
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise InvalidInput(f"{key} has no column {unknown[0]!r} that can be read here")
        return cls(GraphStorage.of(repository), sides[0], sides[1], tuple(columns))

    @property
    def _store(self) -> TableStore:
        return self.graph.tables()

    def schema(self) -> pa.Schema:
        store = self._store
        sides = [self.old or self.new, self.new or self.old]
        images = [pa.struct(self._fields(store, side)) for side in sides if side is not None]
        return pa.schema(
            [("op", pa.string()), ("id", pa.string()), ("before", images[0]), ("after", images[1])]
        )

    def _fields(self, store: TableStore, side: _ChangeSide) -> list[pa.Field]:
        found = store.open(side.pin.ref).schema
        names = [n for n in _readable_names(side.owner) if not self.columns or n in self.columns]
        return [spark_field(found.field(name)) for name in names]

    def partitions(self) -> Sequence[PairPartition]:
        """The row pairs that may differ, partitioned into tasks."""
        refs = [None if side is None else side.pin.ref for side in (self.old, self.new)]
        if refs[0] == refs[1]:
            return [PairPartition(b"")]
        found = self._delta(self._store, None).pairs
        return [
            PairPartition(to_ipc(found.slice(start, PAIRS_PER_TASK)))
            for start in range(0, max(found.num_rows, 1), PAIRS_PER_TASK)
        ]

    def _delta(self, store: TableStore, pairs: pa.Table | None) -> TypeDelta:
        sides = [None if side is None else side.open(store) for side in (self.old, self.new)]
        if pairs is None:
            refs = [None if side is None else side.pin.ref for side in (self.old, self.new)]
            pairs = row_pairs(store, refs[0], refs[1]).pairs
        return TypeDelta(sides[0], sides[1], pairs)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The changes of one partition (task)."""
        assert isinstance(partition, PairPartition)
        schema = self.schema()
        if not partition.data:
            return
        delta = self._delta(self._store, from_ipc(partition.data))
        for rows in delta.changes():
            columns = [
                pa.array([str(op) for op in rows.ops]),
                pa.array(rows.ids),
                _images(rows, rows.before, Op.INSERT, schema.field("before").type),
                _images(rows, rows.after, Op.DELETE, schema.field("after").type),
            ]
            yield from pa.table(columns, schema=schema).to_batches()


def _readable_names(owner: NodeType | EdgeType) -> list[str]:
    return [column.name for column in owner.columns() if not column.type.is_blob]


def _images(
    rows: ChangedRows, table: pa.Table | None, without: Op, kind: pa.StructType
) -> pa.Array:
    """One side of the changes as structs, null for entities that do not exist there."""
    exists = np.array([op != without for op in rows.ops])
    if table is None or not exists.any():
        return pa.nulls(len(rows.ids), kind)
    at = pa.array(np.cumsum(exists) - 1, mask=~exists)
    columns = [
        to_exchange(table[field.name]).cast(field.type).combine_chunks().take(at) for field in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(~exists))
