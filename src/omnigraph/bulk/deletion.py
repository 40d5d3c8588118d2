"""Marking replaced rows as deleted: on the driver if they are few, else on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.tasks import Tasks
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.rows import delete_addresses
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable, TableRef

DRIVER_ROWS_MAX: Final = 2_000_000
"""Up to this number the driver is faster than a job: some tenths of a second per million rows."""


@dataclass(frozen=True, slots=True)
class DeletionTask:
    """Some fragments of a table, and the object with the row addresses to delete in them."""

    graph: GraphStorage
    ref: TableRef
    path: str


def delete_replaced(
    tasks: Tasks,
    graph: GraphStorage,
    prefix: str,
    table: PinnedTable,
    addresses: Sequence[np.ndarray[Any, Any]],
) -> tuple[dict[int, Any], list[int]]:
    """Fragments without the rows at these addresses, and the ids of fragments left empty.

    ``prefix``: where the input objects of tasks are written.
    """
    if sum(len(part) for part in addresses) <= DRIVER_ROWS_MAX:
        return delete_addresses(table, addresses)
    every = np.sort(np.concatenate(addresses))
    owners, starts = np.unique(every >> FRAGMENT_SHIFT, return_index=True)
    shares = np.array_split(starts, min(len(owners), tasks.parallelism * 2))
    objects = graph.objects()
    specs = []
    for number, share in enumerate(shares):
        end = shares[number + 1][0] if number + 1 < len(shares) else len(every)
        path = f"{prefix}/deletions/{new_ulid()}"
        objects.put(path, every[share[0] : end].tobytes())
        specs.append(DeletionTask(graph, table.ref, path))
    changed: dict[int, Any] = {}
    gone: list[int] = []
    for left, emptied in tasks.run("removing replaced rows", delete_rows, specs):
        changed |= left
        gone += emptied
    return changed, gone


def delete_rows(task: DeletionTask) -> tuple[dict[int, Any], list[int]]:
    """Delete the listed rows of some fragments (task)."""
    store = task.graph.tables()
    addresses = np.frombuffer(store.objects.get(task.path), dtype=np.uint64)
    return delete_addresses(store.open(task.ref), [addresses])
