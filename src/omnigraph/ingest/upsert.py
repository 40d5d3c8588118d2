"""Rows that meet stored entities: what an upsert sets, and what a merge takes away.

An upsert sets what a row gives and keeps the rest; rows of one id are applied in their order. An
edge without an id is the stored edge with the same ends and equal properties, if there is one.
Pure functions over Arrow tables and one pinned table, used by loads on every engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import NULLED, Report
from omnigraph.constraints.edge_content import content_keys
from omnigraph.constraints.rows import report_rows
from omnigraph.ingest.gathered_rows import in_order, nulled_column, nulled_mask
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.prepare.entity_rows import replace_at, with_defaults
from omnigraph.snapshots.equality import same_stored
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.lookup import locate, value_filter
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

if TYPE_CHECKING:
    Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Applied:
    """What upserted rows come to.

    ``rows`` are whole entities that are new or that change, in the order of the input; ``row_ids``
    says where each is stored, null for a new one. ``same`` are entities that stay as they are.
    """

    rows: pa.Table
    row_ids: pa.Array
    same: pa.Table


def apply_rows(owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable) -> Applied:
    """Upsert rows with ids over what a table holds."""
    rows = fold_rows(owner, rows)
    located = locate(table, rows["id"])
    at = pc.index_in(as_array(rows["id"]), value_set=as_array(located.ids))
    return overlay(owner, rows, table, pc.take(_numbers(located.row_ids), at))


def overlay(
    owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable, row_ids: pa.Array
) -> Applied:
    """Set what the rows give, one per id, over the stored rows of these row ids."""
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
    """One row per id: of every property the last value that was given, at the last row's place."""
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
    """Which rows give a value for a column, be it null."""
    mask = np.asarray(as_array(rows[name]).is_valid())
    return mask | nulled_mask(owner, rows, name) if name in owner.properties else mask


def check_given(owner: NodeType | EdgeType, rows: pa.Table, named: Any, report: Report) -> None:
    """Required properties have values, as far as it can be said before stored rows are known: no
    row gives null for one, all have their keys, and rows that are not ``named`` (None: all are)
    have everything."""
    for name, declared in owner.properties.items():
        if declared.type.nullable or not rows[name].null_count:
            continue
        wrong = nulled_mask(owner, rows, name)
        if name in owner.key_properties:
            wrong |= True
        if named is not None and declared.default is None:
            wrong |= ~np.asarray(as_array(named))
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
    """Which of these edges equal an earlier one, one of ``others``, or a stored one.

    Stored edges whose ids are ``superseded`` do not count: ``others`` has what they become. Values
    are compared only where both ends are the same.
    """
    pairs = _Pairs(rows)
    stored = _stored_between(table, pairs, superseded)
    beside = None if others is None else others.filter(pa.array(pairs.holds(others)))
    suspect = pairs.repeated
    for found in (stored, beside):
        if found is not None and found.num_rows:
            suspect = suspect | np.isin(pairs.codes, pairs.codes_of(found))
    equal = np.zeros(rows.num_rows, dtype=bool)
    at = np.flatnonzero(suspect)
    if not len(at):
        return equal
    known: set[str] = set()
    if stored is not None and stored.num_rows:
        whole = complete_rows(table, stored[ROW_ID].to_pylist())
        known.update(content_keys(edge, whole).to_pylist())
    if beside is not None:
        known.update(content_keys(edge, beside).to_pylist())
    for position, key in zip(
        at.tolist(), content_keys(edge, rows.take(pa.array(at))).to_pylist(), strict=True
    ):
        equal[position] = key in known
        known.add(key)
    return equal


class _Pairs:
    """The pairs of ends of some edges, as one number each."""

    def __init__(self, rows: pa.Table) -> None:
        self.sources = as_array(rows[SRC]).unique()
        self._targets = as_array(rows[DST]).unique()
        self.codes = self.codes_of(rows)
        _, inverse, counts = np.unique(self.codes, return_inverse=True, return_counts=True)
        self.repeated: Mask = counts[inverse] > 1

    def codes_of(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """The numbers of the same pairs; -1 where an end does not occur here."""
        source, target = (
            pc.fill_null(pc.index_in(as_array(rows[name]), value_set=known), -1)
            .to_numpy()
            .astype(np.int64)
            for name, known in ((SRC, self.sources), (DST, self._targets))
        )
        codes = source * len(self._targets) + target
        return np.where((source < 0) | (target < 0), -1, codes)

    def holds(self, rows: pa.Table) -> Mask:
        return np.isin(self.codes_of(rows), self.codes)


def _stored_between(table: PinnedTable, pairs: _Pairs, superseded: pa.Array) -> pa.Table | None:
    """The stored edges that have the ends of one of the pairs."""
    if not table.rows or not len(pairs.codes):
        return None
    condition = value_filter(SRC, pairs.sources)
    found = table.scan(["id", SRC, DST], condition, with_row_id=True)
    found = found.filter(pa.array(pairs.holds(found)))
    return found.filter(pc.invert(pc.is_in(found["id"], value_set=superseded)))


# -- what a merge takes away -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replaced:
    """The stored rows that merged ones replace, null for new ones; and how many values are lost."""

    row_ids: pa.Array
    values_nulled: int


def replaced_rows(owner: NodeType | EdgeType, rows: pa.Table, table: PinnedTable) -> Replaced:
    """Look stored rows up by id, and count their values where the merged row has null."""
    names = [name for name in owner.properties if rows[name].null_count]
    ids = as_array(rows["id"])
    found = table.validity(names, value_filter("id", ids))
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
