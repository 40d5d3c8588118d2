"""Whether the files a commit is about to name are really there, whole.

On a local disk Lance loses the error of the last write to a file: when the disk is full, a quota
is used up or a file grows too large at that very moment, the call succeeds and the file is short.
A commit that names it succeeds too, and the rows are lost. So before every commit to a local table
the files that it adds are looked at: data and index files by their size, deletion files (whose
size Lance does not record) by their content. Object stores take an object whole or not at all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from omnigraph.errors import StorageFull
from omnigraph.storage.locations import Location

# The portable roaring format: https://github.com/RoaringBitmap/RoaringFormatSpec
_COOKIE, _COOKIE_RUNS = 12346, 12347
_OFFSETS_FROM = 4  # with runs, a bitmap of fewer containers has no offsets
_ARRAY_MAX = 4096  # a container of more values is a bitmap of fixed size
_BITMAP_BYTES = 8192


def require_whole(dataset: Location, operation: Any, known: Mapping[int, Any]) -> None:
    """Refuse an operation that names a file which is not all there.

    ``dataset`` is where the table (or its branch) is, ``known`` its fragments before the operation.
    """
    if not dataset.is_local:
        return
    for file in added_files(operation, known):
        if file.deleted_rows is None:
            _require_size(dataset, file.name, file.size)
        else:
            _require_deletion(dataset, file.name, file.deleted_rows)


class AddedFile(NamedTuple):
    """A file that an operation names and no version before it did, relative to the dataset."""

    name: str
    size: int | None
    deleted_rows: int | None = None  # of a deletion file, whose size Lance does not record


def added_files(operation: Any, known: Mapping[int, Any]) -> Iterator[AddedFile]:
    """The data, deletion and index files that an operation adds to a dataset's own."""
    for fragment in added_fragments(operation):
        before = known.get(fragment.id)
        if before is fragment:
            continue  # listed only to make the commit strict
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


def deletions_are_whole(name: str, data: bytes, count: int) -> bool:
    """Whether a deletion file has all its bytes and lists this many rows."""
    whole = bitmap_is_whole if name.endswith(".bin") else _arrow_is_whole
    return whole(data, count)


def bitmap_is_whole(data: bytes, count: int) -> bool:
    """Whether these bytes are a whole roaring bitmap of this many values."""
    try:
        return _bitmap_shape(data) == (len(data), count)
    except (struct.error, IndexError, ValueError):
        return False


def added_fragments(operation: Any) -> Iterator[Any]:
    """Every fragment that an operation of any kind writes down."""
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
        raise _cut_short(dataset, name)


def _require_deletion(dataset: Location, name: str, count: int) -> None:
    try:
        with open(os.path.join(dataset.path, name), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise _cut_short(dataset, name) from None
    if not deletions_are_whole(name, data, count):
        raise _cut_short(dataset, name)


def _arrow_is_whole(data: bytes, count: int) -> bool:
    try:
        return bool(pa.ipc.open_file(data).read_all().num_rows == count)
    except pa.ArrowInvalid:
        return False


def _bitmap_shape(data: bytes) -> tuple[int, int]:
    """The length a bitmap should have by its own header, and how many values it holds."""
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


def _cut_short(dataset: Location, name: str) -> StorageFull:
    return StorageFull(
        f"a file of {dataset.uri} was cut short while it was written ({name})",
        remedy="The disk or a quota is full: free some space and try again. Nothing was committed.",
        details={"path": f"{dataset.uri}/{name}"},
    )
