"""Groups of fragments for tasks, and Arrow IPC encoding of tables that tasks exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.storage.lance.tables import PinnedTable


def fragment_groups(
    table: PinnedTable, rows: int, among: Iterable[int] | None = None
) -> Iterator[tuple[int, ...]]:
    """Groups of consecutive fragments with at least ``rows`` rows; the last may have fewer."""
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


def to_ipc(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
