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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

import pyarrow as pa

from omnigraph.errors import InvalidData, InvalidInput, PermissionDenied
from omnigraph.settings import StorageSettings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects

LoadFormat = Literal["ndjson", "csv", "parquet"]

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_PARQUET: Final = b"PAR1"
_PEEK_BYTES: Final = 4_096
_MAGIC: Final = "*?["


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read. ``open`` returns a stream of its raw bytes.

    ``path`` is a local path or a URI that another process can open; None for bytes in memory.
    """

    name: str
    open: Callable[[], IO[bytes]]
    path: str | None = None

    @property
    def is_local(self) -> bool:
        return self.path is not None and "://" not in self.path


def find_files(source: str | os.PathLike[str], storage: StorageSettings) -> list[SourceFile]:
    """The files of a path, a directory, a glob or a URI, sorted by name."""
    text = os.fspath(source)
    if "://" in text and not text.startswith("file://"):
        return [_remote(text, storage)]
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

    return SourceFile(name, opened, os.path.abspath(path))


def _remote(uri: str, storage: StorageSettings) -> SourceFile:
    base, _, name = uri.rpartition("/")

    def opened() -> IO[bytes]:
        return io.BytesIO(open_objects(parse_location(base), storage).get(name))

    return SourceFile(uri, opened, uri)


def from_bytes(data: bytes, name: str = "<data>") -> SourceFile:
    """Bytes in memory as a file."""
    return SourceFile(name, lambda: io.BytesIO(data))


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
