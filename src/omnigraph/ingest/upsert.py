"""Loaded rows against stored ones: what an upsert changes, and what a merge overwrites.

An upsert sets the given values of an entity and keeps the others; rows of one id are applied in
input order. An edge without an id matches the stored edge with the same ends and equal properties,
if there is one. Pure functions over Arrow tables and one pinned table, used by every load engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import NULLED, Report
from omnigraph.constraints.edge_content import content_numbers
from omnigraph.constraints.row_checks import report_rows
from omnigraph.ingest.row_collector import in_order, nulled_column, nulled_mask
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.prepare.entity_rows import replace_at, with_defaults
from omnigraph.snapshots.equality import same_stored
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.lookup import locate, lookup_filter
from omnigraph.storage.lance.row_delta import gather
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

if TYPE_CHECKING:
    Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an upsert.

    ``rows`` are the complete entities that are new or changed, in input order; ``row_ids`` are
    their stored rows, null for a new one. ``same`` are the entities that do not change.
    """

    rows: pa.Table
    row_ids: pa.Array
    same: pa.Table


def apply_rows(owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable) -> Applied:
    """Upsert rows with ids over the rows of a table."""
    rows = fold_rows(owner, rows)
    located = locate(table, rows["id"])
    at = pc.index_in(as_array(rows["id"]), value_set=as_array(located.ids))
    return overlay(owner, rows, table, pc.take(_numbers(located.row_ids), at))


def overlay(
    owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable, row_ids: pa.Array
) -> Applied:
    """Set the given values of rows, one per id, over the stored rows with these row ids."""
    is_new = pc.is_null(row_ids)
    new = with_defaults(owner, rows.filter(is_new)).drop_columns([NULLED])
    given, known = rows.filter(pc.invert(is_new)), row_ids.drop_null()
    whole = given.drop_columns([NULLED])
    if not given.num_rows:
        return Applied(new, row_ids, whole)
    stored = complete_rows(table, known.to_pylist())
    changed = np.zeros(given.num_rows, dtype=bool)
    for column in owner.columns():
        values, old = as_array(given[column.name]), as_array(stored[column.name])
        at = np.flatnonzero(given_mask(owner, given, column.name))
        chosen = values.take(pa.array(at))
        changed[at] |= ~same_stored(old.take(pa.array(at)), chosen)
        whole = _set(whole, column.name, replace_at(old, at.tolist(), chosen))
    keep = pa.array(changed)
    both = pa.concat_tables([whole.filter(keep), new.cast(whole.schema)])
    ids = pa.concat_arrays([known.filter(keep), pa.nulls(new.num_rows, known.type)])
    order = _input_order(both)
    return Applied(both.take(order), ids.take(order), whole.filter(pc.invert(keep)))


def fold_rows(owner: NodeType | EdgeType, rows: pa.Table) -> pa.Table:
    """One row per id, at the position of its last row, with the last given value per property."""
    if pc.count_distinct(rows["id"]).as_py() == rows.num_rows:
        return rows
    codes = as_array(rows["id"]).dictionary_encode().indices.to_numpy()
    numbers, count = np.arange(rows.num_rows), int(codes.max()) + 1
    last = np.zeros(count, dtype=np.int64)
    last[codes] = numbers  # the last assignment counts
    folded, nulled = rows.take(pa.array(last)), {}
    for column in owner.columns():
        given = np.flatnonzero(given_mask(owner, rows, column.name))
        chosen = np.full(count, -1, dtype=np.int64)
        chosen[codes[given]] = given
        values = as_array(rows[column.name]).take(pa.array(chosen, mask=chosen < 0))
        folded = _set(folded, column.name, values)
        if column.name in owner.properties:
            nulled[column.name] = (chosen >= 0) & np.asarray(values.is_null())
    folded = _set(folded, NULLED, nulled_column(owner, nulled, count))
    return folded.take(pa.array(np.argsort(last)))


def given_mask(owner: NodeType | EdgeType, rows: pa.Table, name: str) -> Mask:
    """A mask of the rows that give a value for a column, null included."""
    mask = np.asarray(as_array(rows[name]).is_valid())
    return mask | nulled_mask(owner, rows, name) if name in owner.properties else mask


def check_given(owner: NodeType | EdgeType, rows: pa.Table, has_id: Any, report: Report) -> None:
    """Check required properties as far as that is possible before stored rows are known.

    No row may give null for one, every row needs its key, and rows without an id (``has_id`` is a
    mask; None: all have one) are new and need every required property.
    """
    for name, declared in owner.properties.items():
        if declared.type.nullable or not rows[name].null_count:
            continue
        wrong = nulled_mask(owner, rows, name)
        if name in owner.key_properties:
            wrong |= True
        if has_id is not None and declared.default is None:
            wrong |= ~np.asarray(as_array(has_id))
        wrong &= np.asarray(as_array(rows[name]).is_null())
        report_rows(report, owner, rows, "required", name, pa.array(wrong), "a value is required")


# -- edges without ids -----------------------------------------------------------------------------


def equal_edges(
    edge: EdgeType,
    rows: pa.Table,
    others: pa.Table | None,
    table: PinnedTable,
    superseded: pa.Array,
) -> Mask:
    """A mask of the edges that equal an earlier one, one of ``others``, or a stored one.

    Stored edges whose ids are ``superseded`` do not count: ``others`` has their new values. Values
    are compared only where both ends are equal.
    """
    pairs = _EndPairs(rows)
    stored = _stored_between(table, pairs, superseded)
    known = [] if stored is None else [stored]
    if others is not None:
        codes = pairs.codes_of(others)
        known.append(_Candidates(codes, others).chosen(pairs.holds(codes)))
    suspect = pairs.repeated
    for found in known:
        suspect = suspect | is_in(pairs.codes, found.codes)
    equal = np.zeros(rows.num_rows, dtype=bool)
    if not suspect.any():
        return equal
    parts = [*known, _Candidates(pairs.codes, rows).chosen(suspect)]
    columns = [_properties(edge, table, part.rows) for part in parts]
    numbers = content_numbers(edge, np.concatenate([part.codes for part in parts]), columns)
    _, first = np.unique(numbers, return_index=True)
    again = np.ones(len(numbers), dtype=bool)
    again[first] = False
    equal[suspect] = again[len(numbers) - int(suspect.sum()) :]
    return equal


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Edges with the codes of their (source, target) pairs."""

    codes: np.ndarray[Any, Any]
    rows: pa.Table

    def chosen(self, mask: Mask) -> _Candidates:
        return _Candidates(self.codes[mask], self.rows.filter(pa.array(mask)))


class _EndPairs:
    """The (source, target) pairs of edges, each encoded as one integer."""

    def __init__(self, rows: pa.Table) -> None:
        self.sources = as_array(rows[SRC]).unique()
        self._targets = as_array(rows[DST]).unique()
        self.codes = self.codes_of(rows)
        places = pa.array(self.codes).dictionary_encode().indices.to_numpy()
        self.repeated: Mask = np.bincount(places)[places] > 1

    def codes_of(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """The codes of the pairs of other edges; -1 where an end does not occur here."""
        source, target = (
            pc.fill_null(pc.index_in(as_array(rows[name]), value_set=known), -1)
            .to_numpy()
            .astype(np.int64)
            for name, known in ((SRC, self.sources), (DST, self._targets))
        )
        codes = source * len(self._targets) + target
        return np.where((source < 0) | (target < 0), -1, codes)

    def holds(self, codes: np.ndarray[Any, Any]) -> Mask:
        return is_in(codes, self.codes)


def is_in(values: np.ndarray[Any, Any], known: np.ndarray[Any, Any]) -> Mask:
    """``numpy.isin`` by hashing: the order of the numbers does not matter."""
    return np.asarray(pc.is_in(pa.array(values), value_set=pa.array(known)))


def _stored_between(
    table: PinnedTable, pairs: _EndPairs, superseded: pa.Array
) -> _Candidates | None:
    """The stored edges whose ends are one of the pairs."""
    if not table.rows or not len(pairs.codes):
        return None
    names = ["id", SRC, DST] if len(superseded) else [SRC, DST]
    condition = lookup_filter(table, SRC, pairs.sources)
    found = table.scan(names, condition, with_row_id=True)
    if len(superseded):
        found = found.filter(pc.invert(pc.is_in(found["id"], value_set=superseded)))
    codes = pairs.codes_of(found)
    return _Candidates(codes, found.select([ROW_ID])).chosen(pairs.holds(codes))


def _properties(edge: EdgeType, table: PinnedTable, rows: pa.Table) -> pa.Table:
    """The properties of edges; read by row id where only the ends of stored ones are there."""
    if ROW_ID not in rows.column_names:
        return rows
    if any(item.type.is_blob for item in edge.properties.values()):
        return complete_rows(table, rows[ROW_ID].to_pylist())
    return gather(table, as_array(rows[ROW_ID]), list(edge.properties))


# -- what a merge overwrites -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replaced:
    """The row ids that merged rows replace, null for new ones, and the count of values lost."""

    row_ids: pa.Array
    values_nulled: int


def replaced_rows(owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable) -> Replaced:
    """Find stored rows by id, and count their values where the merged row has null."""
    names = [name for name in owner.properties if rows[name].null_count]
    ids = as_array(rows["id"])
    found = table.validity(names, lookup_filter(table, "id", ids))
    at = pc.index_in(ids, value_set=as_array(found["id"]))
    lost = 0
    for name in names:
        had = as_array(found[name]).take(at)
        lost += pc.sum(pc.and_(pc.is_null(as_array(rows[name])), had)).as_py() or 0
    return Replaced(as_array(found[ROW_ID]).take(at), lost)


def _numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(values, pa.uint64())


def _input_order(rows: pa.Table) -> Any:
    numbered = rows.append_column("#at", pa.array(np.arange(rows.num_rows)))
    return as_array(in_order(numbered)["#at"])


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
