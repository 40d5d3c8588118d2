"""From the content of a merge to rows that can be checked and staged, and to a preview of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.read.delta import Op, Side, TypeDelta
from omnigraph.read.diff import EntityChange, entity_changes, image_of
from omnigraph.schema import EdgeType, NodeType
from omnigraph.storage.blobs import complete_rows
from omnigraph.storage.delta import NEW, OLD, gather
from omnigraph.write.changes import KnownRows
from omnigraph.write.deciding import Composed
from omnigraph.write.merging import TypeMerge
from omnigraph.write.reshape import reshaped
from omnigraph.write.rows import column_array, replace_at

if TYPE_CHECKING:
    import pyarrow as pa


def compose(merge: TypeMerge) -> pa.Table | None:
    """The rows that are written of one type, in the shape of the target; None: only removals."""
    import pyarrow as pa

    rows = [
        _aligned(side, merge.target.owner, come[NEW].to_pylist()) for side, come in _coming(merge)
    ]
    if merge.composed:
        rows.append(_composed(merge))
    return pa.concat_tables(rows, promote_options="permissive") if rows else None


def known_rows(merge: TypeMerge) -> tuple[KnownRows, pa.Array]:
    """The target's rows that composed ones replace, one for each, and those that go away; with the
    ids of the latter."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
    """The rows that are written of one type, so many at a time and in their order."""
    for side, come in _coming(merge):
        name = next(name for name, found in merge.sides.items() if found is side)
        for start in range(0, come.num_rows, rows):
            yield replace(merge, copied={name: come.slice(start, rows)}, composed=[])
    for start in range(0, len(merge.composed), rows):
        yield replace(merge, copied={}, composed=merge.composed[start : start + rows])


def _coming(merge: TypeMerge) -> Iterator[tuple[Side, pa.Table]]:
    """The rows that are copied, with the side they come from."""
    import pyarrow.compute as pc

    for side, pairs in merge.pairs():
        come = pairs.filter(pc.is_valid(pairs[NEW]))
        if come.num_rows:
            yield side, come


def previewed(merge: TypeMerge) -> Iterator[EntityChange]:
    """What a merge would change in one type, by value and in the order of ids."""
    found: list[EntityChange] = []
    for side, pairs in merge.pairs():
        delta = TypeDelta(merge.target, side, pairs.sort_by("id"))
        for rows in delta.changes():
            found += entity_changes(delta, rows)
    found += (change for item in merge.composed if (change := _preview(merge, item)) is not None)
    for change in sorted(found, key=lambda change: change.id):
        yield replace(change, version=None)


def _preview(merge: TypeMerge, item: Composed) -> EntityChange | None:
    owner = merge.target.owner
    after = _row(merge.sides[item.start], item.start_row)
    if item.source_row is not None:
        theirs = _row(merge.sides["source"], item.source_row)
        after |= {name: theirs[name] for name in item.from_source}
    types = {column.name: column.type for column in owner.columns()}
    after |= {name: types[name].export(value) for name, value in item.values.items()}
    before = None if item.target_row is None else _row(merge.target, item.target_row)
    if before == after:
        return None
    op = Op.INSERT if before is None else Op.UPDATE
    old, new = None if before is None else image_of(owner, before), image_of(owner, after)
    return EntityChange(owner.kind, owner.name, owner.type_id, item.id, op, old, new)


def _row(side: Side, row_id: int) -> dict[str, Any]:
    import pyarrow as pa

    from omnigraph.read.images import images

    rows = gather(side.table, pa.array([row_id], pa.uint64()), side.columns)
    return images(side.owner, side.table, rows)[0]


def _composed(merge: TypeMerge) -> pa.Table:
    """The rows of entities that are put together."""
    import pyarrow as pa

    owner, parts, order = merge.target.owner, [], []
    for name in merge.sides:
        chosen = [at for at, item in enumerate(merge.composed) if item.start == name]
        if chosen:
            items = [merge.composed[at] for at in chosen]
            parts.append(_patched(merge, merge.sides[name], owner, items))
            order += chosen
    together = pa.concat_tables(parts, promote_options="permissive")
    places = [order.index(at) for at in range(len(order))] if len(parts) > 1 else None
    return together if places is None else together.take(places)


def _patched(
    merge: TypeMerge, side: Side, owner: NodeType | EdgeType, items: Sequence[Composed]
) -> pa.Table:
    """Rows of one side with some values of the source, and some that were given."""
    import pyarrow as pa

    start = _aligned(side, owner, [item.start_row for item in items])
    theirs = {
        at: item.source_row
        for at, item in enumerate(items)
        if item.source_row is not None and item.from_source
    }
    other = _aligned(merge.sides["source"], owner, list(theirs.values())) if theirs else None
    places = {at: place for place, at in enumerate(theirs)}
    columns: dict[str, Any] = {}
    for column in owner.columns():
        values: Any = start[column.name]
        taken = [at for at in theirs if column.name in items[at].from_source]
        if taken and other is not None:
            given = other[column.name].combine_chunks().take([places[at] for at in taken])
            values = replace_at(values, taken, given)
        fixed = [at for at, item in enumerate(items) if column.name in item.values]
        if fixed:
            given = column_array(column.type, [items[at].values[column.name] for at in fixed])
            values = replace_at(_chunked(values), fixed, given)
        columns[column.name] = values
    return pa.table(columns)


def _aligned(side: Side, owner: NodeType | EdgeType, row_ids: Sequence[int]) -> pa.Table:
    """Complete rows of one side in the shape that the target has."""
    return reshaped(complete_rows(side.table, row_ids), side.owner, owner)


def _chunked(values: Any) -> pa.ChunkedArray:
    import pyarrow as pa

    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
