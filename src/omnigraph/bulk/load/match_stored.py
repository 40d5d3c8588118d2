"""Joins of loaded rows with stored rows, on executors: upserts by id, edges by content.

The rules are those of ``ingest/upsert.py``, applied to one bucket of ids or of edge contents. Whole
rows are read and written in batches.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.assign import rows_at_once
from omnigraph.bulk.load.shuffle import ShuffleWriter
from omnigraph.constraints import FILE, LINE, NULLED, Report
from omnigraph.constraints.edge_content import content_keys
from omnigraph.constraints.row_checks import check_required
from omnigraph.ingest.row_collector import in_order, nulled_column
from omnigraph.ingest.upsert import fold_rows, overlay
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.row_delta import ADDRESSES_MAX
from omnigraph.storage.lance.staging.rows import with_hidden, write_rows
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, ROW_ID, PinnedTable

CONTENT: Final = "#content"
"""Column of content keys: equal if and only if the edges are equal."""

LOOKED_UP_MAX: Final = 16 * ADDRESSES_MAX
"""Above this number of rows, whole columns of their fragments are scanned instead."""


def with_content(edge: EdgeType, rows: pa.Table) -> pa.Table:
    return rows.append_column(CONTENT, content_keys(edge, rows))


def null_positions(owner: NodeType | EdgeType, rows: pa.Table) -> pa.Array:
    """For every row, the positions of its null columns."""
    nulls = {n: as_array(rows[n]).is_null() for n in owner.properties if rows[n].null_count}
    return nulled_column(owner, nulls, rows.num_rows)


# -- upserts ---------------------------------------------------------------------------------------


class UpsertBucket:
    """Upserts the rows of one type in one bucket of ids."""

    def __init__(
        self,
        owner: NodeType | EdgeType,
        source: PinnedTable | None,
        target: PinnedTable,
        *,
        matches_edges: bool,
    ) -> None:
        """``source`` is the stored table, ``target`` the table that rows are written for.
        ``matches_edges``: other edges of the type are matched by content."""
        self._owner = owner
        self._source = source
        self._target = target
        self._matches = matches_edges
        self.fragments: list[Any] = []
        self.replaced: list[np.ndarray[Any, Any]] = []
        self.written: list[pa.Table] = []
        """The written rows, reduced to the columns that are checked."""

    def run(
        self,
        rows: pa.Table,
        stored: pa.Table | None,
        shuffle: ShuffleWriter,
        report: Report,
        *,
        staging: bool,
    ) -> None:
        """Upsert the rows; ``stored`` has the row ids and addresses of stored ids."""
        rows = fold_rows(self._owner, in_order(rows))
        at = pa.nulls(rows.num_rows, pa.int32())
        row_ids = places = pa.nulls(rows.num_rows, pa.uint64())
        if stored is not None:
            at = pc.index_in(as_array(rows["id"]), value_set=as_array(stored["id"]))
            row_ids = as_array(stored[ROW_ID]).take(at)
            places = as_array(stored[ADDRESS]).take(at)
        step = rows_at_once(self._target.schema)
        for start in range(0, rows.num_rows, step):
            self._some(
                rows.slice(start, step),
                row_ids.slice(start, step),
                places.slice(start, step),
                shuffle,
                report,
                staging,
            )

    def _some(
        self,
        rows: pa.Table,
        row_ids: pa.Array,
        places: pa.Array,
        shuffle: ShuffleWriter,
        report: Report,
        staging: bool,
    ) -> None:
        owner, source = self._owner, self._source or self._target
        applied = overlay(owner, rows, source, row_ids)
        found = applied.rows
        check_required(owner, found.filter(pc.is_null(applied.row_ids)), report)
        replaced = places.take(pc.index_in(applied.row_ids.drop_null(), value_set=row_ids))
        addresses = replaced.to_numpy().astype(np.uint64)
        if isinstance(owner, EdgeType) and self._matches:
            for part in (found, applied.same):
                known = with_content(owner, part).select([CONTENT])
                shuffle.add(f"named-content/{owner.key}", known, known[CONTENT])
        unique = {name for columns in owner.unique for name in columns}
        ends = (SRC, DST) if isinstance(owner, EdgeType) else ()
        self.written.append(found.select(sorted({"id", FILE, LINE, *ends, *unique})))
        if staging and not report and found.num_rows:
            plain = found.drop_columns([FILE, LINE])
            self.fragments += write_rows(self._target, with_hidden(source, plain, addresses))
            self.replaced.append(addresses)


# -- edges by their content ------------------------------------------------------------------------


def unmatched(fresh: pa.Table, named: pa.Table | None, stored: pa.Table | None) -> pa.Table:
    """New edges of one bucket that differ from all earlier, named and stored edges."""
    known: set[str] = set() if named is None else set(named[CONTENT].to_pylist())
    if stored is not None:
        known.update(stored[CONTENT].to_pylist())
    keep = []
    for key in fresh[CONTENT].to_pylist():
        keep.append(key not in known)
        known.add(key)
    return fresh.filter(pa.array(keep, pa.bool_()))


# -- values that a merge sets to null --------------------------------------------------------------


def values_lost(
    owner: NodeType | EdgeType, rows: pa.Table, stored: pa.Table, table: PinnedTable
) -> int:
    """How many stored values are replaced by null.

    ``rows`` list their null columns in ``NULLED``; ``stored`` has the addresses of stored ids.
    """
    at = pc.index_in(as_array(rows["id"]), value_set=as_array(stored["id"]))
    nulled = as_array(rows[NULLED])
    chosen = pc.and_(pc.is_valid(at), pc.greater(pc.list_value_length(nulled), 0))
    at, nulled = at.filter(chosen), nulled.filter(chosen)
    if not len(at):
        return 0
    places = as_array(stored[ADDRESS]).take(at).to_numpy().astype(np.uint64)
    positions, owners = nulled.flatten().to_numpy(), pc.list_parent_indices(nulled).to_numpy()
    columns = [column.name for column in owner.columns()]
    names = [columns[n] for n in np.unique(positions).tolist()]
    lost = 0
    for found in _validity_at(table, places, names):
        where = pc.index_in(pa.array(places), value_set=as_array(found[ADDRESS]))
        for name in names:
            rows_at = where.take(pa.array(owners[positions == columns.index(name)]))
            lost += pc.sum(as_array(found[name]).take(rows_at.drop_null())).as_py() or 0
    return lost


def _validity_at(
    table: PinnedTable, places: np.ndarray[Any, Any], names: list[str]
) -> list[pa.Table]:
    def fragments(part: np.ndarray[Any, Any]) -> list[int]:
        found: list[int] = np.unique(part >> np.uint64(FRAGMENT_SHIFT)).tolist()
        return found

    if len(places) > LOOKED_UP_MAX:
        return [table.validity(names, fragment_ids=fragments(places))]
    tables = []
    for start in range(0, len(places), ADDRESSES_MAX):
        part = places[start : start + ADDRESSES_MAX]
        condition = f"{ADDRESS} IN ({', '.join(map(str, part.tolist()))})"
        tables.append(table.validity(names, condition, fragment_ids=fragments(part)))
    return tables
