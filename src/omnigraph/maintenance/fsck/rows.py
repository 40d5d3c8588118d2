"""Checks of rows: readable, unique ids and values, edges with both ends, consistent indexes.

Rows are read in batches; only ids, unique values and ends are held in memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.maintenance.fsck.findings import Damage, FsckFinding
from omnigraph.maintenance.fsck.tables import TableCheck
from omnigraph.storage.lance.blobs import blob_values, is_blob_type
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.lookup import value_filter
from omnigraph.storage.lance.tables import PinnedTable

BATCH_ROWS: Final = 8_192
SAMPLES: Final = 16
"""Values per index that are looked up by index and by scan."""
SHOWN_MAX: Final = 5
"""Ids that a message lists."""


def check_rows(
    check: TableCheck, table: PinnedTable, owner: NodeType | EdgeType
) -> list[FsckFinding]:
    """Read all rows of a table; check blobs and uniqueness."""
    found: list[FsckFinding] = []
    blobs = [field.name for field in table.schema if is_blob_type(field.type)]
    plain = [name for name in table.schema.names if name not in blobs]
    try:
        with translated(f"reading {table.ref.path}"):
            for _ in table.dataset.to_batches(columns=plain, batch_size=BATCH_ROWS):
                pass
    except OmnigraphError as problem:
        return [check.found(Damage.ROWS_UNREADABLE, problem.message)]
    for column in blobs:
        found += _check_blobs(check, table, column)
    found += _check_unique(check, table, ["id"], Damage.DUPLICATE_ID)
    for columns in owner.unique:
        found += _check_unique(check, table, list(columns), Damage.DUPLICATE_VALUE)
    return found


def check_ends(
    check: TableCheck, table: PinnedTable, owner: EdgeType, nodes: dict[str, pa.Array]
) -> Iterator[FsckFinding]:
    """Check that both ends of every edge exist; ``nodes`` are the node ids by type key."""
    for end, type_name in ((SRC, owner.source), (DST, owner.target)):
        ids = nodes.get(f"node:{type_name}")
        if ids is None:
            continue
        column = table.scan(["id", end])
        loose = column.filter(pc.invert(pc.is_in(column[end], value_set=ids)))
        if loose.num_rows:
            named = ", ".join(loose["id"].slice(0, SHOWN_MAX).to_pylist())
            message = f"{loose.num_rows} edges have a {end} that is not a {type_name}: {named}"
            yield check.found(Damage.ORPHAN_EDGE, message)


def check_indexes(check: TableCheck, table: PinnedTable) -> Iterator[FsckFinding]:
    """Compare index and scan for sampled values of every indexed column."""
    kinds = {index.name: index for index in table.dataset.describe_indices()}
    for name, index in sorted(kinds.items()):
        if index.index_type.upper() != "BTREE":
            continue
        column = index.field_names[0]
        problem = _disagreement(table, column)
        if problem is not None:
            message = f"index {name} and a scan give different rows for {problem}"
            yield check.found(Damage.INDEX_DISAGREES, message)


def _disagreement(table: PinnedTable, column: str) -> str | None:
    values = pc.unique(table.scan([column])[column]).drop_null()
    if not len(values):
        return None
    chosen = random.Random(len(values)).sample(range(len(values)), min(SAMPLES, len(values)))
    for at in chosen:
        condition = value_filter(column, values.slice(at, 1))
        if condition is None:
            return None  # SQL has no exact literals of this type
        try:
            by_index = _row_ids(table, condition, use_index=True)
        except OmnigraphError as problem:
            return f"{condition} ({problem.message})"
        if by_index != _row_ids(table, condition, use_index=False):
            return condition
    return None


def _row_ids(table: PinnedTable, condition: str, *, use_index: bool) -> list[int]:
    with translated(f"reading {table.ref.path}"):
        found = table.dataset.scanner(
            columns=[], filter=condition, with_row_id=True, use_scalar_index=use_index
        ).to_table()
    return sorted(found["_rowid"].to_pylist())


def _check_blobs(check: TableCheck, table: PinnedTable, column: str) -> Iterator[FsckFinding]:
    found = table.scan([column], with_row_id=True)
    row_ids, descriptors = found["_rowid"].to_pylist(), found[column].to_pylist()
    for at, row_id in enumerate(row_ids):
        try:
            blob_values(table, column, [descriptors[at]], [row_id])
        except OmnigraphError as problem:
            message = f"a value of {column} cannot be read: {problem.message}"
            yield check.found(Damage.BLOB_MISSING, message)
            return


def _check_unique(
    check: TableCheck, table: PinnedTable, columns: list[str], damage: Damage
) -> Iterator[FsckFinding]:
    rows: Any = table.scan(columns)
    for column in columns:
        rows = rows.filter(pc.is_valid(rows[column]))
    # By position: a property may have the name that Arrow gives to the counts.
    counts = rows.group_by(columns).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts.column(len(columns)), 1))
    if twice.num_rows:
        named = ", ".join(str(value) for value in twice.column(0).slice(0, SHOWN_MAX).to_pylist())
        what = "ids" if damage is Damage.DUPLICATE_ID else f"values of {', '.join(columns)}"
        message = f"{twice.num_rows} {what} occur more than once: {named}"
        yield check.found(damage, message)
