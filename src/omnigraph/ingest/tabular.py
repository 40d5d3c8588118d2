"""Tables as input of a load: Arrow, Parquet and CSV, each for one type, with a column mapping.

Columns are matched to properties by name, after the mapping; edges have ``from`` and ``to`` (or
``src`` and ``dst``), and ``id`` is optional. Values are converted to the declared types, and every
value that does not fit is reported with its row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from omnigraph.constraints.coerce import CoercedColumn, coerce_column, coerce_values
from omnigraph.errors import InvalidData, InvalidInput
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.model.types import PropertyType
from omnigraph.prepare.entity_rows import column_array

CSV_BLOCK_BYTES: Final = 8 << 20
"""Bytes read at a time; a record must fit into a block."""


def find_type(schema: AcceptedSchema, name: str) -> NodeType | EdgeType:
    """The type a table is for: ``Person``, ``node:Person``, ``edge:Knows``."""
    if ":" in name:
        return schema.type(name)
    node, edge = schema.nodes.get(name), schema.edge(name)
    if node is not None and edge is not None:
        raise InvalidInput(
            f"{name} is a node type and an edge type",
            remedy=f"Use node:{name} or edge:{edge.name}.",
        )
    return node or edge or schema.type(f"node:{name}")


def read_table(
    collector: RowCollector,
    owner: NodeType | EdgeType,
    table: pa.Table,
    columns: Mapping[str, str] | None = None,
    *,
    first_line: int = 1,
    as_text: bool = False,
) -> None:
    """Add all rows of an Arrow table; ``columns`` maps its column names to properties.

    With ``as_text`` every column holds text, as in CSV, which is parsed as the declared type.
    """
    collector.occurs(owner.key)
    chosen = _chosen(owner, table.column_names, columns or {})
    lines = pa.array(np.arange(table.num_rows, dtype=np.int64) + first_line)
    found: dict[str, Any] = {}
    bad = np.zeros(table.num_rows, dtype=bool)
    for column in owner.columns():
        if column.name not in chosen:
            found[column.name] = column_array(column.type, [None] * table.num_rows)
            continue
        read = _coerce_text if as_text else coerce_column
        given = read(table[chosen[column.name]], column.type)
        for at, problem in given.problems.items():
            bad[at] = True
            message = f"{owner.name}.{column.name}: {problem}"
            collector.problem("type", message, at + first_line, owner, property=column.name)
        values = given.values
        found[column.name] = (
            given.column
            if values is None
            else column_array(column.type, collector.settle(values, lines.to_pylist()))
        )
    _require_ends(collector, owner, found, first_line, bad)
    keep = pa.array(~bad)
    kept = {name: column.filter(keep) for name, column in found.items()}
    nulled = None
    if collector.marks_nulls:  # every cell of a column that is there is given
        there = [name for name in owner.properties if name in chosen and kept[name].null_count]
        nulled = {name: kept[name].is_null() for name in there}
    collector.add_columns(owner, kept, lines.filter(keep), nulled)


def _chosen(
    owner: NodeType | EdgeType, given: list[str], mapping: Mapping[str, str]
) -> dict[str, str]:
    """The input column of each stored column; an unknown input column is an error."""
    known = {column.name for column in owner.columns()}
    unknown = [name for name in mapping if name not in given]
    if unknown:
        hint = did_you_mean(unknown[0], given)
        raise InvalidInput(
            f"the input has no column {unknown[0]!r} to map" + (f"; {hint}" if hint else "")
        )
    chosen: dict[str, str] = {}
    for name in given:
        target = mapping.get(name, name)
        if target == "":
            continue  # mapped to the empty string: left out
        target = target if target in known else owner.column_of(target)
        if target not in known:
            hint = did_you_mean(target, (*owner.properties, *owner.endpoints.values()))
            raise InvalidInput(
                f"{owner.name} has no property {target!r}" + (f"; {hint}" if hint else ""),
                remedy="Map the column to a property, or to an empty name to leave it out.",
                details={"column": name, "type_key": owner.key},
            )
        if target in chosen:
            raise InvalidInput(
                f"the columns {chosen[target]!r} and {name!r} both map to {target!r}"
            )
        chosen[target] = name
    for column, shown in owner.endpoints.items():
        if column not in chosen:
            raise InvalidInput(f"edge {owner.name} needs a column `{shown}`")
    return chosen


def _coerce_text(column: Any, kind: PropertyType) -> CoercedColumn:
    """Text parsed as the declared type: numbers, booleans, and lists as JSON."""
    family = kind.scalar.family
    if kind.is_single and family not in ("integer", "float", "bool"):
        return coerce_column(column, kind)
    try:
        if kind.is_single and family == "integer":
            if pc.all(pc.match_substring_regex(column, "^-?[0-9]+$")).as_py() is not False:
                return coerce_column(column.cast(kind.scalar.arrow_type()), kind)
        elif kind.is_single and family == "float":
            return coerce_column(column.cast(pa.float64()), kind)
    except pa.ArrowInvalid:
        pass  # the values are read one by one, which reports each that is wrong
    return coerce_values([_spelled_out(text) for text in column.to_pylist()], kind)


def _spelled_out(text: str | None) -> Any:
    """A text parsed as JSON, or the text itself if it is not JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _require_ends(
    collector: RowCollector,
    owner: NodeType | EdgeType,
    found: Mapping[str, Any],
    first_line: int,
    bad: Any,
) -> None:
    for column, field in owner.endpoints.items():
        for at in pc.indices_nonzero(pc.is_null(found[column])).to_pylist():
            if not bad[at]:
                bad[at] = True
                message = f"edge {owner.name} needs `{field}`, the id of a node"
                collector.problem("required", message, at + first_line, owner, property=column)


# Files


def read_parquet(
    collector: RowCollector,
    owner: NodeType | EdgeType,
    stream: io.BufferedReader,
    columns: Mapping[str, str] | None,
    file: str,
) -> None:
    """Read a Parquet file; rows are numbered from 1."""
    try:
        content = pq.ParquetFile(pa.BufferReader(stream.read()))
        first = 1
        if not content.metadata.num_rows:
            read_table(collector, owner, content.read(), columns)
        for batch in content.iter_batches(batch_size=131_072):
            table = pa.Table.from_batches([batch])
            read_table(collector, owner, table, columns, first_line=first)
            first += batch.num_rows
    except (pa.ArrowInvalid, OSError) as problem:
        raise unreadable(file, "Parquet", problem) from problem


def read_csv(
    collector: RowCollector,
    owner: NodeType | EdgeType,
    stream: io.BufferedReader,
    columns: Mapping[str, str] | None,
    file: str,
) -> None:
    """Read a CSV file with a header; records are numbered from 2. An empty field is null."""
    first = 2
    for table in csv_tables(stream, file):
        read_table(collector, owner, table, columns, first_line=first, as_text=True)
        first += table.num_rows
    if first == 2:
        collector.occurs(owner.key)


def csv_tables(stream: io.BufferedReader, file: str) -> Iterator[pa.Table]:
    """The blocks of a CSV file, every column as text. The first one has no rows."""
    head = stream.peek(1 << 16)[: 1 << 16].partition(b"\n")[0]
    separator = "\t" if b"\t" in head and b"," not in head else ","
    try:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
                default_column_type=pa.string(),
            ),
        )
        yield reader.schema.empty_table()
        for batch in reader:
            yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as problem:
        if "Empty CSV file" in str(problem):
            return
        raise unreadable(file, "CSV", problem) from problem


def unreadable(file: str, what: str, problem: Exception) -> InvalidData:
    message = f"{file} cannot be read as {what}: {str(problem).splitlines()[0][:200]}"
    violation = {"rule": "syntax", "message": message, "file": file}
    return InvalidData(message, violations=[violation], total=1)
