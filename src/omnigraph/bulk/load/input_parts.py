"""Input splits: how the input of a load is divided among tasks, and how one part is read.

An NDJSON file is split by bytes, a Parquet file by row groups; compressed files, CSV and objects of
a store are read by one task each, in batches. Splits depend on the input alone, never on the
cluster, so that ids derived from a record's position are deterministic.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final, Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.ingest.frames import as_table, is_tabular, require_type
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.ndjson import StrictReader
from omnigraph.ingest.row_collector import RowCollector
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
from omnigraph.settings import StorageSettings

PART_BYTES: Final = 48 << 20
"""Target size of a part: its columns fit into a task's memory several times over, and a file of
some hundred megabytes still has several parts."""

PARTS_MULTIPLE: Final = 4
"""The number of parts of a split file is a multiple of this: on a few cores the last round of tasks
then uses all of them."""

BUFFER_BYTES: Final = 192 << 20
"""Bytes of columns that a task buffers before it stages them: bounds its memory."""

COMPRESSION_FACTOR: Final = 6
"""Typical compression ratio of text; used for size estimates only."""

PartFormat = Literal["ndjson", "csv", "parquet", "arrow"]


@dataclass(frozen=True, slots=True)
class InputPart:
    """An input split. ``start`` and ``end`` are bytes, or row groups of Parquet."""

    number: int
    name: str
    path: str | None
    data: bytes | None
    format: PartFormat
    type_key: str | None
    size: int
    start: int = 0
    end: int | None = None
    storage: StorageSettings = field(default_factory=StorageSettings)
    """Storage settings of ``path``."""

    @property
    def begins_file(self) -> bool:
        return self.start == 0

    def file(self) -> SourceFile:
        if self.path is not None:
            return reopened(self.name, self.path, self.storage)
        assert self.data is not None
        return from_bytes(self.data, self.name)


# -- splitting -------------------------------------------------------------------------------------


def find_parts(
    spec: LoadSpec,
    schema: AcceptedSchema,
    storage: StorageSettings,
    part_bytes: int = PART_BYTES,
) -> list[InputPart]:
    """All parts of a load's input, numbered in the order of the input."""
    if not spec.strict:
        raise NotAvailable(
            "`strict=False` is not supported on Spark",
            remedy="Load without `strict=False`, or use engine `local`.",
        )
    found: list[InputPart] = []
    _split(spec, spec.source, spec.type_name, schema, storage, part_bytes, found)
    return [replace(part, number=number) for number, part in enumerate(found)]


def _split(
    spec: LoadSpec,
    source: Any,
    type_name: str | None,
    schema: AcceptedSchema,
    storage: StorageSettings,
    part_bytes: int,
    found: list[InputPart],
) -> None:
    if isinstance(source, Mapping):
        for name, inner in source.items():
            _split(spec, inner, name, schema, storage, part_bytes, found)
    elif isinstance(source, str | os.PathLike):
        for file in find_files(source, storage):
            found += _of_file(spec, file, type_name, schema, storage, part_bytes)
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        found += _of_file(spec, from_bytes(data), type_name, schema, storage, part_bytes, data)
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
    storage: StorageSettings,
    part_bytes: int,
    data: bytes | None = None,
) -> list[InputPart]:
    with opened(file) as stream:
        kind = spec.format or recognise(file, stream)
    if kind == "ndjson" and type_name is not None:
        kind = "csv"  # as in process: named rows that are not Parquet are read as CSV
    if kind != "ndjson" and type_name is None:
        raise InvalidInput(
            f"{file.name} is {kind}, whose rows have no type",
            remedy="Name the type of the rows (`--type Person`).",
        )
    key = None if type_name is None else find_type(schema, type_name).key
    size = len(data) if data is not None else _size(file)
    path = None if data is not None else file.path
    whole = InputPart(0, file.name, path, data, kind, key, size, storage=storage)
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


def _row_groups(whole: InputPart, part_bytes: int) -> list[InputPart]:
    parts, start, held = [], 0, 0
    with opened(whole.file()) as stream:
        metadata = _parquet(stream, whole.name).metadata
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= part_bytes or group == metadata.num_row_groups - 1:
            parts.append(replace(whole, start=start, end=group + 1, size=held))
            start, held = group + 1, 0
    return parts or [replace(whole, end=0)]


def _of_table(
    spec: LoadSpec, source: Any, type_name: str | None, schema: AcceptedSchema
) -> InputPart:
    name = require_type(source, type_name)
    owner = find_type(schema, name)
    table = as_table(source, owner, spec.columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    return InputPart(0, f"<{name}>", None, data, "arrow", owner.key, len(data))


# -- reading, on an executor -----------------------------------------------------------------------


def read_part(
    part: InputPart,
    collector: RowCollector,
    columns: Mapping[str, str] | None,
    pause: Callable[[], None],
) -> int:
    """Read a part into ``collector``; returns its lines or rows. ``pause`` follows every batch."""
    collector.begin_file(part.name)
    if part.format == "ndjson":
        return _read_lines(part, collector, pause)
    assert part.type_key is not None
    owner, lines = collector.schema.type(part.type_key), 0
    collector.occurs(owner.key)
    text = part.format == "csv"
    with opened(part.file()) as stream:
        for table in _tables(part, stream):
            first = lines + (2 if text else 1)
            read_table(collector, owner, table, columns, first_line=first, as_text=text)
            lines += table.num_rows
            pause()
    return lines


def _read_lines(part: InputPart, collector: RowCollector, pause: Callable[[], None]) -> int:
    reader = StrictReader(collector, lambda _: pause())
    if part.end is None:
        with opened(part.file()) as stream:
            return reader.read(stream)
    with part.file().open() as raw:
        start, end = _line_start(raw, part.start), _line_start(raw, part.end)
        raw.seek(start)
        return reader.read(cast(Any, _ByteWindow(raw, end - start)), begins_file=part.begins_file)


def _line_start(raw: IO[bytes], position: int) -> int:
    """The offset of the first line that begins at or after a position."""
    if position == 0:
        return 0
    raw.seek(position - 1)
    raw.readline()
    return raw.tell()


def lines_before(part: InputPart) -> int:
    """How many lines of its file precede a part. Reads them again: for error messages only."""
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


def digest_part(part: InputPart) -> bytes:
    """SHA-256 of the name, type and content of a part."""
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


class _ByteWindow:
    """A reader of the next ``size`` bytes of a stream."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._left = size

    def read(self, size: int) -> bytes:
        data = self._raw.read(min(size, self._left))
        self._left -= len(data)
        return data


def _tables(part: InputPart, stream: io.BufferedReader) -> Any:
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
