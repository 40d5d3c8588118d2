"""Reads local files that must be inside a base directory, safe against symbolic links.

The real path is resolved first; then its parts are opened one by one with ``O_NOFOLLOW``, each
relative to the one before. A link created in between is therefore not followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePath


class OutsideBase(Exception):
    """A path outside its base. Internal: callers translate it."""


def is_below(base: str, path: str) -> bool:
    """Whether the real path is inside the real base."""
    return PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def read_below(base: str, path: str) -> bytes:
    """The content of a regular file below ``base``; ``OutsideBase`` if it is elsewhere."""
    real_base = os.path.realpath(base)
    if not is_below(base, path):
        raise OutsideBase
    parts = PurePath(os.path.realpath(path)).relative_to(real_base).parts
    opened = os.open(real_base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            below = _open(part, opened)
            os.close(opened)
            opened = below
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(os.dup(opened), "rb") as file:
            return file.read()
    finally:
        os.close(opened)


def _open(name: str, directory: int) -> int:
    """Open one path part, following no link. Non-blocking: a pipe may have no writer."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise OutsideBase from error
        raise
