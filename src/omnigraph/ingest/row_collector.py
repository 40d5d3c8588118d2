"""Collects the rows that the parsers of a load read, by type, with their file and line.

``finish`` returns one table per type. A load in process is limited by memory, so the bytes held are
counted here; larger input needs Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import FILE, LINE, NULLED, Report, Violation
from omnigraph.errors import ResourceLimit
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.entity_rows import Row, column_array, with_defaults
from omnigraph.storage.lance.arrays import as_array

ROWS_BUFFERED: Final = 20_000
"""Rows that were added one by one are converted to columns in batches of this size."""

PLACE_BITS: Final = 40
"""Bits of the line in a place; the rest is the file."""


class RowCollector:
    """Rows of a load, by type key."""

    def __init__(
        self,
        schema: AcceptedSchema,
        report: Report,
        policy: BlobPolicy,
        *,
        bytes_max: int,
        lines_before: Callable[[], int] = lambda: 0,
        marks_nulls: bool = False,
    ) -> None:
        """``bytes_max`` limits the bytes of the columns held in memory.

        ``lines_before`` counts the lines of the file before the part that is read.

        With ``marks_nulls`` an extra column tells given nulls from absent values, and absent
        values get no default: the writer of the rows sets it.
        """
        self.schema = schema
        self.report = report
        self.policy = policy
        self.rows = 0
        self.marks_nulls = marks_nulls
        self._parts: dict[str, list[pa.Table]] = {}
        self._buffers: dict[str, list[tuple[Row, int]]] = {}
        self._bytes = 0
        self._lines_before = lines_before
        self._file = -1
        self._bytes_max = bytes_max

    # -- parsers -----------------------------------------------------------------------------------

    def begin_file(self, name: str) -> None:
        """Assign the rows and problems that follow to this file."""
        self._flush()
        self.report.files = (*self.report.files, name)
        self._file = len(self.report.files) - 1

    def place(self, line: int | None) -> str:
        """A line of the current file, for messages."""
        file = self.report.files[self._file]
        return file if line is None else f"{file}:{line}"

    def occurs(self, key: str) -> None:
        """Record that the input has the type, even without rows of it."""
        self._parts.setdefault(key, [])

    def add_row(self, owner: NodeType | EdgeType, row: Row, line: int) -> None:
        """One row of stored values; ``id`` may be missing."""
        buffer = self._buffers.setdefault(owner.key, [])
        buffer.append((row, line))
        self.rows += 1
        if len(buffer) >= ROWS_BUFFERED:
            self._flush()

    def add_columns(
        self,
        owner: NodeType | EdgeType,
        columns: Mapping[str, Any],
        lines: Any,
        nulled: Mapping[str, Any] | None = None,
    ) -> None:
        """Rows as whole columns of stored values, ``lines`` parallel to them.

        ``nulled`` marks, by column, the nulls that were given; needed when ``marks_nulls``.
        """
        files = pa.array(np.full(len(lines), self._file, dtype=np.int32))
        beside = {FILE: files, LINE: lines}
        if self.marks_nulls:
            beside[NULLED] = nulled_column(owner, nulled or {}, len(lines))
        part = pa.table({**columns, **beside})
        self._parts.setdefault(owner.key, []).append(part)
        self.rows += part.num_rows
        self._count_bytes(part.nbytes)

    def settle(self, values: Sequence[Any], lines: Sequence[int]) -> list[Any]:
        """Blob values with references checked and copied, according to the blob policy."""
        file = self.report.files[self._file]
        return self.policy.settle(values, lambda at: f"{file}:{lines[at] + self._lines_before()}: ")

    def problem(
        self,
        rule: Any,
        message: str,
        line: int | None,
        owner: NodeType | EdgeType | None = None,
        id: str | None = None,
        property: str | None = None,
    ) -> None:
        """Report a violation by a record of the current file."""
        file = self.report.files[self._file] if self._file >= 0 else None
        key = None if owner is None else owner.key
        self.report.add(Violation(rule, message, key, id, property, file, line))

    # -- the result --------------------------------------------------------------------------------

    def finish(self) -> dict[str, pa.Table]:
        """One table per type of the input, rows in input order, columns as in the stored table.

        Empties the collector, so that a long input can be read in pieces.
        """
        self._flush()
        found = {}
        for key, parts in sorted(self._parts.items()):
            table = pa.concat_tables(parts or [self._table(self.schema.type(key), [])])
            owner, rows = self.schema.type(key), in_order(table.combine_chunks())
            given = partial(nulled_mask, owner, rows) if self.marks_nulls else None
            found[key] = with_defaults(owner, rows, given)
        self._parts, self._bytes = {}, 0
        return found

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def _flush(self) -> None:
        for key, buffer in self._buffers.items():
            if buffer:
                part = self._table(self.schema.type(key), buffer)
                self._parts.setdefault(key, []).append(part)
                self._count_bytes(part.nbytes)
        self._buffers.clear()

    def _table(self, owner: NodeType | EdgeType, buffer: Sequence[tuple[Row, int]]) -> pa.Table:
        columns: dict[str, Any] = {}
        for column in owner.columns():
            values = [row.get(column.name) for row, _ in buffer]
            if column.type.is_blob:
                values = self.settle(values, [line for _, line in buffer])
            columns[column.name] = column_array(column.type, values)
        columns[FILE] = pa.array([self._file] * len(buffer), type=pa.int32())
        columns[LINE] = pa.array([line for _, line in buffer], type=pa.int64())
        if self.marks_nulls:
            names = [column.name for column in owner.columns()]
            columns[NULLED] = pa.array(
                [
                    [at for at, name in enumerate(names) if row.get(name, row) is None]
                    for row, _ in buffer
                ],
                pa.list_(pa.int32()),
            )
        return pa.table(columns)

    def _count_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._bytes_max:
            raise ResourceLimit(
                "bytes held in memory by a load in process",
                self._bytes_max,
                self._bytes,
                remedy="Load on Spark (`--engine spark`), or raise OMNIGRAPH_LOAD_BYTES_MAX.",
            )


def nulled_column(owner: NodeType | EdgeType, nulled: Mapping[str, Any], count: int) -> pa.Array:
    """A list column with the positions of the marked columns of each row, from one mask each."""
    names = [column.name for column in owner.columns()]
    found = [(names.index(name), np.flatnonzero(mask)) for name, mask in nulled.items()]
    found.sort(key=lambda item: item[0])
    rows = np.concatenate([at for _, at in found] or [np.zeros(0, np.int64)])
    positions = np.concatenate([np.full(len(at), n, np.int32) for n, at in found] or [rows])
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(count + 1))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(positions[order], pa.int32())
    )


def nulled_mask(owner: NodeType | EdgeType, rows: pa.Table, name: str) -> np.ndarray[Any, Any]:
    """A mask of the rows that give null for a property."""
    column, position = as_array(rows[NULLED]), [c.name for c in owner.columns()].index(name)
    mask = np.zeros(rows.num_rows, dtype=bool)
    if len(column.flatten()):
        owners = pc.list_parent_indices(column).to_numpy()
        mask[owners[column.flatten().to_numpy() == position]] = True
    return mask


def in_order(rows: pa.Table) -> pa.Table:
    """Rows sorted by file and line; blocks are parsed type by type, not line by line."""
    place = places(rows)
    if np.all(place[1:] >= place[:-1]):
        return rows
    return rows.take(np.argsort(place, kind="stable"))


def places(rows: pa.Table) -> np.ndarray[Any, Any]:
    """File and line of each row as one integer, in input order."""
    found: np.ndarray[Any, Any] = rows[FILE].to_numpy().astype(np.int64) << PLACE_BITS
    found |= rows[LINE].to_numpy()
    return found
