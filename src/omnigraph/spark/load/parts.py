"""Parts: how the input of a load is divided among tasks, and how one part is read.

A large file of lines is divided by bytes, a Parquet file by row groups; compressed files, CSV and
objects of a store are read whole, by one task each, in pieces. Where parts begin depends only on
the input, never on the cluster, so that what is derived from a record's place is always the same.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, Final, Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.ingest.frames import as_table, is_tabular, require_type
from omnigraph.ingest.gathered_rows import Gathered
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.ndjson import StrictReader
from omnigraph.ingest.sources import (
    SourceFile,
    find_files,
    from_bytes,
    is_compressed,
    opened,
    recognise,
    reopened,
)
from omnigraph.ingest.tabular import csv_tables, find_type, read_table, unreadable
from omnigraph.lang.schema import AcceptedSchema

PART_BYTES: Final = 48 << 20
"""A part and the columns made of it fit into a task's memory several times over, and a machine of
a few cores still gets several parts out of a file of some hundred megabytes."""

PARTS_MULTIPLE: Final = 4
"""A file that is divided is divided into a multiple of so many equal parts: on a few cores the last
round of tasks then keeps all of them busy."""

PIECE_BYTES: Final = 192 << 20
"""Columns that a task holds before it stages them: what bounds its memory on an endless file."""

COMPRESSION_FACTOR: Final = 6
"""How much larger compressed text usually is when read; only used to guess sizes."""

PartFormat = Literal["ndjson", "csv", "parquet", "arrow"]


@dataclass(frozen=True, slots=True)
class Part:
    """One task's share of the input. ``start`` and ``end`` count bytes, or row groups."""

    number: int
    name: str
    path: str | None
    data: bytes | None
    format: PartFormat
    type_key: str | None
    size: int
    start: int = 0
    end: int | None = None

    @property
    def begins_file(self) -> bool:
        return self.start == 0

    def file(self) -> SourceFile:
        if self.path is not None:
            return reopened(self.name, self.path)
        assert self.data is not None
        return from_bytes(self.data, self.name)


# -- dividing --------------------------------------------------------------------------------------


def find_parts(spec: LoadSpec, schema: AcceptedSchema, part_bytes: int = PART_BYTES) -> list[Part]:
    """All parts of a load's input, numbered in the order of the input."""
    if not spec.strict:
        raise NotAvailable(
            "the compatible reading of records is done in process",
            remedy="Load without `strict=False`, or with engine `local`.",
        )
    found: list[Part] = []
    _divide(spec, spec.source, spec.type_name, schema, part_bytes, found)
    return [replace(part, number=number) for number, part in enumerate(found)]


def _divide(
    spec: LoadSpec,
    source: Any,
    type_name: str | None,
    schema: AcceptedSchema,
    part_bytes: int,
    found: list[Part],
) -> None:
    if isinstance(source, Mapping):
        for name, inner in source.items():
            _divide(spec, inner, name, schema, part_bytes, found)
    elif isinstance(source, str | os.PathLike):
        for file in find_files(source):
            found += _of_file(spec, file, type_name, schema, part_bytes)
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        found += _of_file(spec, from_bytes(data), type_name, schema, part_bytes, data)
    elif is_tabular(source):
        found.append(_of_table(spec, source, type_name, schema))
    else:
        raise InvalidInput(
            f"a load on Spark cannot read from {type(source).__name__}",
            remedy="Give paths, bytes, Arrow tables or DataFrames, or load with engine `local`.",
        )


def _of_file(
    spec: LoadSpec,
    file: SourceFile,
    type_name: str | None,
    schema: AcceptedSchema,
    part_bytes: int,
    data: bytes | None = None,
) -> list[Part]:
    with opened(file) as stream:
        kind = spec.format or recognise(file, stream)
    if kind == "ndjson" and type_name is not None:
        kind = "csv"  # as in process: named rows that are not Parquet are read as CSV
    if kind != "ndjson" and type_name is None:
        raise InvalidInput(
            f"{file.name} is {kind}: its rows do not say their type",
            remedy="Say which type the rows are of (`--type Person`).",
        )
    key = None if type_name is None else find_type(schema, type_name).key
    size = len(data) if data is not None else _size(file)
    whole = Part(0, file.name, None if data is not None else file.path, data, kind, key, size)
    if kind == "parquet":
        return _row_groups(whole, part_bytes)
    if is_compressed(file):
        return [replace(whole, size=size * COMPRESSION_FACTOR)]
    if kind == "csv" or not (data is not None or file.is_local) or size <= part_bytes:
        return [whole]
    rounds = math.ceil(size / (part_bytes * PARTS_MULTIPLE))
    step = math.ceil(size / (rounds * PARTS_MULTIPLE))
    return [
        replace(whole, start=start, end=min(start + step, size), size=step)
        for start in range(0, size, step)
    ]


def _size(file: SourceFile) -> int:
    if file.is_local and file.path is not None:
        return os.path.getsize(file.path)
    with file.open() as stream:
        return stream.seek(0, os.SEEK_END)


def _row_groups(whole: Part, part_bytes: int) -> list[Part]:
    parts, start, held = [], 0, 0
    with opened(whole.file()) as stream:
        metadata = _parquet(stream, whole.name).metadata
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= part_bytes or group == metadata.num_row_groups - 1:
            parts.append(replace(whole, start=start, end=group + 1, size=held))
            start, held = group + 1, 0
    return parts or [replace(whole, end=0)]


def _of_table(spec: LoadSpec, source: Any, type_name: str | None, schema: AcceptedSchema) -> Part:
    name = require_type(source, type_name)
    owner = find_type(schema, name)
    table = as_table(source, owner, spec.columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    return Part(0, f"<{name}>", None, data, "arrow", owner.key, len(data))


# -- reading, on an executor -----------------------------------------------------------------------


def read_part(
    part: Part, gathered: Gathered, columns: Mapping[str, str] | None, pause: Callable[[], None]
) -> int:
    """Read a part into ``gathered``; returns its lines or rows. ``pause`` is called in between."""
    gathered.begin_file(part.name)
    if part.format == "ndjson":
        return _read_lines(part, gathered, pause)
    assert part.type_key is not None
    owner, lines = gathered.schema.type(part.type_key), 0
    gathered.occurs(owner.key)
    text = part.format == "csv"
    with opened(part.file()) as stream:
        for table in _tables(part, stream):
            first = lines + (2 if text else 1)
            read_table(gathered, owner, table, columns, first_line=first, as_text=text)
            lines += table.num_rows
            pause()
    return lines


def _read_lines(part: Part, gathered: Gathered, pause: Callable[[], None]) -> int:
    reader = StrictReader(gathered, lambda _: pause())
    if part.end is None:
        with opened(part.file()) as stream:
            return reader.read(stream)
    with part.file().open() as raw:
        start, end = _line_start(raw, part.start), _line_start(raw, part.end)
        raw.seek(start)
        return reader.read(cast(Any, _Window(raw, end - start)), begins_file=part.begins_file)


def _line_start(raw: IO[bytes], position: int) -> int:
    """Where the first line at or after a position begins."""
    if position == 0:
        return 0
    raw.seek(position - 1)
    raw.readline()
    return raw.tell()


def lines_before(part: Part) -> int:
    """How many lines of its file come before a part: read again, so for messages only."""
    count = 0
    with part.file().open() as raw:
        left = _line_start(raw, part.start)
        raw.seek(0)
        while left > 0:
            block = raw.read(min(left, 1 << 20))
            if not block:
                break
            count += block.count(b"\n")
            left -= len(block)
    return count


def digest_part(part: Part) -> bytes:
    """What identifies the content of a part."""
    digest = hashlib.sha256(f"{part.name}\0{part.type_key}\0".encode())
    with part.file().open() as raw:
        start, left = 0, 1 << 62
        if part.format == "ndjson" and part.end is not None:
            start, left = part.start, part.end - part.start
        raw.seek(start)
        while block := raw.read(min(left, 1 << 20)):
            digest.update(block)
            left -= len(block)
    return digest.digest()


class _Window:
    """The next bytes of a stream, as many as a part has."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._left = size

    def read(self, size: int) -> bytes:
        data = self._raw.read(min(size, self._left))
        self._left -= len(data)
        return data


def _tables(part: Part, stream: io.BufferedReader) -> Any:
    if part.format == "csv":
        yield from csv_tables(stream, part.name)
    elif part.format == "arrow":
        yield pa.ipc.open_stream(stream.read()).read_all()
    else:
        content = _parquet(stream, part.name)
        yield content.schema_arrow.empty_table()
        for group in range(part.start, part.end or 0):
            yield content.read_row_group(group)


def _parquet(stream: io.BufferedReader, name: str) -> Any:
    try:
        return pq.ParquetFile(pa.PythonFile(stream, "r"))
    except (pa.ArrowInvalid, OSError) as problem:
        raise unreadable(name, "Parquet", problem) from problem
