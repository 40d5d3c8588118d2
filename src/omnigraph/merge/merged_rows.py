"""Builds the rows that a merge writes, to be checked and staged, and the preview of a merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import Report, Violation
from omnigraph.constraints.canonical import shortened
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.merge.entity_decisions import Composed
from omnigraph.merge.type_merges import TypeMerge
from omnigraph.prepare.entity_rows import column_array, replace_at
from omnigraph.prepare.preparer import KnownRows
from omnigraph.prepare.reshape import Misfit, Reshaped, fitted
from omnigraph.snapshots.diff import EntityChange, entity_changes, image_of
from omnigraph.snapshots.entity_delta import BATCH_ROWS, Op, Side, TypeDelta
from omnigraph.snapshots.images import images
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.row_delta import NEW, OLD, gather


def compose(merge: TypeMerge, report: Report) -> pa.Table | None:
    """The rows that a merge writes of one type, in the target's schema; None: only removals.

    Values that do not fit the target's property types are reported, and null in the rows.
    """
    owner, rows = merge.target.owner, []
    for side, come in _coming(merge):
        found = _aligned(side, owner, come[NEW].to_pylist())
        _report_misfits(owner, found, report)
        rows.append(found.rows)
    if merge.composed:
        rows.append(_composed(merge, report))
    return pa.concat_tables(rows, promote_options="permissive") if rows else None


def alternatives(merge: TypeMerge) -> TypeMerge:
    """A merge with one row for each possible outcome of each undecided entity."""
    found = [one for item in merge.undecided for one in item.alternatives if one is not None]
    return replace(merge, copied={}, composed=found, undecided=[])


def known_rows(merge: TypeMerge) -> tuple[KnownRows, pa.Array]:
    """The row ids in the target that the rows of ``compose`` replace, in their order; and the row
    ids that are removed, with the ids of these entities."""
    written = [come[OLD].combine_chunks() for _, come in _coming(merge)]
    written.append(pa.array([item.target_row for item in merge.composed], pa.uint64()))
    gone, removed = [pa.array([], pa.string())], [pa.array([], pa.uint64())]
    for _, pairs in merge.pairs():
        went = pairs.filter(pc.and_(pc.is_null(pairs[NEW]), pc.is_valid(pairs[OLD])))
        gone.append(went["id"].combine_chunks())
        removed.append(went[OLD].combine_chunks())
    known = KnownRows(pa.concat_arrays(written), pa.concat_arrays(removed))
    return known, pa.concat_arrays(gone)


def pieces(merge: TypeMerge, rows: int) -> Iterator[TypeMerge]:
    """Splits the merge of one type into merges that write at most ``rows`` rows each, in order."""
    for side, come in _coming(merge):
        name = next(name for name, found in merge.sides.items() if found is side)
        for start in range(0, come.num_rows, rows):
            yield replace(merge, copied={name: come.slice(start, rows)}, composed=[])
    for start in range(0, len(merge.composed), rows):
        yield replace(merge, copied={}, composed=merge.composed[start : start + rows])


def _coming(merge: TypeMerge) -> Iterator[tuple[Side, pa.Table]]:
    """The copied rows, with the side that they are copied from."""
    for side, pairs in merge.pairs():
        come = pairs.filter(pc.is_valid(pairs[NEW]))
        if come.num_rows:
            yield side, come


def preview_changes(merge: TypeMerge) -> Iterator[EntityChange]:
    """The entities of one type that a merge would change, by value, sorted by id."""
    found: list[EntityChange] = []
    for side, pairs in merge.pairs():
        delta = TypeDelta(merge.target, side, pairs.sort_by("id"))
        for rows in delta.changes():
            found += entity_changes(delta, rows)
    found += _previews(merge)
    for change in sorted(found, key=lambda change: change.id):
        yield replace(change, version=None)


def _previews(merge: TypeMerge) -> Iterator[EntityChange]:
    """The changes of composed entities, read in batches."""
    for start in range(0, len(merge.composed), BATCH_ROWS):
        items = merge.composed[start : start + BATCH_ROWS]
        sides = {name: _rows_of(merge, name, items) for name in merge.sides}
        for at, item in enumerate(items):
            change = _preview(merge, item, {name: rows[at] for name, rows in sides.items()})
            if change is not None:
                yield change


def _preview(
    merge: TypeMerge, item: Composed, sides: Mapping[str, dict[str, Any] | None]
) -> EntityChange | None:
    owner = merge.target.owner
    after = dict(sides[item.start] or {})
    for name, side in item.taken.items():
        after[name] = (sides[side] or {})[name]
    types = {column.name: column.type for column in owner.columns()}
    after |= {name: types[name].export(value) for name, value in item.values.items()}
    before = sides["target"]
    if before == after:
        return None
    op = Op.INSERT if before is None else Op.UPDATE
    old, new = None if before is None else image_of(owner, before), image_of(owner, after)
    return EntityChange(owner.kind, owner.name, owner.type_id, item.id, op, old, new)


def _rows_of(merge: TypeMerge, name: str, items: Sequence[Composed]) -> list[dict[str, Any] | None]:
    """The rows of entities on one side, where they are needed, by the target's column names."""
    side, owner = merge.sides[name], merge.target.owner
    needed = [name == "target" or _needs(item, name) for item in items]
    wanted = [
        item.rows[name]
        for item, need in zip(items, needed, strict=True)
        if need and name in item.rows
    ]
    if not wanted:
        return [None] * len(items)
    gathered = gather(side.table, pa.array(wanted, pa.uint64()), side.columns)
    found = iter(images(side.owner, side.table, gathered))
    names = {item.property_id: item.name for item in side.owner.properties.values()}
    columns = {
        column.name: column.name if column.property_id is None else names.get(column.property_id)
        for column in owner.columns()
    }
    rows: list[dict[str, Any] | None] = []
    for item, need in zip(items, needed, strict=True):
        image = next(found) if need and name in item.rows else None
        rows.append(
            None
            if image is None
            else {new: None if old is None else image[old] for new, old in columns.items()}
        )
    return rows


def _needs(item: Composed, name: str) -> bool:
    return item.start == name or name in item.taken.values()


def _composed(merge: TypeMerge, report: Report) -> pa.Table:
    """The rows of composed entities."""
    parts, order = [], []
    for name in merge.sides:
        chosen = [at for at, item in enumerate(merge.composed) if item.start == name]
        if chosen:
            items = [merge.composed[at] for at in chosen]
            found = _patched(merge, name, items)
            _report_misfits(merge.target.owner, found, report)
            parts.append(found.rows)
            order += chosen
    together = pa.concat_tables(parts, promote_options="permissive")
    return together if len(parts) == 1 else together.take(np.argsort(order))


def _patched(merge: TypeMerge, start: str, items: Sequence[Composed]) -> Reshaped:
    """Rows of one side, with values of other sides and of resolutions."""
    owner = merge.target.owner
    found = _aligned(merge.sides[start], owner, [item.start_row for item in items])
    others = {
        name: _SideRows.of(merge, name, items)
        for name in sorted({side for item in items for side in item.taken.values()})
    }
    columns: dict[str, Any] = {}
    misfits: dict[str, dict[int, Misfit]] = {}
    for column in owner.columns():
        values: Any = found.rows[column.name]
        wrong = dict(found.misfits.get(column.name, {}))
        for name, other in others.items():
            taken = [at for at in other.places if items[at].taken.get(column.name) == name]
            if taken:
                values = replace_at(_chunked(values), taken, other.values(column.name, taken))
                wrong = {at: item for at, item in wrong.items() if at not in taken}
                wrong |= other.misfits(column.name, taken)
        fixed = [at for at, item in enumerate(items) if column.name in item.values]
        if fixed:
            given = column_array(column.type, [items[at].values[column.name] for at in fixed])
            values = replace_at(_chunked(values), fixed, given)
            wrong = {at: item for at, item in wrong.items() if at not in fixed}
        columns[column.name] = values
        misfits[column.name] = wrong
    return Reshaped(pa.table(columns), misfits)


@dataclass(frozen=True, slots=True)
class _SideRows:
    """Rows of one side that values are taken from, by the position of their entity."""

    found: Reshaped
    places: Mapping[int, int]

    @classmethod
    def of(cls, merge: TypeMerge, name: str, items: Sequence[Composed]) -> _SideRows:
        asked = [at for at, item in enumerate(items) if name in item.taken.values()]
        rows = [items[at].rows[name] for at in asked]
        found = _aligned(merge.sides[name], merge.target.owner, rows)
        return cls(found, {at: place for place, at in enumerate(asked)})

    def values(self, column: str, taken: Sequence[int]) -> pa.Array:
        return as_array(self.found.rows[column]).take([self.places[at] for at in taken])

    def misfits(self, column: str, taken: Sequence[int]) -> dict[int, Misfit]:
        wrong = self.found.misfits.get(column, {})
        return {at: wrong[self.places[at]] for at in taken if self.places[at] in wrong}


def _aligned(side: Side, owner: NodeType | EdgeType, row_ids: Sequence[int]) -> Reshaped:
    """Complete rows of one side in the target's schema."""
    return fitted(complete_rows(side.table, row_ids), side.owner, owner)


def _report_misfits(owner: NodeType | EdgeType, found: Reshaped, report: Report) -> None:
    """Report the values that do not fit the target's property types."""
    for name, wrong in found.misfits.items():
        for at, misfit in sorted(wrong.items()):
            id = found.rows["id"][at].as_py()
            shown = shortened(repr(misfit.value))
            problem = f"{shown} of type {misfit.type} does not fit {owner.properties[name].type}"
            message = f"{owner.name}.{name} of {id!r}: {problem}"
            report.add(Violation("type", message, owner.key, id, name))


def _chunked(values: Any) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
