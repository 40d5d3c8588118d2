"""How stored rows are divided among tasks, and how a task opens what it was given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects


def fragment_groups(
    table: PinnedTable, rows: int, among: Iterable[int] | None = None
) -> Iterator[tuple[int, ...]]:
    """Neighbouring fragments with at least so many rows together; the last group may have less."""
    group: list[int] = []
    held = 0
    for number in table.fragments if among is None else among:
        group.append(number)
        held += table.fragments[number].physical_rows
        if held >= rows:
            yield tuple(group)
            group, held = [], 0
    if group:
        yield tuple(group)


def open_store(graph_uri: str) -> TableStore:
    """The tables of a graph, on an executor."""
    location = parse_location(graph_uri)
    return TableStore(location, open_objects(location))


def open_table(graph_uri: str, ref: TableRef) -> PinnedTable:
    return open_store(graph_uri).open(ref)


def packed(table: pa.Table) -> bytes:
    """A table as bytes that travel."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
