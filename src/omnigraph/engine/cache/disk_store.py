"""A disk cache of derived arrays, shared by the processes of one machine.

One file per structure, named by its sources: graph, location, physical branch, version and
transaction of every table involved. Files are written to a temporary name and renamed, carry a
checksum, and are opened as memory maps. The tables remain authoritative: missing, damaged or
outdated files are rebuilt, and failed writes are ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from omnigraph.predicates.values import Ints
from omnigraph.settings import CacheSettings

SUFFIX: Final = ".arrays"
_MAGIC: Final = b"omnigraph-arrays-1\n"
_ALIGNMENT: Final = 64
_ABANDONED_S: Final = 3_600.0
"""An older temporary file was abandoned by a process that died."""


class ArrayStore:
    """A directory of named groups of arrays, bounded by bytes. Safe for many processes."""

    def __init__(self, directory: Path, bytes_max: int) -> None:
        """``bytes_max`` is for all files together; the least recently used are evicted first."""
        self.directory = directory
        self.bytes_max = bytes_max
        self._lock = threading.Lock()

    def read(self, name: str) -> dict[str, Ints] | None:
        """The arrays of this name as memory maps, or None."""
        path = self._path(name)
        try:
            found = _read(path, name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            _log().info("dropping the cache file %s: %s", path, problem)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def write(self, name: str, arrays: Mapping[str, Ints]) -> None:
        """Store arrays under a name; failing to is not an error."""
        path = self._path(name)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            for folder in (self.directory, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(beside, name, arrays)
            os.replace(beside, path)
            self._shrink()
        except OSError as problem:
            _log().info("could not write the cache file %s: %s", path, problem)
            with contextlib.suppress(OSError):
                beside.unlink()

    def invalidate(self, part: str) -> None:
        """Remove every entry whose name contains this text."""
        for path in self.directory.glob("*/*"):  # also temporary files
            with contextlib.suppress(OSError, ValueError, KeyError):
                with path.open("rb") as file:
                    name = _header(file)[0]["name"]
                if part in name:
                    path.unlink()

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()
        return self.directory / digest[:2] / f"{digest}{SUFFIX}"

    def _shrink(self) -> None:
        with self._lock:
            found = []
            for path in self.directory.glob("*/*"):
                with contextlib.suppress(OSError):
                    about = path.stat()
                    if path.suffix == ".tmp":
                        if time.time() - about.st_mtime > _ABANDONED_S:
                            path.unlink()
                        continue
                    found.append((about.st_mtime, about.st_size, path))
            total = sum(size for _, size, _ in found)
            for _, size, path in sorted(found):
                if total <= self.bytes_max:
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= size


def _write(path: Path, name: str, arrays: Mapping[str, Ints]) -> None:
    parts = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    header: dict[str, Any] = {"name": name, "arrays": [], "checksum": 0}
    offset = 0
    for key, array in parts.items():
        header["arrays"].append([key, array.dtype.str, len(array), offset])
        offset += _padded(array.nbytes)
        header["checksum"] = zlib.crc32(array.tobytes(), header["checksum"])
    text = json.dumps(header).encode()
    start = _padded(len(_MAGIC) + 8 + len(text))
    with open(path, "wb", opener=_private) as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        for array, (_, _, _, at) in zip(parts.values(), header["arrays"], strict=True):
            file.seek(start + at)
            file.write(array.tobytes())
        file.truncate(start + offset)


def _private(path: str, flags: int) -> int:
    """Readable by the owner only: postings reveal the texts they were built from."""
    return os.open(path, flags, 0o600)


def _read(path: Path, name: str) -> dict[str, Ints]:
    with path.open("rb") as file:
        header, start = _header(file)
    if header["name"] != name:
        raise ValueError("the file belongs to another structure")
    found, checksum = {}, 0
    for key, dtype, length, offset in header["arrays"]:
        if length:
            array: Ints = np.memmap(path, dtype, "r", start + offset, (length,))
        else:
            array = np.empty(0, dtype)
        checksum = zlib.crc32(array.data, checksum) if length else checksum
        found[key] = array.view(np.ndarray)
    if checksum != header["checksum"]:
        raise ValueError("the checksum does not match")
    return found


def _header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header of a file, and the offset of its arrays."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("unknown format")
    size = int.from_bytes(file.read(8), "little")
    found: dict[str, Any] = json.loads(file.read(size))
    return found, _padded(len(_MAGIC) + 8 + size)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def configured_store(cache: CacheSettings) -> ArrayStore | None:
    """The store in the cache directory; None when the disk cache is disabled."""
    return ArrayStore(cache.root, cache.directory_bytes) if cache.keeps_arrays else None


def _log() -> logging.Logger:
    """The logger, created on first use: most processes never log here."""
    return logging.getLogger("omnigraph.cache")
