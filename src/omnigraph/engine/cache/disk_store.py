"""Derived arrays on local disk, so that another process does not have to make them again.

One file per thing, named by what it was made from: graph, location, physical branch, version and
transaction of every table involved. Files are written beside and renamed, carry a checksum, and are
opened as memory maps. Nothing here is ever trusted over the tables: what is missing, damaged or
from another format is made anew, and what cannot be written is not kept.
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

from omnigraph.model.integers import whole_number
from omnigraph.predicates.values import Ints
from omnigraph.storage.cache_directory import DIRECTORY_ENVIRONMENT, cache_directory

BYTES_ENVIRONMENT: Final = "OMNIGRAPH_CACHE_DIR_BYTES"
BYTES_MAX: Final = 10 << 30
"""All files together; the ones that were not used for the longest time go first."""
SUFFIX: Final = ".arrays"
_MAGIC: Final = b"omnigraph-arrays-1\n"
_ALIGNMENT: Final = 64
_ABANDONED_S: Final = 3_600.0
"""A file in the making that is older than this belongs to a process that died."""


class ArrayStore:
    """A directory of named groups of arrays, bounded by bytes. Safe for many processes."""

    def __init__(self, directory: Path, bytes_max: int = BYTES_MAX) -> None:
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
        """Keep arrays under a name; not being able to is no error."""
        path = self._path(name)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            for folder in (self.directory, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(beside, name, arrays)
            os.replace(beside, path)
            self._shrink()
        except OSError as problem:
            _log().info("not keeping %s: %s", path, problem)
            with contextlib.suppress(OSError):
                beside.unlink()

    def forget(self, part: str) -> None:
        """Remove everything whose name has this part."""
        for path in self.directory.glob("*/*"):  # also what is in the making
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
    """For its owner alone: what is derived from texts can be read like them."""
    return os.open(path, flags, 0o600)


def _read(path: Path, name: str) -> dict[str, Ints]:
    with path.open("rb") as file:
        header, start = _header(file)
    if header["name"] != name:
        raise ValueError("made of something else")
    found, checksum = {}, 0
    for key, dtype, length, offset in header["arrays"]:
        if length:
            array: Ints = np.memmap(path, dtype, "r", start + offset, (length,))
        else:
            array = np.empty(0, dtype)
        checksum = zlib.crc32(array.data, checksum) if length else checksum
        found[key] = array.view(np.ndarray)
    if checksum != header["checksum"]:
        raise ValueError("the checksum is wrong")
    return found


def _header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """What a file says about itself, and where its arrays begin."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not of this format")
    size = int.from_bytes(file.read(8), "little")
    found: dict[str, Any] = json.loads(file.read(size))
    return found, _padded(len(_MAGIC) + 8 + size)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def default_store() -> ArrayStore | None:
    """The store the environment names; None when it is switched off by an empty name."""
    if os.environ.get(DIRECTORY_ENVIRONMENT) == "":
        return None
    limit = whole_number(os.environ.get(BYTES_ENVIRONMENT, ""))
    bytes_max = BYTES_MAX if limit is None else limit
    return ArrayStore(cache_directory(os.environ), bytes_max)


def _log() -> logging.Logger:
    """Few processes have something to say about files."""
    return logging.getLogger("omnigraph.cache")
