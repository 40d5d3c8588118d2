"""The stored side of a load's checks: columns of stored rows, shuffled like those of the input.

The driver plans which columns are read and which values they are partitioned by
(``check_plan.stored_projections``); each task scans some fragments. Rows whose ids are not in the
load's Bloom filter skip the shuffle by id and are partitioned by their values at once.
``StoredBucket`` serves the rows of one bucket to the constraint checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.bloom_filter import BloomFilters
from omnigraph.bulk.load.hot_values import counted
from omnigraph.bulk.load.match_stored import CONTENT
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.bulk.load.shuffle import ShuffleFile, ShuffleWriter
from omnigraph.bulk.load.stage import LoadContext, shuffle_tuples
from omnigraph.constraints.edge_content import content_keys
from omnigraph.constraints.image import empty_ids
from omnigraph.lang.schema import SRC, EdgeType, NodeType
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable, TableRef

ROWS_PER_TASK: Final = 1 << 20
"""Stored rows that one task reads: at most some hundred megabytes of columns, and still several
tasks for a table of some million rows."""


@dataclass(frozen=True, slots=True)
class StoredProjection:
    """Columns of a stored type to shuffle as the table ``name``.

    ``by`` is the partition key: a column, the columns of a unique constraint, or the content of
    edges. ``located`` adds row addresses.
    """

    name: str
    key: str
    columns: tuple[str, ...]
    by: str | tuple[str, ...]
    located: bool = False


@dataclass(frozen=True, slots=True)
class StoredScan:
    """A scan of stored types: what all its tasks share."""

    context: LoadContext
    refs: Mapping[str, TableRef]
    projections: tuple[StoredProjection, ...]
    filters: BloomFilters | None = None


@dataclass(frozen=True, slots=True)
class StoredScanTask:
    """Some fragments of one type."""

    key: str
    fragment_ids: tuple[int, ...]


def shuffle_stored(scan: StoredScan, task: StoredScanTask) -> ShuffleFile | None:
    """Scan some fragments and shuffle the projected columns (task)."""
    context, table = scan.context, scan.context.tables.open(scan.refs[task.key])
    projections = [item for item in scan.projections if item.key == task.key]
    located = any(item.located for item in projections)
    # These rows are read again, by row id.
    whole = located and (context.assigned is not None or context.mode == "upsert")
    rows = table.scan(
        sorted({name for item in projections for name in item.columns}),
        fragment_ids=task.fragment_ids,
        with_row_id=whole or any(item.by == CONTENT for item in projections),
        with_row_address=located,
    )
    shuffle = ShuffleWriter(context.buckets)
    for item in projections:
        places = [name for name in (ROW_ID, ADDRESS) if item.located and name in rows.column_names]
        owner, chosen = context.schema.type(item.key), rows.select([*item.columns, *places])
        if item.by == CONTENT:
            _shuffle_content(scan, item, table, rows, shuffle)
        elif item.by == "id":
            _shuffle_by_id(scan, item, owner, chosen, shuffle)
        elif isinstance(item.by, str):
            chosen = counted(chosen, SRC) if item.columns == (SRC,) else chosen
            shuffle.add(item.name, chosen, chosen[item.by])
        else:
            shuffle_tuples(shuffle, item.name, owner, item.by, rows)
    return shuffle.write(context.objects, f"{context.prefix}/stored")


def _shuffle_by_id(
    scan: StoredScan,
    item: StoredProjection,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    shuffle: ShuffleWriter,
) -> None:
    """Shuffle by id the rows that pass the Bloom filter; the others by their values at once."""
    may_contain = None if scan.filters is None else scan.filters.may_contain(item.key, rows["id"])
    if may_contain is not None:
        shuffle_stored_values(shuffle, owner, rows.filter(pa.array(~may_contain)), empty_ids())
        rows = rows.filter(pa.array(may_contain))
    shuffle.add(item.name, rows, rows["id"])


def _shuffle_content(
    scan: StoredScan,
    item: StoredProjection,
    table: PinnedTable,
    rows: pa.Table,
    shuffle: ShuffleWriter,
) -> None:
    """Shuffle the content keys and addresses of stored edges that pass the Bloom filter."""
    edge = scan.context.schema.type(item.key)
    assert isinstance(edge, EdgeType)
    whole = rows
    if any(column.type.is_blob for column in edge.columns()):
        whole = complete_rows(table, rows[ROW_ID].to_pylist())
    content = content_keys(edge, whole)
    found = pa.table({CONTENT: content, ADDRESS: rows[ADDRESS]})
    may_contain = (
        None if scan.filters is None else scan.filters.may_contain(f"content/{item.key}", content)
    )
    if may_contain is not None:
        found = found.filter(pa.array(may_contain))
    shuffle.add(item.name, found, found[CONTENT])


def shuffle_stored_values(
    shuffle: ShuffleWriter, owner: NodeType | EdgeType, stored: pa.Table, superseded: pa.Array
) -> None:
    """Shuffle stored rows by the values that checks compare.

    Of rows whose id is in ``superseded`` only the source node is kept, to recount its edges.
    """
    names = set(stored.column_names)
    sources = isinstance(owner, EdgeType) and SRC in names
    unique = [item for item in enumerate(owner.unique) if set(item[1]) <= names]
    if not sources and not unique:
        return
    gone = pc.is_in(stored["id"], value_set=superseded)
    stays = stored.filter(pc.invert(gone))
    if sources:
        kept, left = counted(stays, SRC), counted(stored.filter(gone), SRC)
        shuffle.add(f"stored-src/{owner.key}", kept, kept[SRC])
        shuffle.add(f"vacated/{owner.key}", left, left[SRC])
    for number, columns in unique:
        shuffle_tuples(shuffle, f"stored-unique/{owner.key}/{number}", owner, columns, stays)


def stored_tasks(scan: StoredScan) -> list[StoredScanTask]:
    """One task per group of fragments of each projected type."""
    tasks: list[StoredScanTask] = []
    for key in sorted({item.key for item in scan.projections}):
        groups = fragment_groups(scan.context.tables.open(scan.refs[key]), ROWS_PER_TASK)
        tasks += [StoredScanTask(key, group) for group in groups]
    return tasks


class StoredBucket:
    """Stored rows of one bucket, by type key; implements ``constraints.StoredTypes``."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables

    def count(self, key: str) -> int:
        found = self._tables.get(key)
        return 0 if found is None else int(found.num_rows)

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        return self._tables[key].select(list(columns))

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The matching rows if the column is a string, otherwise all rows of the bucket."""
        found = self._tables[key]
        if pa.types.is_string(values.type):
            found = found.filter(pc.is_in(found[column], value_set=values))
        return found.select(list(columns))
