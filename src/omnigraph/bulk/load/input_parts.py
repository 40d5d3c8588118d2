"""Input splits: how the input of a load is divided among tasks, and how one part is read.

An NDJSON file is split by bytes, a Parquet file by row groups; compressed files and CSV are read by
one task each, in batches. Small files are packed into tasks. Splits depend on the input alone,
never on the cluster, so that ids derived from a record's position are deterministic.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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

PARTS_AIMED: Final = 64
"""Input that would have more parts than this gets larger ones: fewer tasks, fewer objects in the
shuffle, and larger data files."""

GROWTH_MAX: Final = 4
"""How much larger: then the rows of a part fill the memory that a task has for them."""

FILE_COST_BYTES: Final = 128 << 10
"""What opening a file costs, in bytes that are read in that time: a file counts at least this much,
so that a task of many small files is not longer than one of few large ones."""

FILES_AT_ONCE: Final = 32
"""Files whose first bytes are read at the same time, to recognise their formats."""

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
    is_compressed: bool = False
    is_whole: bool = True
    """Whether it is a whole file."""
    data_lines_before: int = 0
    """Lines of the file before ``data``."""

    @property
    def begins_file(self) -> bool:
        return self.start == 0 and not self.data_lines_before

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
    files: list[InputPart] = []
    _collect(spec, spec.source, spec.type_name, schema, storage, files)
    step = _part_bytes(files, part_bytes)
    parts = (part for file in files for part in _divided(file, step))
    return [replace(part, number=number) for number, part in enumerate(parts)]


def pack_parts(
    parts: Sequence[InputPart], part_bytes: int = PART_BYTES
) -> list[tuple[InputPart, ...]]:
    """The parts of each task: one part of a file, or adjacent whole files up to a part's size.

    Files of one name are not packed together: messages name the file and the line.
    """
    step = _part_bytes(parts, part_bytes)
    packs: list[tuple[InputPart, ...]] = []
    held: list[InputPart] = []
    names: set[str] = set()
    size = 0
    for part in parts:
        cost = max(part.size, FILE_COST_BYTES)
        if held and (not part.is_whole or part.name in names or size + cost > step):
            packs.append(tuple(held))
            held, names, size = [], set(), 0
        if not part.is_whole:
            packs.append((part,))
            continue
        held.append(part)
        names.add(part.name)
        size += cost
    return [*packs, tuple(held)] if held else packs


def _part_bytes(parts: Sequence[InputPart], part_bytes: int) -> int:
    """The size of the parts of this input: as given, and larger for a large input."""
    total = sum(part.size for part in parts)
    return min(max(total // PARTS_AIMED, part_bytes), part_bytes * GROWTH_MAX)


def _collect(
    spec: LoadSpec,
    source: Any,
    type_name: str | None,
    schema: AcceptedSchema,
    storage: StorageSettings,
    found: list[InputPart],
) -> None:
    """Add the files and tables of a source, each as one whole part."""
    if isinstance(source, Mapping):
        for name, inner in source.items():
            _collect(spec, inner, name, schema, storage, found)
    elif isinstance(source, str | os.PathLike):
        files = find_files(source, storage)
        with ThreadPoolExecutor(min(FILES_AT_ONCE, len(files))) as threads:
            found += threads.map(lambda f: _of_file(spec, f, type_name, schema, storage), files)
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        found.append(_of_file(spec, from_bytes(data), type_name, schema, storage, data))
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
    data: bytes | None = None,
) -> InputPart:
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
    compressed = kind != "parquet" and is_compressed(file)
    return InputPart(
        0,
        file.name,
        path=None if data is not None else file.path,
        data=data,
        format=kind,
        type_key=key,
        size=size * COMPRESSION_FACTOR if compressed else size,
        storage=storage,
        is_compressed=compressed,
    )


def _divided(whole: InputPart, part_bytes: int) -> list[InputPart]:
    """A file as parts of about this size, where its format allows."""
    if whole.format == "parquet":
        return _row_groups(whole, part_bytes)
    splittable = whole.format == "ndjson" and not whole.is_compressed
    if not splittable or whole.size <= part_bytes:
        return [whole]
    rounds = math.ceil(whole.size / (part_bytes * PARTS_MULTIPLE))
    step = math.ceil(whole.size / (rounds * PARTS_MULTIPLE))
    parts = [
        replace(whole, start=start, end=min(start + step, whole.size), size=step, is_whole=False)
        for start in range(0, whole.size, step)
    ]
    return parts if whole.data is None else _sliced(whole.data, parts)


def _sliced(data: bytes, parts: Sequence[InputPart]) -> list[InputPart]:
    """Parts of bytes in memory, each with its own lines only."""
    found, before = [], 0
    raw = io.BytesIO(data)
    for part in parts:
        assert part.end is not None
        lines = data[_line_start(raw, part.start) : _line_start(raw, part.end)]
        found.append(replace(part, data=lines, start=0, end=None, data_lines_before=before))
        before += lines.count(b"\n")
    return found


def _size(file: SourceFile) -> int:
    if file.size is not None:
        return file.size
    with file.open() as stream:
        return stream.seek(0, os.SEEK_END)


def _row_groups(whole: InputPart, part_bytes: int) -> list[InputPart]:
    parts, start, held = [], 0, 0
    with opened(whole.file()) as stream:
        metadata = _parquet(stream, whole.name).metadata
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= part_bytes or group == metadata.num_row_groups - 1:
            parts.append(replace(whole, start=start, end=group + 1, size=held, is_whole=False))
            start, held = group + 1, 0
    if len(parts) == 1:
        return [replace(parts[0], is_whole=True)]
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
            return reader.read(stream, begins_file=part.begins_file)
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
    count = part.data_lines_before
    if part.data is not None:
        return count
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


def digest_parts(parts: Sequence[InputPart]) -> list[bytes]:
    """The digests of some parts (task)."""
    return [_digest_part(part) for part in parts]


def _digest_part(part: InputPart) -> bytes:
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
