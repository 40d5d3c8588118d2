"""Marking the rows that a write takes away as deleted: few on the driver, many on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnigraph.model.ids import new_ulid
from omnigraph.spark.load.partitions import open_store
from omnigraph.spark.tasks import Tasks
from omnigraph.storage.lance.staging.rows import FRAGMENT_SHIFT, delete_addresses
from omnigraph.storage.lance.tables import PinnedTable, TableRef
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects

DRIVER_ROWS_MAX: Final = 2_000_000
"""Up to here a job would cost more than the work: some tenths of a second for a million rows."""


@dataclass(frozen=True, slots=True)
class DeletionTask:
    """Some fragments of a table, and the object that lists the addresses in them."""

    graph_uri: str
    ref: TableRef
    path: str


def delete_replaced(
    tasks: Tasks,
    graph_uri: str,
    prefix: str,
    table: PinnedTable,
    addresses: Sequence[np.ndarray[Any, Any]],
) -> tuple[dict[int, Any], list[int]]:
    """Fragments without the rows at these addresses, and the ids of those left empty.

    ``prefix`` is where objects may lie that tasks read.
    """
    if sum(len(part) for part in addresses) <= DRIVER_ROWS_MAX:
        return delete_addresses(table, addresses)
    every = np.sort(np.concatenate(addresses))
    owners, starts = np.unique(every >> FRAGMENT_SHIFT, return_index=True)
    shares = np.array_split(starts, min(len(owners), tasks.parallelism * 2))
    objects = open_objects(parse_location(graph_uri))
    specs = []
    for number, share in enumerate(shares):
        end = shares[number + 1][0] if number + 1 < len(shares) else len(every)
        path = f"{prefix}/deletions/{new_ulid()}"
        objects.put(path, every[share[0] : end].tobytes())
        specs.append(DeletionTask(graph_uri, table.ref, path))
    changed: dict[int, Any] = {}
    gone: list[int] = []
    for left, emptied in tasks.run("removing replaced rows", delete_rows, specs):
        changed |= left
        gone += emptied
    return changed, gone


def delete_rows(task: DeletionTask) -> tuple[dict[int, Any], list[int]]:
    """Carry one task out."""
    store = open_store(task.graph_uri)
    addresses = np.frombuffer(store.objects.get(task.path), dtype=np.uint64)
    return delete_addresses(store.open(task.ref), [addresses])
