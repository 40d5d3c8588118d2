"""Erases rows from existing table versions, in place, for purges.

Versions are immutable except to this module, which removes the data of rows from storage. A file
that holds such a row, deleted or not, is rewritten under a new name with another row's values in
its place; the version file is replaced by one that refers to the new file and marks the row as
deleted. Row ids, version stamps, order and version numbers of all other rows stay, so that
everything derived from them stays valid. Indexes are dropped from such versions, because they hold
erased values.

Never used on a version that a writer may build on: it would refer to the old files again.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader

from omnigraph.storage.lance.blobs import is_blob_type
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.files.table_files import BranchObjects
from omnigraph.storage.lance.files.version_files import (
    Member,
    content,
    edited,
    members,
    number,
    of_bytes,
)
from omnigraph.storage.lance.files.version_files import of_number as of
from omnigraph.storage.lance.staging.rows import write_rows
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.objects.store import ObjectStore

# Members of a version's message, of a fragment's, of a data file's and of a list of deletions.
_FRAGMENT, _INDEXES, _READER_FLAGS, _WRITER_FLAGS = 2, 6, 9, 10
_ID, _FILE, _DELETIONS = 1, 2, 3
_PATH, _FIELDS, _COLUMNS, _MAJOR, _MINOR, _SIZE, _BASE = 1, 2, 3, 4, 5, 6, 7
_READ_VERSION, _DELETIONS_ID, _DELETED = 2, 3, 4
_HAS_DELETIONS: Final = 1  # feature flag: the version has deletion files
_NAME_BITS: Final = 63
"""Random numbers of this many bits name lists of deleted rows, as Lance's own do."""

RowMask = Callable[["pa.Table"], "np.ndarray[Any, Any]"]
"""A mask of the rows to erase."""
Files = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Erasure:
    """Which rows of a table to erase, and the columns needed to select them."""

    columns: tuple[str, ...]
    selects: RowMask


@dataclass(frozen=True, slots=True)
class AffectedVersion:
    """The rows of one version that are to be erased."""

    ref: TableRef
    fragments: tuple[int, ...]  # that hold such rows, deleted or not
    live: int  # how many of them are not deleted
    indexed: bool
    has_blobs: bool

    @property
    def touched(self) -> bool:
        return bool(self.fragments)


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases rows from the versions of one table, whichever physical branch they are on."""

    store: TableStore
    objects: ObjectStore
    erasure: Erasure
    stored: Mapping[str | None, BranchObjects]
    _found: dict[Files, np.ndarray[Any, Any]] = field(default_factory=dict)
    _written: dict[Files, _Replacement] = field(default_factory=dict)
    _deletions: dict[tuple[str, int, str], tuple[int, int, int]] = field(default_factory=dict)

    def inspect(self, table: PinnedTable) -> AffectedVersion:
        """The rows of a version that are to be erased."""
        found, live = [], 0
        for fragment_id, fragment in table.fragments.items():
            offsets = self._offsets(table, fragment_id, fragment)
            if len(offsets):
                found.append(fragment_id)
                live += len(offsets)
                if fragment.deletion_file is not None:
                    live -= int(_is_deleted(table, fragment_id)[offsets].sum())
        return AffectedVersion(
            table.ref,
            tuple(found),
            live,
            bool(table.dataset.describe_indices()),
            any(is_blob_type(column.type) for column in table.dataset.schema),
        )

    def names(self, table: PinnedTable, affected: AffectedVersion) -> set[str]:
        """The names of the files of a version that hold rows to erase."""
        return {
            f"data/{file.path.removesuffix('.lance')}"
            for fragment_id in affected.fragments
            for file in table.fragments[fragment_id].files
        }

    def holds(self, path: str) -> bool:
        """Whether an unreferenced file holds rows to erase; False when it is not a Lance file."""
        location = self.store.location
        with translated(f"reading {path}"):
            uri, options = location.child(path).uri, self.store.options
            names = LanceFileReader(uri, options).metadata().schema.names
            wanted = [name for name in self.erasure.columns if name in names]
            if not wanted:
                return False
            rows = LanceFileReader(uri, options, wanted).read_all().to_table()
        return bool(self.erasure.selects(rows).any())

    def erase(self, table: PinnedTable, affected: AffectedVersion) -> None:
        """Replace the file of a version, so that the version has these rows no longer."""
        new = {f: self._replacement(table, f) for f in affected.fragments}
        where = self.stored[table.ref.branch].versions[table.ref.version].path
        changes = {f: self._fragment(table, f, made) for f, made in new.items()}
        old = self.objects.get(where)
        self.objects.put(where, edited(old, lambda found: _version(found, changes)))

    def _offsets(self, table: PinnedTable, fragment_id: int, fragment: Any) -> np.ndarray[Any, Any]:
        """The offsets of the rows to erase in a fragment, cached: files never change."""
        key = _files(fragment)
        if key not in self._found:
            rows = _physical(table, fragment_id, self.erasure.columns)
            self._found[key] = np.flatnonzero(self.erasure.selects(rows))
        return self._found[key]

    def _replacement(self, table: PinnedTable, fragment_id: int) -> _Replacement:
        """The file that replaces a fragment's files; written once for all versions."""
        fragment = table.fragments[fragment_id]
        key = _files(fragment)
        known = self._written.get(key)
        if known is not None:
            return known
        rows = _physical(table, fragment_id, [f.name for f in table.dataset.schema])
        doomed = np.zeros(rows.num_rows, dtype=bool)
        doomed[self._found[key]] = True
        if doomed.all():
            made = _Replacement(None, doomed)
        else:
            order = np.arange(rows.num_rows)
            order[doomed] = np.flatnonzero(~doomed)[0]
            (written,) = write_rows(table, rows.take(order))
            (file,) = written.files
            self._move(table.ref, file.path, key[0])
            made = _Replacement(file, doomed)
        self._written[key] = made
        return made

    def _move(self, ref: TableRef, name: str, old: str) -> None:
        """Move a file beside the old one, where the versions that share it expect it."""
        stem = f"data/{old.removesuffix('.lance')}"
        infos = [info for h in self.stored.values() for info in h.files.get(stem, ())]
        target = f"{os.path.dirname(infos[0].path)}/{name}"
        source = f"{ref.dataset_path}/data/{name}"
        if source != target:
            self.objects.rename(source, target)

    def _fragment(
        self, table: PinnedTable, fragment_id: int, made: _Replacement
    ) -> Callable[[bytes], bytes | None]:
        if made.file is None:
            return lambda raw: None
        version, name, count = self._deleted(table, fragment_id, made)
        deletions = of(_READ_VERSION, version) + of(_DELETIONS_ID, name) + of(_DELETED, count)
        file = made.file

        def change(raw: bytes) -> bytes:
            parts = list(members(content(raw)))
            first = next(part for member, part in parts if member == _FILE)
            base = [p for m, p in members(content(first)) if m == _BASE]
            kept = [part for member, part in parts if member not in (_FILE, _DELETIONS)]
            new = [of_bytes(_FILE, _data_file(file, base)), of_bytes(_DELETIONS, deletions)]
            return of_bytes(_FRAGMENT, b"".join([*kept, *new]))

        return change

    def _deleted(
        self, table: PinnedTable, fragment_id: int, made: _Replacement
    ) -> tuple[int, int, int]:
        """The deletion file of a fragment with the erased rows added; shared by versions."""
        old = table.fragments[fragment_id].deletion_file
        before = "" if old is None else old.path(fragment_id)
        key = (table.ref.dataset_path, fragment_id, before)
        if key not in self._deletions:
            rows = np.flatnonzero(_is_deleted(table, fragment_id) | made.doomed)
            name = secrets.randbits(_NAME_BITS)
            sink = io.BytesIO()
            schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
            listed = pa.table([pa.array(rows, pa.uint32())], schema=schema)
            with pa.ipc.new_file(sink, schema) as writer:
                writer.write_table(listed)
            where = f"{table.ref.dataset_path}/_deletions"
            version = table.ref.version
            self.objects.put(f"{where}/{fragment_id}-{version}-{name}.arrow", sink.getvalue())
            self._deletions[key] = (version, name, len(rows))
        return self._deletions[key]


@dataclass(frozen=True, slots=True)
class _Replacement:
    """The file that replaces a fragment's files; None when no row is left."""

    file: Any
    doomed: np.ndarray[Any, Any]


def _version(
    found: Iterator[Member], changes: Mapping[int, Callable[[bytes], bytes | None]]
) -> Iterable[bytes]:
    flagged = set()
    for member, raw in found:
        if member == _INDEXES:
            continue
        if member == _FRAGMENT:
            numbers = [number(part) for m, part in members(content(raw)) if m == _ID]
            change = changes.get(numbers[0] if numbers else 0)
            made = raw if change is None else change(raw)
            if made is not None:
                yield made
        elif member in (_READER_FLAGS, _WRITER_FLAGS):
            flagged.add(member)
            yield of(member, number(raw) | (_HAS_DELETIONS if changes else 0))
        else:
            yield raw
    for member in {_READER_FLAGS, _WRITER_FLAGS} - flagged if changes else ():
        yield of(member, _HAS_DELETIONS)


def _data_file(file: Any, base: list[bytes]) -> bytes:
    parts = [
        of_bytes(_PATH, file.path.encode()),
        of_bytes(_FIELDS, b"".join(_packed(file.fields))),
        of_bytes(_COLUMNS, b"".join(_packed(file.column_indices))),
        of(_MAJOR, file.file_major_version),
        of(_MINOR, file.file_minor_version),
        of(_SIZE, file.file_size_bytes),
        *base,
    ]
    return b"".join(parts)


def _packed(values: Iterable[int]) -> Iterator[bytes]:
    """Packed varints; -1 marks fields without a column."""
    for value in values:
        yield of(0, value & 0xFFFF_FFFF_FFFF_FFFF)[1:]


def _physical(table: PinnedTable, fragment_id: int, columns: Iterable[str]) -> pa.Table:
    """All rows that the files of a fragment hold, deleted ones included, in their order."""
    return _everything(table, fragment_id, columns).drop_columns(["_rowid"])


def _is_deleted(table: PinnedTable, fragment_id: int) -> np.ndarray[Any, Any]:
    rows = _everything(table, fragment_id, ["id"])
    return ~np.asarray(rows["_rowid"].is_valid())


def _everything(table: PinnedTable, fragment_id: int, columns: Iterable[str]) -> pa.Table:
    with translated(f"reading {table.ref.path}"):
        return table.dataset.scanner(
            columns=list(columns),
            fragments=[table.dataset.get_fragment(fragment_id)],
            include_deleted_rows=True,
            with_row_id=True,
            scan_in_order=True,
        ).to_table()


def _files(fragment: Any) -> Files:
    return tuple(file.path for file in fragment.files)
