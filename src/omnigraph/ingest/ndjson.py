"""Newline-delimited JSON: the strict reader, and the compatible one for older clients.

The strict reader reads lines of one layout as slices of the block (``ndjson_layout``). It groups
the others by type and lets Arrow parse all lines of one type at once. Arrow enforces the same rules
(duplicate members, unknown fields, numbers out of range) except for a few that are checked here.
Groups that Arrow refuses are read again line by line, which gives the exact message and line, or
the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from omnigraph.constraints.coerce import CoercedColumn, coerce_column
from omnigraph.errors import ResourceLimit
from omnigraph.ingest.ndjson_layout import read_layouts
from omnigraph.ingest.ndjson_lines import HEAD, LineBlock, LineGroup, group_lines
from omnigraph.ingest.records import RecordReader, parse_strict
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.types import PropertyType
from omnigraph.prepare.entity_rows import column_array

BLOCK_BYTES: Final = 2 << 20
"""The positions of its lines and quotes then fit into a core's cache, and the allocator keeps their
memory instead of mapping it anew: a third less processor time than with blocks of 8 MiB."""
LINE_BYTES_MAX: Final = 256 << 20
"""Parsing holds several copies of a record in memory."""

BOM: Final = b"\xef\xbb\xbf"


class StrictReader:
    """Reads NDJSON into ``collector``; call ``read`` once per file."""

    def __init__(
        self, collector: RowCollector, progress: Callable[[int], None] | None = None
    ) -> None:
        self._collector = collector
        self._records = RecordReader(collector, strict=True)
        self._progress = progress
        self._schemas: dict[tuple[str, bool], pa.Schema] = {}

    def read(self, stream: IO[bytes], *, begins_file: bool = True) -> int:
        """Read all records of a stream; returns the number of lines."""
        ended = 0  # lines that end with a newline
        for block in _blocks(stream):
            if len(block) > LINE_BYTES_MAX and not block.endswith(b"\n"):
                raise _too_long(len(block), self._collector.place(ended + 1))
            begins = begins_file and not ended
            lines = LineBlock(block.removeprefix(BOM) if begins else block)
            self._read_block(lines, ended + 1)
            ended += len(lines.ends) - (not block.endswith(b"\n"))
            if self._progress is not None:
                self._progress(len(block))
        return ended

    def _read_block(self, lines: LineBlock, first: int) -> None:
        is_utf8 = _is_utf8(lines.block)
        left = self._read_layouts(lines, first) if is_utf8 else np.arange(len(lines.ends))
        if not len(left):
            return
        groups, slow = group_lines(lines, left, first)
        for group in groups:
            owner = self._owner(group.head) if is_utf8 else None
            if owner is None or not self._read_fast(owner, group):
                slow += zip(group.texts(), group.numbers.tolist(), strict=True)
        slow.sort(key=itemgetter(1))  # problems are reported in the order of the lines
        self._read_slowly(slow)

    def _owner(self, head_text: bytes) -> NodeType | EdgeType | None:
        head = HEAD.match(head_text)
        assert head is not None
        name = head[2].decode("utf-8")
        schema = self._collector.schema
        return schema.nodes.get(name) if head[1] == b"type" else schema.edge(name)

    def _read_slowly(self, lines: list[tuple[bytes, int]]) -> None:
        for text, number in lines:
            try:
                record = parse_strict(text.decode("utf-8"))
            except UnicodeDecodeError:
                self._collector.problem("syntax", "the line is not UTF-8", number)
            except ValueError as problem:
                self._collector.problem("syntax", _json_problem(problem), number)
            else:
                self._records.read(record, number)

    # -- lines of one layout -----------------------------------------------------------------------

    def _read_layouts(self, lines: LineBlock, first: int) -> np.ndarray[Any, Any]:
        """Read what can be read without a parser; returns the other lines, counted from 0."""
        left = np.ones(len(lines.ends), dtype=bool)
        for found in read_layouts(lines, self._collector.schema):
            columns = self._coerced(found.owner, found.columns, len(found.rows), found.rows + first)
            if columns is not None:
                nulled = {
                    name: columns[name].is_null()
                    for name in found.owner.properties
                    if name in found.columns and columns[name].null_count
                }
                numbers = pa.array(found.rows + first, type=pa.int64())
                marked = nulled if self._collector.marks_nulls else None
                self._collector.add_columns(found.owner, columns, numbers, marked)
                left[found.rows] = False
        return np.flatnonzero(left)

    # -- whole groups ------------------------------------------------------------------------------

    def _read_fast(self, owner: NodeType | EdgeType, group: LineGroup) -> bool:
        """Read all lines of one type at once; False when they must be read one by one."""
        parsed = self._parse(owner, group.data)
        if parsed is None or not _framed(parsed, group):
            return False
        given: dict[str, Any] = {}
        for name, field in owner.endpoints.items():
            if parsed[field].null_count:
                return False
            given[name] = parsed[field]
        data = parsed["data"].combine_chunks()
        for column in owner.columns():
            if column.name not in given:
                given[column.name] = _member(data, column.name)
        columns = self._coerced(owner, given, len(group.numbers), group.numbers)
        if columns is None:
            return False
        nulled = _nulled(owner, columns, group) if self._collector.marks_nulls else None
        numbers = pa.array(group.numbers, type=pa.int64())
        self._collector.add_columns(owner, columns, numbers, nulled)
        return True

    def _coerced(
        self,
        owner: NodeType | EdgeType,
        given: Mapping[str, Any],
        count: int,
        numbers: np.ndarray[Any, Any],
    ) -> dict[str, Any] | None:
        """The columns as they are stored; None when a value does not fit."""
        columns: dict[str, Any] = {}
        for column in owner.columns():
            values = given.get(column.name)
            if values is None:
                columns[column.name] = column_array(column.type, [None] * count)
            elif column.property_id is None:
                columns[column.name] = values
            else:
                found = coerce_column(values, column.type)
                if found.problems:
                    return None
                columns[column.name] = self._column(column.type, found, numbers)
        return columns

    def _column(
        self, kind: PropertyType, found: CoercedColumn, numbers: np.ndarray[Any, Any]
    ) -> Any:
        if found.values is None:
            return found.column
        return column_array(kind, self._collector.settle(found.values, numbers.tolist()))

    def _parse(self, owner: NodeType | EdgeType, data: pa.Buffer) -> pa.Table | None:
        """The lines parsed by Arrow, with times as text or else as numbers."""
        for times_as_text in (True, False):
            schema = self._arrow_schema(owner, times_as_text)
            if schema is None:
                continue
            try:
                return arrow_json.read_json(
                    pa.BufferReader(data),
                    # One block, in this thread: blocks are small and tasks are parallel already.
                    read_options=arrow_json.ReadOptions(
                        use_threads=False, block_size=max(data.size, 1) + 1
                    ),
                    parse_options=arrow_json.ParseOptions(
                        explicit_schema=schema, unexpected_field_behavior="error"
                    ),
                )
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
                continue
        return None

    def _arrow_schema(self, owner: NodeType | EdgeType, times_as_text: bool) -> pa.Schema | None:
        """The Arrow schema of a line; None when the type has no times that could be numbers."""
        kinds = {item.name: item.type for item in owner.properties.values()}
        has_times = any(kind.scalar.family in ("date", "datetime") for kind in kinds.values())
        if not times_as_text and not has_times:
            return None
        found = self._schemas.get((owner.key, times_as_text))
        if found is None:
            members = [pa.field("id", pa.string())]
            members += [pa.field(n, _json_type(k, times_as_text)) for n, k in kinds.items()]
            outside = ["edge" if isinstance(owner, EdgeType) else "type", *owner.endpoints.values()]
            fields = [pa.field(name, pa.string()) for name in outside]
            found = pa.schema([*fields, pa.field("data", pa.struct(members))])
            self._schemas[owner.key, times_as_text] = found
        return found


class CompatibleReader:
    """Reads a stream of JSON values in any layout, under the compatible rules."""

    def __init__(self, collector: RowCollector) -> None:
        self._collector = collector
        self._records = RecordReader(collector, strict=False)

    def read(self, stream: IO[bytes]) -> None:
        """Read all records of a stream; problems name the number of the record."""
        data = stream.read(LINE_BYTES_MAX + 1)
        if len(data) > LINE_BYTES_MAX:
            raise _too_long(len(data), self._collector.place(None))
        try:
            text = data.removeprefix(BOM).decode("utf-8")
        except UnicodeDecodeError:
            self._collector.problem("syntax", "the input is not UTF-8", None)
            return
        number = 0
        try:
            for number, record in enumerate(_values(text), 1):
                self._records.read(record, number)
        except ValueError as problem:
            self._collector.problem("syntax", _json_problem(problem), number + 1)


def _values(text: str) -> Iterator[Any]:
    """The JSON values of a text, one after the other."""
    decoder = json.JSONDecoder()
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at == end:
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError("the JSON is nested too deep") from None
        yield value


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines; only the last one may lack its newline.

    A block of more than ``LINE_BYTES_MAX`` without a newline is the beginning of a line.
    """
    begun: list[bytes] = []
    size = 0
    while True:
        read = stream.read(BLOCK_BYTES)
        if not read:
            break
        cut = read.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, read[:cut]))
            begun, size = [read[cut:]], len(read) - cut
            continue
        begun.append(read)
        size += len(read)
        if size > LINE_BYTES_MAX:
            break
    if size:
        yield b"".join(begun)


def _too_long(size: int, place: str) -> ResourceLimit:
    return ResourceLimit(
        f"bytes of the record at {place}",
        LINE_BYTES_MAX,
        size,
        remedy="Write one record per line, and make records smaller.",
    )


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _framed(parsed: pa.Table, group: LineGroup) -> bool:
    """Whether each line is exactly one record, and no `data` is null instead of absent."""
    if parsed.num_rows != len(group.numbers):
        return False
    data = parsed["data"]
    if not data.null_count:
        return True
    texts = group.texts()
    missing = pc.indices_nonzero(pc.is_null(data)).to_pylist()
    return all(b'"data"' not in texts[at] and b"\\" not in texts[at] for at in missing)


def _nulled(
    owner: NodeType | EdgeType, columns: Mapping[str, Any], group: LineGroup
) -> dict[str, Any]:
    """Masks of the nulls that the lines spell out; Arrow reads absent members as null, too."""
    names = [name for name in owner.properties if columns[name].null_count]
    found = {name: np.zeros(len(group.numbers), dtype=bool) for name in names}
    if names:
        for at, text in enumerate(group.texts()):
            if b"null" in text:
                data = json.loads(text).get("data", {})
                for name in names:
                    found[name][at] = data.get(name, data) is None
    return found


def _member(data: pa.StructArray, name: str) -> pa.Array:
    """One member of a struct column, null where the struct is."""
    return pc.struct_field(data, name)


def _json_type(kind: PropertyType, times_as_text: bool) -> pa.DataType:
    """The type that Arrow parses for a property, before ``coerce_column`` converts it."""
    family = kind.scalar.family
    if family in ("date", "datetime"):
        item = pa.string() if times_as_text else pa.int64()
    elif family == "float":
        item = pa.float64()
    else:
        item = pa.string() if family == "blob" else kind.scalar.arrow_type()
    return pa.list_(item) if kind.is_list or kind.is_vector else item


def _json_problem(problem: ValueError) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"not one JSON object: {problem.msg} (column {problem.colno})"
    return str(problem)
