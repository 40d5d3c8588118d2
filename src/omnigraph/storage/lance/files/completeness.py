"""Checks that the files of a commit are complete on disk, before the commit.

On a local disk Lance loses the error of the last write to a file: when the disk or a quota is full,
or the file grows too large, the call succeeds and the file is truncated. A commit that refers to it
succeeds too, and the rows are lost. So before every commit to a local table the files that it adds
are checked: data and index files by their size, deletion files (whose size Lance does not record)
by their content. Object stores write objects atomically.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.errors import StorageFull
from omnigraph.storage.locations import Location

# The portable roaring format: https://github.com/RoaringBitmap/RoaringFormatSpec
_COOKIE, _COOKIE_RUNS = 12346, 12347
_OFFSETS_FROM = 4  # a bitmap with run containers has offsets from this many containers on
_ARRAY_MAX = 4096  # a container of more values is stored as a bitmap of fixed size
_BITMAP_BYTES = 8192


def require_complete_files(dataset: Location, operation: Any, known: Mapping[int, Any]) -> None:
    """Raise ``StorageFull`` when a file of the operation is missing or truncated.

    ``dataset`` is the location of the table or branch, ``known`` its fragments before the
    operation.
    """
    if not dataset.is_local:
        return
    for file in added_files(operation, known):
        if file.deleted_rows is None:
            _require_size(dataset, file.name, file.size)
        else:
            _require_deletion(dataset, file.name, file.deleted_rows)


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that an operation adds; its name is relative to the dataset."""

    name: str
    size: int | None
    deleted_rows: int | None = None  # of a deletion file, whose size Lance does not record


def added_files(operation: Any, known: Mapping[int, Any]) -> Iterator[AddedFile]:
    """The data, deletion and index files that an operation adds to a dataset."""
    for fragment in added_fragments(operation):
        before = known.get(fragment.id)
        if before is fragment:
            continue  # unchanged: listed only to make the commit strict
        for file in fragment.files:
            if file.base_id is None and (before is None or file not in before.files):
                yield AddedFile(f"data/{file.path}", file.file_size_bytes)
        deletion = fragment.deletion_file
        seen = before is not None and before.deletion_file == deletion
        if deletion is not None and deletion.base_id is None and not seen:
            yield AddedFile(deletion.path(fragment.id), None, deletion.num_deleted_rows)
    for index in getattr(operation, "new_indices", None) or ():
        for file in (index.files or ()) if index.base_id is None else ():
            yield AddedFile(f"_indices/{index.uuid}/{file.path}", file.size_bytes)


def is_complete_deletion_file(name: str, data: bytes, count: int) -> bool:
    """Whether a deletion file is complete and lists this many rows."""
    is_complete = is_complete_bitmap if name.endswith(".bin") else _is_complete_arrow
    return is_complete(data, count)


def is_complete_bitmap(data: bytes, count: int) -> bool:
    """Whether the bytes are a complete roaring bitmap of this many values."""
    try:
        return _bitmap_shape(data) == (len(data), count)
    except (struct.error, IndexError, ValueError):
        return False


def added_fragments(operation: Any) -> Iterator[Any]:
    """Every fragment that an operation of any kind contains."""
    for name in ("updated_fragments", "new_fragments", "fragments"):
        yield from getattr(operation, name, None) or ()
    for group in getattr(operation, "groups", None) or ():
        yield from group.new_fragments


def _require_size(dataset: Location, name: str, expected: int | None) -> None:
    try:
        found = os.path.getsize(os.path.join(dataset.path, name))
    except FileNotFoundError:
        found = -1
    if found < (expected or 0):
        raise _truncated_file(dataset, name)


def _require_deletion(dataset: Location, name: str, count: int) -> None:
    try:
        with open(os.path.join(dataset.path, name), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise _truncated_file(dataset, name) from None
    if not is_complete_deletion_file(name, data, count):
        raise _truncated_file(dataset, name)


def _is_complete_arrow(data: bytes, count: int) -> bool:
    try:
        return bool(pa.ipc.open_file(data).read_all().num_rows == count)
    except pa.ArrowInvalid:
        return False


def _bitmap_shape(data: bytes) -> tuple[int, int]:
    """The length of a bitmap according to its header, and its number of values."""
    (cookie,) = struct.unpack_from("<I", data)
    if cookie == _COOKIE:
        (containers,) = struct.unpack_from("<I", data, 4)
        position, is_run = 8, bytes((containers + 7) // 8)
    elif cookie & 0xFFFF == _COOKIE_RUNS:
        containers = (cookie >> 16) + 1
        position = 4 + (containers + 7) // 8
        is_run = data[4:position]
    else:
        raise ValueError("not a roaring bitmap")
    sizes = [struct.unpack_from("<HH", data, position + 4 * n)[1] + 1 for n in range(containers)]
    position += 4 * containers
    if cookie == _COOKIE or containers >= _OFFSETS_FROM:
        position += 4 * containers
    for n, size in enumerate(sizes):
        if is_run[n // 8] >> (n % 8) & 1:
            position += 2 + 4 * int(struct.unpack_from("<H", data, position)[0])
        else:
            position += 2 * size if size <= _ARRAY_MAX else _BITMAP_BYTES
    return position, sum(sizes)


def _truncated_file(dataset: Location, name: str) -> StorageFull:
    return StorageFull(
        f"a file of {dataset.uri} was truncated while it was written ({name})",
        remedy="Free space on the disk or raise the quota, then try again. Nothing was committed.",
        details={"path": f"{dataset.uri}/{name}"},
    )
