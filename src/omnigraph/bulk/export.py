"""Export of a snapshot as files, written in parallel by the tasks that read it.

One directory of this machine or of an object store, several files per type: NDJSON that a load
reads back, or Parquet, CSV or Arrow IPC with the type in the file name. Rows are in storage order;
``snapshots/export.py`` gives the same bytes whenever the content is the same.

``_manifest.json`` lists the files and is written last: a directory without it is no export. In an
object store tasks put whole files; on this machine they write to a temporary directory, which is
renamed when all of them are done.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
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
from omnigraph.errors import AlreadyExists, InvalidInput, NotAvailable, OmnigraphError
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulid
from omnigraph.snapshots.export import batch_rows, chosen_types, encode_rows
from omnigraph.storage.lance.tables import TableRef
from omnigraph.storage.locations import Location, parse_location
from omnigraph.storage.objects.obstore_store import open_objects

ExportFormat = Literal["ndjson", "parquet", "csv", "arrow"]
FORMATS: Final[tuple[str, ...]] = get_args(ExportFormat)
_SUFFIX: Final = {"ndjson": "jsonl", "parquet": "parquet", "csv": "csv", "arrow": "arrow"}

MANIFEST: Final = "_manifest.json"
"""A load of the directory leaves it out, as every name that begins with an underscore."""

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
    target: Location
    name: str


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an export: its type, rows and bytes."""

    name: str
    type_key: str
    rows: int
    size: int


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
    """Write a snapshot to a new directory; returns the rows per type key."""
    if format not in FORMATS:
        raise InvalidInput(
            f"{format!r} is not an export format", remedy=f"Use one of {', '.join(FORMATS)}."
        )
    place = parse_location(os.fspath(target))
    open_target = _local_directory if place.is_local else _store_prefix
    with open_target(place, repository) as making:
        specs = list(_specs(repository, snapshot, schema, making, format, types))
        files = tasks.run("exporting", write_file, specs)
        _write_manifest(repository, making, snapshot, format, files)
    counts: dict[str, int] = {}
    for file in files:
        counts[file.type_key] = counts.get(file.type_key, 0) + file.rows
    return counts


@contextmanager
def _local_directory(place: Location, repository: Repository) -> Iterator[Location]:
    """A temporary directory that is renamed at the end."""
    folder, making = place.path, f"{place.path}.{new_ulid()}"
    try:
        if os.path.exists(folder) and os.listdir(folder):
            raise AlreadyExists(f"{folder} is not empty", remedy="Export to a new directory.")
        os.makedirs(making)
    except (OSError, ValueError) as problem:
        raise InvalidInput(
            f"cannot export to {folder!a:.200}: {problem}", remedy="Name another directory."
        ) from problem
    try:
        yield Location("file", "", making)
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


@contextmanager
def _store_prefix(place: Location, repository: Repository) -> Iterator[Location]:
    """A prefix of an object store, whose objects are removed when the export fails."""
    objects = open_objects(place, repository.settings.storage)
    if objects.list():
        raise AlreadyExists(f"{place.uri} is not empty", remedy="Export to a new prefix.")
    try:
        yield place
    except BaseException:
        with suppress(OmnigraphError):  # without a manifest they are no export
            objects.delete_prefix("")
        raise


def _write_manifest(
    repository: Repository,
    place: Location,
    snapshot: SnapshotPins,
    format: str,
    files: Sequence[ExportedFile],
) -> None:
    listed = [
        {"name": file.name, "type": file.type_key, "rows": file.rows, "bytes": file.size}
        for file in files
    ]
    content = {"commit": snapshot.commit_id, "format": format, "files": listed}
    objects = open_objects(place, repository.settings.storage)
    objects.put(MANIFEST, json.dumps(content, indent=2).encode())


def _specs(
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    target: Location,
    format: str,
    types: Sequence[str] | None,
) -> Iterator[ExportTask]:
    chosen = chosen_types(schema, types)
    names = _file_names(chosen)
    graph = GraphStorage.of(repository)
    for owner in chosen:
        _require_flat(owner, format)
        ref = snapshot.pin(owner.key).ref
        groups = fragment_groups(repository.tables.open(ref), ROWS_PER_FILE)
        for number, group in enumerate(groups):
            name = f"{names[owner.key]}-{number:05d}.{_SUFFIX[format]}"
            yield ExportTask(graph, schema, owner.key, ref, group, format, target, name)


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


def write_file(task: ExportTask) -> ExportedFile:
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
    write = _WRITERS[task.format]
    if task.target.is_local:
        path = os.path.join(task.target.path, task.name)
        temporary = f"{path}.{new_ulid()}"
        rows = write(owner, table, batches, temporary)
        size = os.path.getsize(temporary)
        os.replace(temporary, path)
        return ExportedFile(task.name, task.key, rows, size)
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        local = Path(folder) / "file"
        rows = write(owner, table, batches, str(local))
        data = local.read_bytes()
        open_objects(task.target, task.graph.storage).put(task.name, data)
        return ExportedFile(task.name, task.key, rows, len(data))


def _write_ndjson(owner: Any, table: Any, batches: Iterator[pa.RecordBatch], path: str) -> int:
    rows = 0
    with open(path, "wb") as out:
        for batch in batches:
            found = pa.Table.from_batches([batch])
            out.write(encode_rows(owner, table, found))
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


def _write_arrow(owner: Any, table: Any, batches: Iterator[pa.RecordBatch], path: str) -> int:
    rows, writer = 0, None
    for batch in _plain(owner, batches):
        writer = writer or pa.ipc.new_file(path, batch.schema)
        writer.write_table(batch)
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


_WRITERS: Final = {
    "ndjson": _write_ndjson,
    "parquet": _write_parquet,
    "csv": _write_csv,
    "arrow": _write_arrow,
}
