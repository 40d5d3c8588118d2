"""The files of a load: paths, directories, globs and object stores, and their formats.

Compression (gzip, zstd) and format (NDJSON, Parquet, CSV) are recognised by the first bytes, never
by the name alone. A file that cannot be read raises a typed error that names it.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Literal, cast

import pyarrow as pa

from omnigraph.errors import InvalidData, InvalidInput, ObjectNotFound, PermissionDenied
from omnigraph.settings import StorageSettings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore

LoadFormat = Literal["ndjson", "csv", "parquet"]

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_PARQUET: Final = b"PAR1"
_PEEK_BYTES: Final = 4_096
_MAGIC: Final = "*?["

READ_BYTES: Final = (64 << 10, 8 << 20)
"""Bytes per request to an object store: little at first, since many files are opened only to be
recognised, then twice as much each time until latency costs little."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read. ``open`` returns a stream of its raw bytes.

    ``path`` is a local path or a URI that another process can open; None for bytes in memory.
    """

    name: str
    open: Callable[[], IO[bytes]]
    path: str | None = None
    size: int | None = None
    """Its bytes, if they are known without asking."""

    @property
    def is_local(self) -> bool:
        return self.path is not None and "://" not in self.path


def find_files(source: str | os.PathLike[str], storage: StorageSettings) -> list[SourceFile]:
    """The files of a path, a directory, a glob or a URI, sorted by name."""
    text = os.fspath(source)
    if "://" in text and not text.startswith("file://"):
        return _remote_files(text, storage)
    path = text.removeprefix("file://")
    if os.path.isdir(path):
        found = sorted(str(p) for p in Path(path).iterdir() if _is_data(p))
    elif any(char in path for char in _MAGIC) and not os.path.exists(path):
        found = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
    else:
        found = [path] if os.path.isfile(path) else []
    if not found:
        raise InvalidInput(
            f"there is no file to load at {text}", remedy="Name a file, a directory or a glob."
        )
    return [_local(name, text) for name in found]


def reopened(name: str, path: str, storage: StorageSettings) -> SourceFile:
    """A file that was found before, perhaps by another process."""
    return replace(_remote(path, storage) if "://" in path else _local(path, path), name=name)


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_"))


def _local(path: str, given: str) -> SourceFile:
    name = given if os.path.isfile(given) else os.path.basename(path)

    def opened() -> IO[bytes]:
        try:
            return open(path, "rb")
        except PermissionError as problem:
            raise PermissionDenied(f"{name} cannot be read") from problem
        except OSError as problem:
            raise InvalidInput(f"{name} cannot be read: {problem.strerror}") from problem

    return SourceFile(name, opened, os.path.abspath(path), _local_size(path))


def _local_size(path: str) -> int | None:
    with suppress(OSError):  # opening it says what is wrong
        return os.path.getsize(path)
    return None


def _remote_files(uri: str, storage: StorageSettings) -> list[SourceFile]:
    """The object at a URI, or the objects of a folder or a glob, sorted by name."""
    base, _, name = uri.rpartition("/")
    if name and not any(char in uri for char in _MAGIC):
        with suppress(ObjectNotFound):
            size = open_objects(parse_location(base), storage).size(name)
            return [_remote(uri, storage, size)]
        base, name = uri, "*"
    while any(char in base for char in _MAGIC):
        base, _, first = base.rpartition("/")
        name = f"{first}/{name}"
    found = open_objects(parse_location(base), storage).list()
    chosen = [info for info in found if PurePosixPath(info.path).match(name or "*")]
    chosen = [info for info in chosen if info.path.count("/") == name.count("/")]
    files = [
        _remote(f"{base}/{info.path}", storage, info.size)
        for info in chosen
        if not info.path.rpartition("/")[2].startswith((".", "_"))
    ]
    if not files:
        raise InvalidInput(
            f"there is no file to load at {uri}", remedy="Name a file, a directory or a glob."
        )
    return files


def _remote(uri: str, storage: StorageSettings, size: int | None = None) -> SourceFile:
    base, _, name = uri.rpartition("/")

    def opened() -> IO[bytes]:
        objects = open_objects(parse_location(base), storage)
        length = objects.size(name) if size is None else size
        return io.BufferedReader(cast(Any, _ObjectReader(objects, name, length)), READ_BYTES[1])

    return SourceFile(uri, opened, uri, size)


class _ObjectReader(io.RawIOBase):
    """An object as a stream: what is read is requested by range, so that no task holds a file."""

    def __init__(self, objects: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._objects = objects
        self._path = path
        self._size = size
        self._at = 0
        self._window = READ_BYTES[0]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        moved = max(origin + offset, 0)
        if moved != self._at:
            self._at, self._window = moved, READ_BYTES[0]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._size - self._at, self._window)
        self._window = min(2 * self._window, READ_BYTES[1])
        if size <= 0:
            return 0
        data = self._objects.get_range(self._path, self._at, size)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def from_bytes(data: bytes, name: str = "<data>") -> SourceFile:
    """Bytes in memory as a file."""
    return SourceFile(name, lambda: io.BytesIO(data), size=len(data))


@contextmanager
def opened(file: SourceFile) -> Iterator[io.BufferedReader]:
    """The decompressed content of a file; read errors in the block name the file."""
    with file.open() as raw:
        try:
            yield _decompressed(io.BufferedReader(cast(Any, raw), 1 << 20))
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            raise _damaged(file, str(problem)) from problem
        except OSError as problem:
            if problem.errno is not None:
                raise InvalidInput(f"{file.name} cannot be read: {problem.strerror}") from problem
            raise _damaged(file, str(problem)) from problem


def _decompressed(raw: io.BufferedReader) -> io.BufferedReader:
    head = raw.peek(4)[:4]
    if head.startswith(_GZIP):
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=raw)), 1 << 20)
    if head.startswith(_ZSTD):
        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
        return io.BufferedReader(cast(Any, stream), 1 << 20)
    return raw


def is_compressed(file: SourceFile) -> bool:
    """Whether the content is compressed, so that it cannot be split into parts."""
    with file.open() as raw:
        return raw.read(4).startswith((_GZIP, _ZSTD))


def _damaged(file: SourceFile, why: str) -> InvalidData:
    message = f"{file.name} is damaged: {why}"
    violation = {"rule": "syntax", "message": message, "file": file.name}
    return InvalidData(message, violations=[violation], total=1, remedy="Fetch the file again.")


def recognise(file: SourceFile, stream: io.BufferedReader) -> LoadFormat:
    """The format of a file, by its first bytes; other content is CSV if the name says so."""
    head = stream.peek(_PEEK_BYTES)[:_PEEK_BYTES]
    if head.startswith(_PARQUET):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{") or not text:
        return "ndjson"
    stem = file.name.lower().removesuffix(".gz").removesuffix(".zst")
    return "csv" if stem.endswith((".csv", ".tsv", ".txt")) else "ndjson"
