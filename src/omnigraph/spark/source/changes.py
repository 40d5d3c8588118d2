"""What two states of a type differ in, as rows of the data source.

    spark.read.format("omnigraph").option("type", "Person").option("changes", old).load(uri)

One row per entity that differs by value: ``op`` (insert, update, delete), ``id``, and the entity
``before`` and ``after`` as structures, null where it does not exist. The driver finds which rows
the two states do not share, at a cost that follows their number; executors read and compare them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.snapshots.entity_delta import ChangedRows, Op, Side, State, TypeDelta, paired_types
from omnigraph.spark.exchange_types import for_outside, readable
from omnigraph.spark.load.partitions import open_store, packed, unpacked
from omnigraph.storage.lance.row_delta import row_pairs
from omnigraph.storage.lance.tables import TableStore

PAIRS_PER_TASK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Pairs:
    """The share of one task: entities that may differ, as an Arrow stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class _End:
    """A type as one state has it, in a form that travels."""

    owner: NodeType | EdgeType
    pin: TablePin

    def side(self, store: TableStore) -> Side:
        return Side(self.owner, self.pin, store.open(self.pin.ref))


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """One type between two states; an end is None where the type does not exist."""

    uri: str
    old: _End | None
    new: _End | None
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls, repository: Repository, old: State, new: State, key: str, columns: Sequence[str]
    ) -> ChangesPlan:
        keys = next(
            (pair for pair in paired_types(old.snapshot, new.snapshot) if key in pair), (None, key)
        )
        ends = [
            None if name is None else _End(state.schema.type(name), state.snapshot.pin(name))
            for name, state in zip(keys, (old, new), strict=True)
        ]
        known = {name for end in ends if end is not None for name in _readable_names(end.owner)}
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise InvalidInput(f"{key} has no column {unknown[0]!r} that can be read here")
        return cls(repository.location.uri, ends[0], ends[1], tuple(columns))

    @property
    def _store(self) -> TableStore:
        return open_store(self.uri)

    def schema(self) -> pa.Schema:
        store = self._store
        sides = [self.old or self.new, self.new or self.old]
        images = [pa.struct(self._fields(store, end)) for end in sides if end is not None]
        return pa.schema(
            [("op", pa.string()), ("id", pa.string()), ("before", images[0]), ("after", images[1])]
        )

    def _fields(self, store: TableStore, end: _End) -> list[pa.Field]:
        found = store.open(end.pin.ref).schema
        names = [n for n in _readable_names(end.owner) if not self.columns or n in self.columns]
        return [readable(found.field(name)) for name in names]

    def shares(self) -> Sequence[Pairs]:
        """The entities that may differ, some for each task."""
        refs = [None if end is None else end.pin.ref for end in (self.old, self.new)]
        if refs[0] == refs[1]:
            return [Pairs(b"")]
        found = self._delta(self._store, None).pairs
        return [
            Pairs(packed(found.slice(start, PAIRS_PER_TASK)))
            for start in range(0, max(found.num_rows, 1), PAIRS_PER_TASK)
        ]

    def _delta(self, store: TableStore, pairs: pa.Table | None) -> TypeDelta:
        sides = [None if end is None else end.side(store) for end in (self.old, self.new)]
        if pairs is None:
            refs = [None if end is None else end.pin.ref for end in (self.old, self.new)]
            pairs = row_pairs(store, refs[0], refs[1]).pairs
        return TypeDelta(sides[0], sides[1], pairs)

    def read(self, share: Any) -> Iterator[pa.RecordBatch]:
        """The changes of one task."""
        assert isinstance(share, Pairs)
        schema = self.schema()
        if not share.data:
            return
        delta = self._delta(self._store, unpacked(share.data))
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
    """One side of the changes as structures: null for entities that it does not have."""
    exists = np.array([op != without for op in rows.ops])
    if table is None or not exists.any():
        return pa.nulls(len(rows.ids), kind)
    at = pa.array(np.cumsum(exists) - 1, mask=~exists)
    columns = [
        for_outside(table[field.name]).cast(field.type).combine_chunks().take(at) for field in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(~exists))
