"""Export on Spark: a snapshot as files, written in parallel by the tasks that read it.

One directory, several files per type: NDJSON that a load reads back, or Parquet or CSV with the
type in the file name. Rows are in storage order; only the export in process is byte for byte
reproducible. Tasks write to a temporary directory, which is renamed when all of them are done.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from omnigraph.bulk.exchange_types import to_exchange
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import AlreadyExists, InvalidInput, NotAvailable
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulid
from omnigraph.snapshots.export import batch_rows, chosen_types, encode_rows
from omnigraph.storage.lance.tables import TableRef

ExportFormat = Literal["ndjson", "parquet", "csv"]
FORMATS: Final[tuple[str, ...]] = get_args(ExportFormat)
_SUFFIX: Final = {"ndjson": "jsonl", "parquet": "parquet", "csv": "csv"}

NAME_CHARS_MAX: Final = 200
"""File names have at most 255 bytes; a number, a suffix and the attempt's id are appended."""

ROWS_PER_FILE: Final = 1 << 20
"""Files of a few hundred megabytes at most, and enough of them for every core."""


@dataclass(frozen=True, slots=True)
class ExportTask:
    graph: GraphStorage
    schema: AcceptedSchema
    key: str
    ref: TableRef
    fragment_ids: tuple[int, ...]
    format: str
    path: str


def export_to(
    tasks: Tasks,
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    target: str | os.PathLike[str],
    *,
    format: str = "ndjson",
    types: Sequence[str] | None = None,
) -> dict[str, int]:
    """Write a snapshot to a new local directory; returns the rows per type key."""
    if format not in FORMATS:
        raise InvalidInput(
            f"{format!r} is not an export format", remedy=f"Use one of {', '.join(FORMATS)}."
        )
    folder = os.path.abspath(os.fspath(target))
    making = f"{folder}.{new_ulid()}"
    try:
        if os.path.exists(folder) and os.listdir(folder):
            raise AlreadyExists(f"{folder} is not empty", remedy="Export to a new directory.")
        os.makedirs(making)
    except (OSError, ValueError) as problem:
        raise InvalidInput(
            f"cannot export to {folder!a:.200}: {problem}", remedy="Name another directory."
        ) from problem
    try:
        specs = list(_specs(repository, snapshot, schema, making, format, types))
        counts: dict[str, int] = {}
        for spec, rows in zip(specs, tasks.run("exporting", write_file, specs), strict=True):
            counts[spec.key] = counts.get(spec.key, 0) + rows
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return counts


def _specs(
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    folder: str,
    format: str,
    types: Sequence[str] | None,
) -> Iterator[ExportTask]:
    chosen = chosen_types(schema, types)
    names = _file_names(chosen)
    for owner in chosen:
        _require_flat(owner, format)
        ref = snapshot.pin(owner.key).ref
        graph = GraphStorage.of(repository)
        groups = fragment_groups(repository.tables.open(ref), ROWS_PER_FILE)
        for number, group in enumerate(groups):
            path = os.path.join(folder, f"{names[owner.key]}-{number:05d}.{_SUFFIX[format]}")
            yield ExportTask(graph, schema, owner.key, ref, group, format, path)


def _file_names(owners: Sequence[NodeType | EdgeType]) -> dict[str, str]:
    """File name stems by type key: kind and name.

    A hash is appended to names that are too long, or that differ in case alone, which many file
    systems ignore.
    """
    plain = {owner.key: f"{owner.kind}-{owner.name}" for owner in owners}
    folded = Counter(name.lower() for name in plain.values())
    return {
        key: name
        if folded[name.lower()] == 1 and len(name) <= NAME_CHARS_MAX
        else f"{name[:NAME_CHARS_MAX]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for key, name in plain.items()
    }


def _require_flat(owner: NodeType | EdgeType, format: str) -> None:
    """Raise ``NotAvailable`` for blobs in a tabular format, before anything is written."""
    for name, declared in owner.properties.items():
        if format != "ndjson" and declared.type.is_blob:
            raise NotAvailable(
                f"{owner.name}.{name} is a Blob, which {format} cannot hold",
                remedy="Export as ndjson, or choose types without blobs.",
            )


def write_file(task: ExportTask) -> int:
    """Write one file (task); a repeated attempt replaces it."""
    table = task.graph.table(task.ref)
    owner = task.schema.type(task.key)
    chosen = [table.dataset.get_fragment(fragment_id) for fragment_id in task.fragment_ids]
    batches = table.dataset.scanner(
        columns=table.schema.names,
        with_row_id=True,
        fragments=chosen,
        batch_size=batch_rows(owner),
        scan_in_order=True,
    ).to_batches()
    temporary = f"{task.path}.{new_ulid()}"
    rows = _WRITERS[task.format](owner, table, batches, temporary)
    os.replace(temporary, task.path)
    return rows


def _write_ndjson(owner: Any, table: Any, batches: Iterator[pa.RecordBatch], path: str) -> int:
    rows = 0
    with open(path, "wb") as out:
        for batch in batches:
            found = pa.Table.from_batches([batch])
            out.write(encode_rows(owner, table, found, ids=found["_rowid"].combine_chunks()))
            rows += batch.num_rows
    return rows


def _write_parquet(owner: Any, table: Any, batches: Iterator[pa.RecordBatch], path: str) -> int:
    rows, writer = 0, None
    for batch in _plain(owner, batches):
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return rows


def _write_csv(owner: Any, table: Any, batches: Iterator[pa.RecordBatch], path: str) -> int:
    rows, writer = 0, None
    for batch in _plain(owner, batches):
        found = _spelled(batch)
        writer = writer or csv.CSVWriter(path, found.schema)
        writer.write_table(found)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return rows


def _plain(owner: NodeType | EdgeType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches as tables that a load reads back, with the ends of edges as `from` and `to`."""
    for batch in batches:
        table = pa.Table.from_batches([batch]).drop_columns(["_rowid"])
        names = [owner.shown_name(name) for name in table.column_names]
        yield pa.table([to_exchange(column) for column in table.columns], names)


def _spelled(table: pa.Table) -> pa.Table:
    """Lists as JSON texts, times as ISO texts, which a load of CSV reads back."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            texts = [None if v is None else json.dumps(v, default=str) for v in column.to_pylist()]
            column = pa.array(texts, type=pa.string())
        elif pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            column = column.cast(pa.string())
        columns[name] = column
    return pa.table(columns)


_WRITERS: Final = {"ndjson": _write_ndjson, "parquet": _write_parquet, "csv": _write_csv}
