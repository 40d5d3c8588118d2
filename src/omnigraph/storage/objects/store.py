"""Control objects: the small files beside the tables, with the same promises on every store.

Owns the contract of every read and write that is not part of a Lance table, the rules for object
paths, and the door to the implementation. It must never interpret what an object says. The
contract is executable: ``tests/storage/test_objects_contract.py``.

The promises: a put is whole or not there; ``put_if_absent`` and ``replace`` have exactly one
winner; only objects exist (no directories, no files in the making); a missing object is
:class:`ObjectNotFound` and no other failure is; a write whose outcome cannot be found out is
:class:`OutcomeUnknown`; every error is one of ours.
"""

from __future__ import annotations

import builtins
import os
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal, Protocol, cast, get_args

from omnigraph.errors import InvalidInput
from omnigraph.storage.locations import Location

# A file in the making carries a temporary suffix, and file systems stop at 255 bytes.
SEGMENT_BYTES_MAX = 240
# S3 keys end at 1024 bytes, and the graph's own prefix needs room too.
PATH_BYTES_MAX = 768
# Paths that are known to be right: every query asks for the same one.
PATHS_MAX = 1_024

# "process": a crash of the process loses nothing. "fsync": neither does the loss of power.
Durability = Literal["process", "fsync"]
DURABILITY_VARIABLE = "OMNIGRAPH_DURABILITY"

_RESERVED_SEGMENT = re.compile(r"#\d+$")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing."""

    path: str
    size: int
    modified: datetime


class ObjectStore(Protocol):
    """What the rest of the program may do with objects. Paths are relative to the store's root."""

    @property
    def location(self) -> Location: ...

    def ensure_writable(self) -> None:
        """Refuse now, instead of at the first write, a place that cannot keep the promises."""

    def put(self, path: str, data: bytes) -> None:
        """Create or overwrite an object."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create an object; raise :class:`ObjectExists` if there is one already."""

    def get(self, path: str) -> bytes:
        """The whole content; raise :class:`ObjectNotFound` if there is no such object."""

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        """The content and the tag that :meth:`replace` takes."""

    def replace(self, path: str, data: bytes, tag: str) -> None:
        """Overwrite the object if it still carries ``tag``.

        Otherwise, also when it was deleted, raise :class:`ObjectChanged`.
        """

    def exists(self, path: str) -> bool: ...

    def list(self, prefix: str = "") -> builtins.list[ObjectInfo]:
        """Every object below ``prefix`` (whole path segments), sorted by path."""

    def delete(self, path: str) -> None:
        """Remove an object; a missing one is fine."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove every object below ``prefix``; none is fine."""

    def rename(self, source: str, target: str) -> None:
        """Move an object, overwriting; the target is whole before the source disappears."""


def chosen_durability(asked: str | None) -> Durability:
    """What was asked for, else what the environment says, else ``process``."""
    named = asked if asked is not None else os.environ.get(DURABILITY_VARIABLE) or "process"
    if isinstance(named, str) and named in get_args(Durability):
        return cast("Durability", named)
    source = "durability" if asked is not None else DURABILITY_VARIABLE
    shown = repr(named) if isinstance(named, str) else type(named).__name__
    raise InvalidInput(
        f"{source} is {shown}", remedy=f"Use one of {', '.join(get_args(Durability))}."
    )


@lru_cache(maxsize=PATHS_MAX)
def check_object_path(path: str) -> str:
    """Return the path if every store can hold it under exactly this name, or refuse it."""
    segments = path.split("/")
    problem = None
    if any(segment in ("", ".", "..") for segment in segments):
        problem = "it has an empty or dotted segment"
    elif any(_RESERVED_SEGMENT.search(segment) for segment in segments):
        problem = "names ending in # and digits are reserved for files in the making"
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
