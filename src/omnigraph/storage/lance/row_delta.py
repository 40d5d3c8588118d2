"""The row delta of two versions of one table, at a cost proportional to the rows that differ.

Rows are identified by stable row ids; a replaced row is a deletion and an insertion under one id. A
row written after a version has a later version stamp and is in a fragment that the version lacks; a
deleted row is in a deletion file that the version lacks. Versions on different physical branches
are compared through their newest common ancestor: rows that neither changed since then are the same
row, with the same row id, on both. Values are not compared: a row that was rewritten with the same
values is part of the delta, and the caller compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CorruptData
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.row_addresses import ADDRESS, addresses
from omnigraph.storage.lance.row_versions import CREATED, WRITTEN
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, ROW_ID, PinnedTable, TableRef, TableStore

OLD: Final = "old_row"
NEW: Final = "new_row"
ADDRESSES_MAX: Final = 4_096
"""Rows read in one request."""
SCAN_SHARE: Final = 8
"""When more than one row in this many is needed, the whole table is scanned instead."""


@dataclass(frozen=True, slots=True)
class RowPairs:
    """Entities that may differ between two tables.

    ``pairs`` has the columns ``id`` (in order, each once), ``old_row`` and ``new_row``: the row ids
    of the entity in either table, null where it does not exist.
    """

    old: PinnedTable | None
    new: PinnedTable | None
    pairs: pa.Table

    def __len__(self) -> int:
        return int(self.pairs.num_rows)


def row_pairs(store: TableStore, old: TableRef | None, new: TableRef | None) -> RowPairs:
    """Every entity that does not have the same row in ``old`` and ``new``.

    A side that is None is empty. Tables at different paths share no rows.
    """
    opened = [None if ref is None else store.open(ref) for ref in (old, new)]
    if old is None or new is None or old.path != new.path:
        gone = _everything(opened[0])
        come = _everything(opened[1])
        found = _joined([_pairs(*gone, None), _pairs(come[0], None, come[1])])
    else:
        ancestor = common_ancestor(store, old, new)
        found = _between(_since(store, ancestor, old), _since(store, ancestor, new))
    return RowPairs(opened[0], opened[1], found)


def common_ancestor(store: TableStore, first: TableRef, second: TableRef) -> TableRef:
    """The newest version that both descend from; the tables must be at one path."""
    others = {ref.branch: ref for ref in lineage(store, second)}
    for ref in lineage(store, first):
        other = others.get(ref.branch)
        if other is not None:
            return ref if ref.version <= other.version else other
    raise AssertionError("all versions of one table descend from its first")


def lineage(store: TableStore, ref: TableRef) -> list[TableRef]:
    """The version itself, then the fork points of its physical branches, up to the root."""
    chain = [ref]
    while chain[-1].branch is not None:
        chain.append(store.fork_point(chain[-1]))
    return chain


def gather(table: PinnedTable, row_ids: pa.Array, columns: Sequence[str]) -> pa.Table:
    """Rows by row id, one per row id and in their order, with their row ids as a column."""
    wanted = list(dict.fromkeys((*columns, ROW_ID)))
    if not len(row_ids):
        found = table.take([], wanted)
    elif len(row_ids) * SCAN_SHARE > table.rows:
        found = table.scan(columns, with_row_id=True)
    else:
        found = pa.concat_tables(rows_at(table, addresses(table, row_ids), columns))
    order = pc.index_in(row_ids, value_set=found[ROW_ID].combine_chunks())
    if order.null_count:
        raise CorruptData(f"{table.ref.path} lacks {order.null_count} rows that it should have")
    return found.take(order).select(wanted)


def rows_at(table: PinnedTable, row_addresses: Any, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows at these addresses, in batches and in any order, with row ids and addresses."""
    for start in range(0, len(row_addresses), ADDRESSES_MAX):
        part = np.sort(row_addresses[start : start + ADDRESSES_MAX])
        condition = f"{ADDRESS} IN ({', '.join(map(str, part.tolist()))})"
        yield table.scan(
            columns,
            condition,
            with_row_id=True,
            with_row_address=True,
            fragment_ids=np.unique(part >> np.uint64(FRAGMENT_SHIFT)).tolist(),
        )


def touched_fragments(before: PinnedTable, after: PinnedTable) -> list[int]:
    """The fragments of a version from which a row may be missing in a later one."""
    kept = after.fragments
    return [name for name, fragment in before.fragments.items() if kept.get(name) != fragment]


def fresh_fragments(after: PinnedTable, before: PinnedTable) -> list[int]:
    """The fragments of a version that hold all rows that were written since an earlier one."""
    known = set(before.fragment_files.values())
    return [number for number, files in after.fragment_files.items() if files not in known]


def removed_rows(
    store: TableStore, ancestor: TableRef, ref: TableRef
) -> Iterator[tuple[pa.ChunkedArray, pa.Array]]:
    """The ids and row ids of deleted rows of the ancestor, one segment after the other."""
    for start, end in _segments(store, ancestor, ref):
        gone = _gone(store, start, end)
        rows = gather(store.open(start), gone, ["id", CREATED])
        # Rows that were inserted and deleted after the ancestor are in neither version.
        rows = rows.filter(pc.less_equal(rows[CREATED], ancestor.version))
        yield rows["id"], rows[ROW_ID].combine_chunks()


def _since(store: TableStore, ancestor: TableRef, ref: TableRef) -> pa.Table:
    """The pairs of a version and one it descends from."""
    if ref == ancestor:
        return _nothing()
    written = _written(store.open(ref), store.open(ancestor))
    row_ids = written[ROW_ID].combine_chunks()
    existed = pc.less_equal(written[CREATED].combine_chunks(), ancestor.version)
    before = pc.if_else(existed, row_ids, pa.scalar(None, pa.uint64()))
    parts = [_pairs(written["id"], before, row_ids)]
    parts += [_pairs(*gone, None) for gone in removed_rows(store, ancestor, ref)]
    return _joined(parts)


def _written(table: PinnedTable, before: PinnedTable) -> pa.Table:
    """The rows added or replaced since ``before``: ids, row ids and creation versions."""
    fresh = fresh_fragments(table, before)
    if not fresh:
        return table.take([], ["id", CREATED, ROW_ID])
    later = f"{WRITTEN} > {before.ref.version}"
    return table.scan(["id", CREATED], later, with_row_id=True, fragment_ids=fresh)


def _gone(store: TableStore, start: TableRef, end: TableRef) -> pa.Array:
    """The row ids of a version that a later one of the same physical branch lacks."""
    before, after = store.open(start), store.open(end)
    if store.rebases or _reuses_numbers(before, after):
        return _missing_row_ids(before, after)
    with translated(f"comparing versions of {start.path}"):
        delta = after.dataset.delta(compared_against=start.version)
        return delta.get_deleted_row_ids().read_all().column(0).combine_chunks()


def _reuses_numbers(before: PinnedTable, after: PinnedTable) -> bool:
    """Whether a fragment has the number of an older one and none of its files.

    Older versions of Lance number the fragments of an overwritten table from the beginning. Lance
    then takes them for the same fragments, and finds no deleted rows.
    """
    later = after.fragment_files
    return any(
        set(files).isdisjoint(later[number])
        for number, files in before.fragment_files.items()
        if number in later
    )


def _missing_row_ids(before: PinnedTable, after: PinnedTable) -> pa.Array:
    """The same by reading the row ids of all fragments that the two do not share.

    Unlike Lance's comparison it opens no version by itself: that would have the base paths of the
    place where a moved graph was made.
    """
    touched = touched_fragments(before, after)
    others = touched_fragments(after, before)
    had = before.scan(["id"], with_row_id=True, fragment_ids=touched)[ROW_ID].combine_chunks()
    has = after.scan(["id"], with_row_id=True, fragment_ids=others)[ROW_ID].combine_chunks()
    return had.filter(pc.invert(pc.is_in(had, value_set=has)))


def _segments(
    store: TableStore, ancestor: TableRef, ref: TableRef
) -> Iterator[tuple[TableRef, TableRef]]:
    """The lineage from an ancestor to a version, in segments of one physical branch each."""
    start = ancestor
    chain = lineage(store, ref)
    for at in range([step.branch for step in chain].index(ancestor.branch), -1, -1):
        end = chain[at]
        if start.version < end.version:
            yield end.at(start.version), end
        start = end


def _between(old: pa.Table, new: pa.Table) -> pa.Table:
    """Combine the deltas of two versions since their common ancestor into the delta of the two.

    An entity that only one of them changed is, in the other, still the ancestor's row.
    """
    in_new = pc.is_in(old["id"], value_set=new["id"].combine_chunks())
    in_old = pc.is_in(new["id"], value_set=old["id"].combine_chunks())
    alone, both = old.filter(pc.invert(in_new)), old.filter(in_new)
    parts = [
        _pairs(alone["id"], alone[NEW], alone[OLD]),
        new.filter(pc.invert(in_old)),
    ]
    if both.num_rows:
        other = new.take(pc.index_in(both["id"], value_set=new["id"].combine_chunks()))
        parts.append(_pairs(both["id"], both[NEW], other[NEW]))
    found = pa.concat_tables(parts).sort_by("id")
    # Neither version has an entity that was inserted and deleted again since the ancestor.
    return found.filter(pc.or_(pc.is_valid(found[OLD]), pc.is_valid(found[NEW])))


def _joined(parts: list[pa.Table]) -> pa.Table:
    """One row per id: an id that was deleted and inserted again is one pair."""
    found = pa.concat_tables(parts)
    grouped = found.group_by("id").aggregate([(OLD, "max"), (NEW, "max")])
    return grouped.rename_columns(["id", OLD, NEW]).sort_by("id")


def _pairs(ids: Any, old: Any, new: Any) -> pa.Table:
    nulls = pa.nulls(len(ids), pa.uint64())
    schema = pa.schema([("id", pa.string()), (OLD, pa.uint64()), (NEW, pa.uint64())])
    sides = [nulls if side is None else side for side in (old, new)]
    return pa.table([ids, *sides], schema=schema)


def _everything(table: PinnedTable | None) -> tuple[Any, Any]:
    if table is None:
        return pa.array([], pa.string()), pa.array([], pa.uint64())
    found = table.scan(["id"], with_row_id=True)
    return found["id"], found[ROW_ID]


def _nothing() -> pa.Table:
    return _pairs(*_everything(None), None)
