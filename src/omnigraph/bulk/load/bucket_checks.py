"""Constraint checks over a whole load, on executors: some buckets of ids or values per task.

First by id: duplicate ids, ids that exist already; in a merge also which stored rows are replaced.
Then by value: unique tuples, ends of edges, deleted nodes with stored edges, cardinality. The rules
and their messages are those of ``constraints``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.assign import write_assigned
from omnigraph.bulk.deletion import RowAddresses, keep_addresses
from omnigraph.bulk.load.match_stored import (
    CONTENT,
    UpsertBucket,
    null_positions,
    unmatched,
    values_lost,
    with_content,
)
from omnigraph.bulk.load.shuffle import (
    Shuffled,
    ShuffleFile,
    ShuffleWriter,
)
from omnigraph.bulk.load.stage import FINAL, LoadContext, shuffle_values, without_control_columns
from omnigraph.bulk.load.stored_keys import StoredBucket, shuffle_stored_values
from omnigraph.constraints import NULLED, Report, TypeImage
from omnigraph.constraints.edge_checks import (
    CountedValues,
    check_counts,
    check_dangling_edges,
    check_end,
    deleted_ids,
    ends,
    incident,
)
from omnigraph.constraints.image import empty_ids, last_per_id, without
from omnigraph.constraints.unique_checks import check_ids, check_repeated, check_taken
from omnigraph.ingest.row_collector import in_order, places
from omnigraph.lang.schema import SRC, EdgeCardinality, EdgeType, NodeType
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.staging.rows import with_hidden, write_rows
from omnigraph.storage.lance.tables import TableRef

Order = tuple[Any, ...]
"""Sort key of a report: violations come in the order of the evaluator in process."""


@dataclass(frozen=True, slots=True)
class LoadChecks:
    """What the tasks of one round of checks share."""

    context: LoadContext
    shuffled: Shuffled
    files: Mapping[int, str]
    lines_before: Mapping[int, int]
    written: frozenset[str]
    staging: bool = True
    overridden: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    stored: Mapping[str, TableRef] = field(default_factory=dict)
    """The versions of the tables that the load is checked against."""
    matched: frozenset[str] = frozenset()
    """Edge types with rows that have no id and are compared by content."""
    replaced: Mapping[str, Sequence[RowAddresses]] = field(default_factory=dict)
    """Addresses of stored rows that rows with ids replace."""

    def report(self) -> Report:
        return Report(self.files, self.lines_before, self.context.shown_max)


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows of one type that a merge wrote, and addresses of the rows they replace."""

    fragments: list[Any] = field(default_factory=list)
    addresses: list[RowAddresses] = field(default_factory=list)


@dataclass(slots=True)
class CheckedBuckets:
    """The result of one task.

    ``overridden``: positions of rows whose id occurs again later, by type. The load fails because
    of them; the remaining checks apply to the last row of an id.
    """

    reports: list[tuple[Order, Report]] = field(default_factory=list)
    merged: dict[str, MergedRows] = field(default_factory=dict)
    overridden: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)
    shuffled: ShuffleFile | None = None
    values_nulled: int = 0
    edges_repeated: int = 0

    def note(self, order: Order, report: Report) -> None:
        if report:
            self.reports.append((order, report))

    def merge(
        self,
        checks: LoadChecks,
        key: str,
        fragments: Sequence[Any],
        addresses: np.ndarray[Any, Any] | None,
    ) -> None:
        """Note rows that were written, and the stored rows that they replace."""
        merged, context = self.merged.setdefault(key, MergedRows()), checks.context
        merged.fragments.extend(fragments)
        if addresses is not None and len(addresses):
            merged.addresses.append(keep_addresses(context.objects, context.prefix, addresses))


# -- by id -----------------------------------------------------------------------------------------


def check_bucket_ids(task: LoadChecks, buckets: range) -> CheckedBuckets:
    """Check the ids of some buckets; write deferred rows and find the rows they replace (task)."""
    context = task.context
    checked, shuffle = CheckedBuckets(), ShuffleWriter(context.buckets)
    for tables in task.shuffled.read(context.objects, buckets, ("ids/", "rows/", "stored/")):
        _check_ids(task, tables, shuffle, checked)
    checked.shuffled = shuffle.write(context.objects, f"{context.prefix}/values")
    return checked


def _check_ids(
    task: LoadChecks,
    tables: Mapping[str, pa.Table],
    shuffle: ShuffleWriter,
    checked: CheckedBuckets,
) -> None:
    context = task.context
    for key in sorted(task.written):
        kind = "rows" if key in context.deferred else "ids"
        owner, rows = context.schema.type(key), tables.get(f"{kind}/{key}")
        stored = tables.get(f"stored/{key}")
        if rows is None:
            if stored is not None:
                shuffle_stored_values(shuffle, owner, stored, empty_ids())
            continue
        if context.mode == "upsert":
            _upsert(task, owner, rows, stored, shuffle, checked)
            continue
        report = task.report()
        image = TypeImage(
            rows,
            replaces_all=context.mode == "overwrite",
            must_be_new=context.mode == "append",
            last_wins=context.mode == "merge" and not owner.key_properties,
        )
        known = StoredBucket({} if stored is None else {key: stored})
        check_ids(owner, image, known, report)
        checked.note((1, key, 0), report)
        if stored is not None and context.mode != "overwrite":
            shuffle_stored_values(shuffle, owner, stored, image.written_ids)
        if key in context.deferred:
            marked = _mark_final(rows)
            shuffle_values(context, shuffle, owner, marked)
            if task.staging and not report:
                checked.merge(task, key, *_merge(task, owner, marked, stored))
                checked.values_nulled += _lost(task, owner, marked, stored)
            if key in task.matched and isinstance(owner, EdgeType):
                final = with_content(owner, marked.filter(marked[FINAL])).select([CONTENT])
                shuffle.add(f"named-content/{key}", final, final[CONTENT])
        elif "key" in report.rules:
            marked = _mark_final(rows)
            earlier = places(marked.filter(pc.invert(marked[FINAL])))
            checked.overridden.setdefault(key, []).append(earlier)
        elif context.mode == "merge":
            checked.merge(task, key, (), _replaced(rows, stored))
            checked.values_nulled += _lost(task, owner, rows, stored)


def _upsert(
    task: LoadChecks,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    stored: pa.Table | None,
    shuffle: ShuffleWriter,
    checked: CheckedBuckets,
) -> None:
    """Apply the upserted rows to the stored ones, write them and shuffle their values."""
    context, report = task.context, task.report()
    source = context.tables.open(task.stored[owner.key]) if owner.key in task.stored else None
    bucket = UpsertBucket(
        owner, source, context.target(owner.key), matches_edges=owner.key in task.matched
    )
    hit("task.before_files")
    bucket.run(rows, stored, shuffle, report, staging=task.staging)
    hit("task.after_files")
    checked.note((0, owner.key), report)
    written = pa.concat_tables(bucket.written)
    shuffle_values(context, shuffle, owner, written)
    if stored is not None:
        shuffle_stored_values(shuffle, owner, stored, as_array(written["id"]))
    addresses = np.concatenate(bucket.replaced) if bucket.replaced else None
    checked.merge(task, owner.key, bucket.fragments, addresses)


def _lost(
    task: LoadChecks, owner: NodeType | EdgeType, rows: pa.Table, stored: pa.Table | None
) -> int:
    """How many stored values a merge sets to null."""
    if stored is None or task.context.assigned is not None:
        return 0
    if FINAL in rows.column_names:
        rows = rows.filter(rows[FINAL])
        rows = rows.append_column(NULLED, null_positions(owner, rows))
    if NULLED not in rows.column_names:
        return 0
    return values_lost(owner, rows, stored, task.context.tables.open(task.stored[owner.key]))


# -- edges by content ------------------------------------------------------------------------------


def match_bucket_edges(task: LoadChecks, buckets: range) -> CheckedBuckets:
    """Compare edges without id by content (task): an upsert adds the new ones, a merge counts
    duplicates."""
    context = task.context
    checked, shuffle = CheckedBuckets(), ShuffleWriter(context.buckets)
    names = ("fresh/", "named-content/", "stored-content/")
    for tables in task.shuffled.read(context.objects, buckets, names):
        for key in sorted(task.matched):
            if f"fresh/{key}" in tables:
                _match_edges(task, key, tables, shuffle, checked)
    checked.shuffled = shuffle.write(context.objects, f"{context.prefix}/matched")
    return checked


def _match_edges(
    task: LoadChecks,
    key: str,
    tables: Mapping[str, pa.Table],
    shuffle: ShuffleWriter,
    checked: CheckedBuckets,
) -> None:
    context, owner, fresh = task.context, task.context.schema.type(key), tables[f"fresh/{key}"]
    fresh = in_order(fresh) if context.mode == "upsert" else fresh
    named, stored = tables.get(f"named-content/{key}"), tables.get(f"stored-content/{key}")
    if stored is not None:
        for part in task.replaced.get(key, ()):
            gone = np.isin(stored[ADDRESS].to_numpy(), part.read(context.objects))
            stored = stored.filter(pa.array(~gone))
    new = unmatched(fresh, named, stored)
    checked.edges_repeated += fresh.num_rows - new.num_rows
    if context.mode == "upsert" and new.num_rows:
        shuffle_values(context, shuffle, owner, new)
        if task.staging:
            hit("task.before_files")
            rows = without_control_columns(new)
            checked.merge(task, key, write_rows(context.target(key), rows), None)
            hit("task.after_files")


def _mark_final(rows: pa.Table) -> pa.Table:
    """The rows with the column ``FINAL``: true for the last row of an id."""
    numbered = rows.append_column("#at", pa.array(np.arange(rows.num_rows)))
    mask = np.zeros(rows.num_rows, dtype=bool)
    mask[last_per_id(numbered.select(["id", "#at"]))["#at"].to_numpy()] = True
    return rows.append_column(FINAL, pa.array(mask))


def _replaced(rows: pa.Table, stored: pa.Table | None) -> np.ndarray[Any, Any] | None:
    """Addresses of the stored rows that these replace."""
    if stored is None:
        return None
    found = stored.filter(pc.is_in(stored["id"], value_set=as_array(rows["id"])))
    return np.asarray(found[ADDRESS], dtype=np.uint64)


def _merge(
    task: LoadChecks, owner: NodeType | EdgeType, marked: pa.Table, stored: pa.Table | None
) -> tuple[list[Any], np.ndarray[Any, Any] | None]:
    """Write the rows of a bucket; returns the files and the addresses of the replaced rows.

    When only some properties are assigned, rows that no longer exist are left out.
    """
    context, rows = task.context, without_control_columns(marked.filter(marked[FINAL]))
    table = context.target(owner.key)
    fragments: list[Any] = []
    addresses: np.ndarray[Any, Any] | None = None
    if stored is not None:
        stored = stored.filter(pc.is_in(stored["id"], value_set=as_array(rows["id"])))
    hit("task.before_files")
    if stored is not None and stored.num_rows:
        located = stored.take(pc.sort_indices(stored[ADDRESS]))
        addresses = located[ADDRESS].to_numpy().astype(np.uint64)
        if context.assigned is None:
            rows = with_hidden(table, rows, addresses)
        else:
            source = context.tables.open(task.stored[owner.key])
            which = context.assigned[owner.key]
            fragments, kept = write_assigned(source, table, located, rows, which)
            addresses = addresses[kept]
    if rows.num_rows and context.assigned is None:
        fragments = write_rows(table, rows)
    hit("task.after_files")
    return fragments, addresses


# -- by value --------------------------------------------------------------------------------------


def check_bucket_values(task: LoadChecks, buckets: range) -> CheckedBuckets:
    """Check some buckets by value (task): unique tuples, ends, deleted nodes, cardinality."""
    checked = CheckedBuckets()
    types = [task.context.schema.type(key) for key in sorted(task.written)]
    for tables in task.shuffled.read(task.context.objects, buckets):
        for owner in types:
            _check_unique(task, owner, tables, checked)
        for owner in types:
            if isinstance(owner, EdgeType):
                _check_ends(task, owner, tables, checked)
                _check_cardinality(task, owner, tables, checked)
            elif task.context.mode == "overwrite":
                _check_deleted_nodes(task, owner, tables, checked)
    return checked


def _check_unique(
    task: LoadChecks,
    owner: NodeType | EdgeType,
    tables: Mapping[str, pa.Table],
    checked: CheckedBuckets,
) -> None:
    for number, columns in enumerate(owner.unique):
        rows = tables.get(f"unique/{owner.key}/{number}")
        if rows is None:
            continue
        rows = in_order(_with_final(task, owner.key, rows))
        report = task.report()
        check_repeated(owner, columns, rows, report)
        checked.note((1, owner.key, 1, number, 0), report)
        stored = tables.get(f"stored-unique/{owner.key}/{number}")
        if stored is not None:
            final = rows.filter(_final(rows))
            report = task.report()
            known = StoredBucket({owner.key: stored})
            check_taken(owner, columns, final, empty_ids(), known, report)
            checked.note((1, owner.key, 1, number, 1), report)


def _check_ends(
    task: LoadChecks, edge: EdgeType, tables: Mapping[str, pa.Table], checked: CheckedBuckets
) -> None:
    stored = StoredBucket(_by_key(tables, "stored/"))
    for number, (column, node_key) in enumerate(ends(edge)):
        rows = tables.get(f"ends/{edge.key}/{column}")
        if rows is not None:
            report = task.report()
            rows = in_order(_with_final(task, edge.key, rows))
            rows = rows.filter(_final(rows))
            if "id" not in rows.column_names:
                rows = rows.append_column("id", _nulls(rows.num_rows))
            nodes = _nodes(task, node_key, tables)
            check_end(edge, column, node_key, rows, nodes, stored, report)
            checked.note((2, edge.key, number), report)


def _check_deleted_nodes(
    task: LoadChecks, node: NodeType, tables: Mapping[str, pa.Table], checked: CheckedBuckets
) -> None:
    """Stored edges of types that the load does not write and whose node it deletes."""
    stored = StoredBucket(_by_key(tables, "stored/"))
    gone = deleted_ids(_nodes(task, node.key, tables), node.key, stored)
    if not len(gone):
        return
    for number, (edge, column) in enumerate(incident(task.context.schema, node.key)):
        found = tables.get(f"stored-ends/{edge.key}/{column}")
        if found is not None:
            report = task.report()
            known = StoredBucket({edge.key: found})
            check_dangling_edges(edge, column, node.key, gone, TypeImage(), known, report)
            checked.note((3, node.key, number), report)


def _check_cardinality(
    task: LoadChecks, edge: EdgeType, tables: Mapping[str, pa.Table], checked: CheckedBuckets
) -> None:
    if edge.cardinality == EdgeCardinality():
        return
    nothing = CountedValues(empty_ids(), pa.array([], pa.int64()))
    written, stays = nothing, nothing
    if f"ends/{edge.key}/{SRC}" in tables:
        rows = _with_final(task, edge.key, tables[f"ends/{edge.key}/{SRC}"])
        written = CountedValues.of(rows.filter(_final(rows)), SRC)
    if f"stored-src/{edge.key}" in tables:
        stays = CountedValues.of(tables[f"stored-src/{edge.key}"], SRC)
    vacated = _column(tables, f"vacated/{edge.key}", SRC)
    key = f"node:{edge.source}"
    touched = pa.concat_arrays([written.values, vacated]).unique()
    if key in task.written and task.context.mode == "overwrite":
        stored = StoredBucket(_by_key(tables, "stored/"))
        touched = without(touched, deleted_ids(_nodes(task, key, tables), key, stored))
    report = task.report()
    check_counts(edge, touched, (written, stays), report)
    checked.note((4, edge.key), report)


def _nodes(task: LoadChecks, key: str, tables: Mapping[str, pa.Table]) -> TypeImage:
    """The written ids of a node type in this bucket."""
    rows = tables.get(f"ids/{key}")
    if rows is None:
        rows = pa.table({"id": empty_ids()})
    replaces = key in task.written and task.context.mode == "overwrite"
    return TypeImage(rows, replaces_all=replaces)


def _by_key(tables: Mapping[str, pa.Table], prefix: str) -> dict[str, pa.Table]:
    return {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}


def _column(tables: Mapping[str, pa.Table], name: str, column: str) -> pa.Array:
    found = tables.get(name)
    return empty_ids() if found is None else as_array(found[column])


def _with_final(task: LoadChecks, key: str, rows: pa.Table) -> pa.Table:
    """The rows with the column ``FINAL``, if some rows of the type are overridden."""
    if key not in task.overridden or FINAL in rows.column_names:
        return rows
    return rows.append_column(FINAL, pa.array(~np.isin(places(rows), task.overridden[key])))


def _final(rows: pa.Table) -> Any:
    """A mask of the final rows; rows without the column ``FINAL`` are final."""
    if FINAL not in rows.column_names:
        return pa.repeat(True, rows.num_rows)
    return pc.fill_null(rows[FINAL], True)


def _nulls(count: int) -> pa.Array:
    return pa.nulls(count, pa.string())
