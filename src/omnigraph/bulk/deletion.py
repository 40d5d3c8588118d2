"""Marking replaced rows as deleted: on the driver if they are few, else on executors.

Row addresses are found by tasks and stay with them: beyond a handful they are written as sorted
objects with an index by fragment, of which the driver knows the name and the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.rows import delete_addresses
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable, TableRef
from omnigraph.storage.objects.store import ObjectStore

DRIVER_ROWS_MAX: Final = 2_000_000
"""Up to this number the driver is faster than a job: some tenths of a second per million rows."""

ROWS_PER_TASK: Final = 4 << 20
"""Stored rows whose fragments one task handles."""

INLINE_MAX: Final = 1_024
"""Addresses that are sent to the driver as they are: a smaller object is not worth a request."""

_ADDRESS: Final = 8
_INDEX: Final = np.dtype([("fragment", "<u8"), ("start", "<u8")])


@dataclass(frozen=True, slots=True)
class RowAddresses:
    """Addresses of stored rows, here or in an object."""

    count: int
    inline: np.ndarray[Any, Any] | None = None
    path: str = ""
    fragments: int = 0
    """The number of fragments in the index at the end of the object."""

    def read(self, objects: ObjectStore) -> np.ndarray[Any, Any]:
        """All addresses."""
        if self.inline is not None:
            return self.inline
        return np.frombuffer(objects.get_range(self.path, 0, self.count * _ADDRESS), dtype="<u8")

    def read_fragments(
        self, objects: ObjectStore, fragments: np.ndarray[Any, Any]
    ) -> Iterator[np.ndarray[Any, Any]]:
        """The addresses in some fragments."""
        if self.inline is not None:
            yield self.inline[np.isin(self.inline >> FRAGMENT_SHIFT, fragments)]
            return
        size = self.fragments * _INDEX.itemsize
        data = objects.get_range(self.path, self.count * _ADDRESS, size)
        index = np.frombuffer(data, dtype=_INDEX)
        ends = np.append(index["start"][1:], np.uint64(self.count))
        for at in np.flatnonzero(np.isin(index["fragment"], fragments)).tolist():
            start, end = int(index["start"][at]), int(ends[at])
            size = (end - start) * _ADDRESS
            yield np.frombuffer(objects.get_range(self.path, start * _ADDRESS, size), dtype="<u8")


def keep_addresses(
    objects: ObjectStore, prefix: str, addresses: np.ndarray[Any, Any]
) -> RowAddresses:
    """Addresses as a small value: many of them are written as an object below ``prefix``."""
    if len(addresses) <= INLINE_MAX:
        return RowAddresses(len(addresses), addresses)
    ordered = np.sort(addresses).astype("<u8")
    fragments, starts = np.unique(ordered >> FRAGMENT_SHIFT, return_index=True)
    index = np.empty(len(fragments), dtype=_INDEX)
    index["fragment"], index["start"] = fragments, starts
    path = f"{prefix}/addresses/{new_ulid()}"
    objects.put(path, ordered.tobytes() + index.tobytes())
    return RowAddresses(len(ordered), None, path, len(fragments))


@dataclass(frozen=True, slots=True)
class Deletion:
    """Rows of a table to delete: what all tasks share."""

    graph: GraphStorage
    ref: TableRef
    addresses: tuple[RowAddresses, ...]


def delete_replaced(
    tasks: Tasks, scratch: Scratch, table: PinnedTable, addresses: Sequence[RowAddresses]
) -> tuple[dict[int, Any], list[int]]:
    """Fragments without the rows at these addresses, and the ids of fragments left empty."""
    addresses = [part for part in addresses if part.count]
    if sum(part.count for part in addresses) <= DRIVER_ROWS_MAX:
        return delete_addresses(table, [part.read(scratch.objects) for part in addresses])
    deletion = Deletion(scratch.graph, table.ref, tuple(addresses))
    changed: dict[int, Any] = {}
    gone: list[int] = []
    for left, emptied in tasks.within(scratch).run(
        "removing replaced rows",
        partial(delete_rows, deletion),
        list(fragment_groups(table, ROWS_PER_TASK)),
    ):
        changed |= left
        gone += emptied
    return changed, gone


def delete_rows(deletion: Deletion, fragments: tuple[int, ...]) -> tuple[dict[int, Any], list[int]]:
    """Delete the rows of some fragments (task)."""
    store = deletion.graph.tables()
    wanted = np.array(fragments, dtype=np.uint64)
    found = [
        part for item in deletion.addresses for part in item.read_fragments(store.objects, wanted)
    ]
    return delete_addresses(store.open(deletion.ref), [part for part in found if len(part)])
