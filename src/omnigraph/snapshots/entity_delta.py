"""The entities of one type that differ between two snapshots, by value.

Storage returns candidate pairs of row ids, at a cost that follows the number of touched rows. Here
the values of both sides are read in batches, in the order of ids, and equal ones are dropped: a
rewrite without a change is never reported. Properties are paired by identity, so a rename is not a
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.snapshots.equality import comparable, same_rows, same_values
from omnigraph.storage.lance.row_delta import NEW, OLD, SCAN_SHARE, gather, row_pairs
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

Mask: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"

BATCH_ROWS: Final = 4_096
"""Entities that are compared at a time."""


class Op(StrEnum):
    """The operation on an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Side:
    """One type in one snapshot: its declaration, pin and table."""

    owner: NodeType | EdgeType
    pin: TablePin
    table: PinnedTable

    @cached_property
    def columns(self) -> list[str]:
        return [column.name for column in self.owner.columns()]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Some entities that differ, by id, with the rows that exist of them on either side.

    ``before`` has a row for each update and delete, ``after`` one for each update and insert, in
    the order of ``ids``; both carry row ids.
    """

    ids: list[str]
    ops: list[Op]
    before: pa.Table | None
    after: pa.Table | None


@dataclass(frozen=True)
class TypeDelta:
    """One type on both sides (None where it does not exist), and the candidate row pairs."""

    old: Side | None
    new: Side | None
    pairs: pa.Table

    @property
    def side(self) -> Side:
        """The newer side, or the only one."""
        found = self.new or self.old
        assert found is not None
        return found

    @cached_property
    def shared(self) -> list[tuple[str, str]]:
        """The columns of both sides, as pairs of names: endpoints, then properties."""
        if self.old is None or self.new is None:
            return []
        ends = [(c.name, c.name) for c in self.old.owner.columns() if c.property_id is None]
        names = {p.property_id: name for name, p in self.new.owner.properties.items()}
        return [
            *ends,
            *(
                (name, names[p.property_id])
                for name, p in self.old.owner.properties.items()
                if p.property_id in names
            ),
        ]

    @cached_property
    def added(self) -> list[str]:
        """Properties that only the newer side has."""
        known = {new for _, new in self.shared}
        return [] if self.new is None else [c for c in self.new.columns if c not in known]

    def changes(self, *, after_id: str | None = None) -> Iterator[ChangedRows]:
        """The changed rows in the order of ids; ``after_id`` skips everything up to an id."""
        pairs = self.pairs
        if after_id is not None:
            pairs = pairs.filter(pc.greater(pairs["id"], after_id))
        for batch, before, after in self._batches(pairs):
            found = self._compared(batch, before, after)
            if found.ids:
                yield found

    def compared_columns(self) -> Iterator[tuple[pa.Array, Mapping[str, Mask]]]:
        """Ids of entities that both sides have, and by column of the newer side which of them have
        the same value in both."""
        both = pc.and_(self.pairs[OLD].is_valid(), self.pairs[NEW].is_valid())
        for batch, before, after in self._batches(self.pairs.filter(both)):
            assert before is not None
            assert after is not None
            yield batch["id"].combine_chunks(), self.same_by_column(before, after)

    def _batches(
        self, pairs: pa.Table
    ) -> Iterator[tuple[pa.Table, pa.Table | None, pa.Table | None]]:
        """Some pairs at a time, with their rows on both sides."""
        readers = [
            None if side is None else _SideReader(side, pairs.num_rows - pairs[column].null_count)
            for side, column in ((self.old, OLD), (self.new, NEW))
        ]
        for start in range(0, pairs.num_rows, BATCH_ROWS):
            batch = pairs.slice(start, BATCH_ROWS)
            before, after = (
                None if reader is None else reader.read(batch[column])
                for reader, column in zip(readers, (OLD, NEW), strict=True)
            )
            yield batch, before, after

    def _compared(
        self, pairs: pa.Table, before: pa.Table | None, after: pa.Table | None
    ) -> ChangedRows:
        had = np.asarray(pairs[OLD].is_valid())
        has = np.asarray(pairs[NEW].is_valid())
        both = had & has
        keep = had | has
        if before is not None and after is not None and both.any():
            left = before.filter(pa.array(both[had]))
            right = after.filter(pa.array(both[has]))
            keep[both] = ~self.same(left, right)
        ops = np.where(both, Op.UPDATE, np.where(had, Op.DELETE, Op.INSERT))[keep]
        return ChangedRows(
            pairs["id"].filter(pa.array(keep)).to_pylist(),
            [Op(op) for op in ops.tolist()],
            None if before is None else before.filter(pa.array(keep[had])),
            None if after is None else after.filter(pa.array(keep[has])),
        )

    def same(self, before: pa.Table, after: pa.Table) -> Mask:
        """Which rows of the same entities have equal values on both sides.

        A property that only the newer side has counts on the older side as the value that existing
        entities got, mostly null. One that only the older side has is a schema change, not a change
        of entities.
        """
        same = np.ones(before.num_rows, dtype=bool)
        for found in self.same_by_column(before, after).values():
            same &= found
        return same

    def same_by_column(self, before: pa.Table, after: pa.Table) -> dict[str, Mask]:
        """Equality by row, for each column of the newer side."""
        assert self.old is not None
        assert self.new is not None
        left, right = comparable(self.old.table, before), comparable(self.new.table, after)
        same = {pair[1]: same_rows(left, right, [pair]) for pair in self.shared}
        for name in self.added:
            older = PropertyBackfill(
                self.new.owner.properties[name], self.new.owner, self.old.owner
            )
            given = right[name].combine_chunks()
            if older.gives_values:
                same[name] = same_values(older.values(left), given)
            else:
                same[name] = np.asarray(given.is_null())
        return same


class _SideReader:
    """Reads rows of one side: by row id, or from one full scan when many are needed."""

    def __init__(self, side: Side, wanted: int) -> None:
        self._side = side
        self._whole: pa.Table | None = None
        if wanted > BATCH_ROWS and wanted * SCAN_SHARE > side.table.rows:
            self._whole = side.table.scan(side.columns, with_row_id=True)

    def read(self, row_ids: pa.ChunkedArray) -> pa.Table:
        """The rows with these row ids, in this order; nulls are skipped."""
        wanted = row_ids.drop_null().combine_chunks()
        if self._whole is None:
            return gather(self._side.table, wanted, self._side.columns)
        return self._whole.take(pc.index_in(wanted, value_set=self._whole[ROW_ID].combine_chunks()))


@dataclass(frozen=True, slots=True)
class State:
    """A snapshot with its schema: one end of a comparison."""

    snapshot: SnapshotPins
    schema: AcceptedSchema

    def side(self, repository: Repository, key: str) -> Side:
        pin = self.snapshot.pin(key)
        return Side(self.schema.type(key), pin, repository.tables.open(pin.ref))


def type_delta(
    repository: Repository, old: State, new: State, keys: tuple[str | None, str | None]
) -> TypeDelta:
    """The delta of one type, given its type key on either side."""
    sides = [
        None if key is None else state.side(repository, key)
        for state, key in zip((old, new), keys, strict=True)
    ]
    refs = [None if side is None else side.pin.ref for side in sides]
    found = row_pairs(repository.tables, refs[0], refs[1])
    return TypeDelta(sides[0], sides[1], found.pairs)


def paired_types(old: SnapshotPins, new: SnapshotPins) -> list[tuple[str | None, str | None]]:
    """The type keys of both sides, paired by incarnation, in the order of type keys.

    A renamed type is one pair; a type that was dropped and added again is two.
    """
    keys = {pin.incarnation: key for key, pin in new.pins.items()}
    pairs: list[tuple[str | None, str | None]] = [
        (key, keys.pop(pin.incarnation, None)) for key, pin in old.pins.items()
    ]
    pairs += [(None, key) for key in keys.values()]
    return sorted(pairs, key=lambda pair: (pair[1] or pair[0] or "", pair[0] is None))


def touched_types(
    old: SnapshotPins, new: SnapshotPins, chosen: Sequence[tuple[str | None, str | None]]
) -> list[tuple[str | None, str | None]]:
    """The pairs of types whose physical versions differ."""
    return [
        (before, after)
        for before, after in chosen
        if before is None or after is None or old.pins[before].ref != new.pins[after].ref
    ]
