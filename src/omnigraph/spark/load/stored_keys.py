"""The stored side of a load's checks: columns of stored rows, shelved like those of the input.

The driver says which columns of which types are needed and by which values they are divided; tasks
read a few fragments each. Rows that the load certainly does not ask for by id are divided by their
values at once. A bucket then answers for its share of the stored rows as a snapshot answers for all
of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.edge_content import content_keys
from omnigraph.constraints.image import empty_ids
from omnigraph.lang.schema import SRC, EdgeType, NodeType
from omnigraph.spark.load.bloom_filter import Asked
from omnigraph.spark.load.match_stored import CONTENT
from omnigraph.spark.load.partitions import fragment_groups
from omnigraph.spark.load.shuffle import Shelf, Shelving
from omnigraph.spark.load.stage import Site, shelve_tuples
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable, TableRef

ROWS_PER_TASK: Final = 1 << 20
"""Stored rows that one task reads: some columns of them, some hundred megabytes at most, and a
machine of a few cores still divides a table of some million rows evenly."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table to shelve: some columns of a type, divided by one of them, by a unique tuple or by
    the content of edges.

    ``located`` adds where each row is stored.
    """

    name: str
    key: str
    columns: tuple[str, ...]
    by: str | tuple[str, ...]
    located: bool = False


@dataclass(frozen=True, slots=True)
class StoredTask:
    site: Site
    ref: TableRef
    fragment_ids: tuple[int, ...]
    wanted: tuple[Wanted, ...]
    asked: Asked | None = None


def shelve_stored(task: StoredTask) -> Shelf:
    """Carry one task out."""
    site, table = task.site, task.site.tables.open(task.ref)
    located = any(item.located for item in task.wanted)
    # Rows that will be read again, by row id.
    whole = located and (site.assigned is not None or site.mode == "upsert")
    rows = table.scan(
        sorted({name for item in task.wanted for name in item.columns}),
        fragment_ids=task.fragment_ids,
        with_row_id=whole or any(item.by == CONTENT for item in task.wanted),
        with_row_address=located,
    )
    shelving = Shelving(site.buckets)
    for item in task.wanted:
        places = [name for name in (ROW_ID, ADDRESS) if item.located and name in rows.column_names]
        owner, chosen = site.schema.type(item.key), rows.select([*item.columns, *places])
        if item.by == CONTENT:
            _shelve_content(task, item, table, rows, shelving)
        elif item.by == "id":
            _shelve_asked(task, item, owner, chosen, shelving)
        elif isinstance(item.by, str):
            shelving.add(item.name, chosen, chosen[item.by])
        else:
            shelve_tuples(shelving, item.name, owner, item.by, rows)
    return shelving.write(site.objects, f"{site.prefix}/stored")


def _shelve_asked(
    task: StoredTask,
    item: Wanted,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    shelving: Shelving,
) -> None:
    """Rows by id, as far as anybody may ask for them; the others stay, whatever is written."""
    may_be = None if task.asked is None else task.asked.may_be(item.key, rows["id"])
    if may_be is not None:
        shelve_stored_values(shelving, owner, rows.filter(pa.array(~may_be)), empty_ids())
        rows = rows.filter(pa.array(may_be))
    shelving.add(item.name, rows, rows["id"])


def _shelve_content(
    task: StoredTask, item: Wanted, table: PinnedTable, rows: pa.Table, shelving: Shelving
) -> None:
    """The content of stored edges, as far as anybody may ask for it, with their addresses."""
    edge = task.site.schema.type(item.key)
    assert isinstance(edge, EdgeType)
    whole = rows
    if any(column.type.is_blob for column in edge.columns()):
        whole = complete_rows(table, rows[ROW_ID].to_pylist())
    content = content_keys(edge, whole)
    found = pa.table({CONTENT: content, ADDRESS: rows[ADDRESS]})
    may_be = None if task.asked is None else task.asked.may_be(f"content/{item.key}", content)
    if may_be is not None:
        found = found.filter(pa.array(may_be))
    shelving.add(item.name, found, found[CONTENT])


def shelve_stored_values(
    shelving: Shelving, owner: NodeType | EdgeType, stored: pa.Table, superseded: pa.Array
) -> None:
    """Stored rows that stay, by the values that checks ask for; of others, the vacated sources."""
    names = set(stored.column_names)
    sources = isinstance(owner, EdgeType) and SRC in names
    unique = [item for item in enumerate(owner.unique) if set(item[1]) <= names]
    if not sources and not unique:
        return
    gone = pc.is_in(stored["id"], value_set=superseded)
    stays = stored.filter(pc.invert(gone))
    if sources:
        shelving.add(f"stored-src/{owner.key}", stays.select([SRC]), stays[SRC])
        left = stored.filter(gone).select([SRC])
        shelving.add(f"vacated/{owner.key}", left, left[SRC])
    for number, columns in unique:
        shelve_tuples(shelving, f"stored-unique/{owner.key}/{number}", owner, columns, stays)


def stored_tasks(
    site: Site, refs: Mapping[str, TableRef], wanted: Sequence[Wanted], asked: Asked | None = None
) -> list[StoredTask]:
    """The tasks that shelve everything wanted, each over fragments of one type."""
    tasks: list[StoredTask] = []
    for key in sorted({item.key for item in wanted}):
        ref = refs[key]
        mine = tuple(item for item in wanted if item.key == key)
        groups = fragment_groups(site.tables.open(ref), ROWS_PER_TASK)
        tasks += [StoredTask(site, ref, group, mine, asked) for group in groups]
    return tasks


class StoredBucket:
    """What a bucket knows of stored rows, by type key; implements ``constraints.StoredTypes``."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables

    def count(self, key: str) -> int:
        found = self._tables.get(key)
        return 0 if found is None else int(found.num_rows)

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        return self._tables[key].select(list(columns))

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """All candidates of this bucket; for strings exactly the matching rows."""
        found = self._tables[key]
        if pa.types.is_string(values.type):
            found = found.filter(pc.is_in(found[column], value_set=values))
        return found.select(list(columns))
