"""The stored side of a load's checks: columns of stored rows, shelved like those of the input.

The driver says which columns of which types are needed and by which values they are divided; tasks
read a few fragments each. A bucket then answers for its share of the stored rows as a snapshot
answers for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.spark.exchange import Shelf, Shelving
from omnigraph.spark.shares import fragment_groups
from omnigraph.spark.stage import Site, shelve_tuples
from omnigraph.storage.places import ADDRESS
from omnigraph.storage.tables import ROW_ID, TableRef

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_TASK: Final = 2 << 20
"""Stored rows that one task reads: some columns of them, a few hundred megabytes at most."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table to shelve: some columns of a type, divided by one of them or by a unique tuple.

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


def shelve_stored(task: StoredTask) -> Shelf:
    """Carry one task out."""
    site, table = task.site, task.site.tables.open(task.ref)
    located = any(item.located for item in task.wanted)
    rows = table.scan(
        sorted({name for item in task.wanted for name in item.columns}),
        fragment_ids=task.fragment_ids,
        with_row_id=located,
        with_row_address=located,
    )
    shelving = Shelving(site.buckets)
    for item in task.wanted:
        names = [*item.columns, *((ROW_ID, ADDRESS) if item.located else ())]
        if isinstance(item.by, str):
            shelving.add(item.name, rows.select(names), rows[item.by])
        else:
            shelve_tuples(shelving, item.name, site.schema.type(item.key), item.by, rows)
    return shelving.write(site.objects, f"{site.prefix}/stored")


def stored_tasks(
    site: Site, refs: Mapping[str, TableRef], wanted: Sequence[Wanted]
) -> list[StoredTask]:
    """The tasks that shelve everything wanted, each over fragments of one type."""
    tasks: list[StoredTask] = []
    for key in sorted({item.key for item in wanted}):
        ref = refs[key]
        mine = tuple(item for item in wanted if item.key == key)
        groups = fragment_groups(site.tables.open(ref), ROWS_PER_TASK)
        tasks += [StoredTask(site, ref, group, mine) for group in groups]
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
        import pyarrow as pa
        import pyarrow.compute as pc

        found = self._tables[key]
        if pa.types.is_string(values.type):
            found = found.filter(pc.is_in(found[column], value_set=values))
        return found.select(list(columns))
