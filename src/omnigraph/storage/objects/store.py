"""The object store interface for control objects, with the same guarantees on every store.

Owns the contract of every read and write that is not part of a Lance table, and the rules for
object paths. It must never interpret the content of an object. The contract is executable:
``tests/storage/test_objects_contract.py``.

The guarantees: a put is atomic; ``put_if_absent`` and ``replace`` have exactly one winner; listings
show objects only (no directories, no temporary files); :class:`ObjectNotFound` means a missing
object and no other failure; a write whose outcome cannot be determined is :class:`OutcomeUnknown`;
every error is an :class:`OmnigraphError`.
"""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from omnigraph.errors import InvalidInput
from omnigraph.storage.locations import Location

# Temporary files have a suffix, and file systems allow 255 bytes.
SEGMENT_BYTES_MAX = 240
# S3 keys are limited to 1024 bytes, which include the prefix of the graph.
PATH_BYTES_MAX = 768
# The cache of validated paths: every query uses the same one.
PATHS_MAX = 1_024

_RESERVED_SEGMENT = re.compile(r"#\d+$")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing."""

    path: str
    size: int
    modified: datetime


class ObjectStore(Protocol):
    """Atomic operations on objects. Paths are relative to the store's root."""

    @property
    def location(self) -> Location: ...

    def ensure_writable(self) -> None:
        """Raise when the location cannot give the guarantees of the interface."""

    def put(self, path: str, data: bytes) -> None:
        """Create or overwrite an object."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create an object; raise :class:`ObjectExists` if there is one already."""

    def get(self, path: str) -> bytes:
        """The whole content; raise :class:`ObjectNotFound` if there is no such object."""

    def get_range(self, path: str, start: int, size: int) -> bytes:
        """``size`` bytes from ``start``, which lies inside the object; fewer only at its end."""

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        """The content and the tag that :meth:`replace` takes."""

    def replace(self, path: str, data: bytes, tag: str) -> None:
        """Overwrite the object if it still carries ``tag``.

        Otherwise, also when it was deleted, raise :class:`ObjectChanged`.
        """

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int:
        """The size of an object in bytes; raise :class:`ObjectNotFound` if there is none."""

    def list(self, prefix: str = "") -> builtins.list[ObjectInfo]:
        """Every object below ``prefix`` (whole path segments), sorted by path."""

    def delete(self, path: str) -> None:
        """Remove an object; idempotent."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove every object below ``prefix``; idempotent."""

    def rename(self, source: str, target: str) -> None:
        """Move an object, overwriting; the target is complete before the source is removed."""


@lru_cache(maxsize=PATHS_MAX)
def check_object_path(path: str) -> str:
    """The path, if every store accepts it unchanged; raises otherwise."""
    segments = path.split("/")
    problem = None
    if any(segment in ("", ".", "..") for segment in segments):
        problem = "it has an empty or dotted segment"
    elif any(_RESERVED_SEGMENT.search(segment) for segment in segments):
        problem = "names ending in # and digits are reserved for temporary files"
    elif _FORBIDDEN.search(path):
        problem = "it has a control character or a backslash"
    else:
        try:
            longest = max(len(segment.encode()) for segment in segments)
            if longest > SEGMENT_BYTES_MAX or len(path.encode()) > PATH_BYTES_MAX:
                problem = "it is too long"
        except UnicodeEncodeError:
            problem = "it is not valid UTF-8"
    if problem is not None:
        raise InvalidInput(
            f"{path!r} is not a valid object path: {problem}",
            remedy="Use relative paths like a/b.json.",
        )
    return path
