"""Lance's errors, translated in one place.

Lance raises plain ``OSError`` and ``ValueError`` for most failures, so this is the only module that
matches message texts. ``tests/guards`` pins every matched text to the Lance version in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import (
    Conflict,
    CorruptData,
    NotFound,
    OmnigraphError,
    PermissionDenied,
    StorageFailure,
    StorageFull,
)


class TableNotFound(NotFound):
    """A table, or one version of it, is not in the store."""

    code = "table_not_found"
    default_remedy = "The version may have been removed by cleanup: refresh and read a newer one."


class TableExists(Conflict):
    """Another process created the table first."""

    code = "table_exists"
    retryable = False
    default_remedy = "Refresh and use the existing table."


class CommitRefused(Conflict):
    """Lance refused a table commit because of a concurrent commit. Nothing of it is visible."""

    code = "commit_refused"


class AmbiguousOutcome(StorageFailure):
    """The store failed, and it is unknown whether the commit took effect."""

    code = "ambiguous_outcome"


# Whole phrases, because the texts also contain paths that users choose. Operating system errors are
# matched by number: 1 EPERM, 13 EACCES, 20 ENOTDIR, 27 EFBIG, 28 ENOSPC, 30 EROFS,
# 122 EDQUOT.
_NOT_FOUND = (
    ".manifest was not found",
    " was not found: ",
    "Not found: ",
    "<Code>NoSuchKey<",
    "<Code>NoSuchBucket<",
    "(os error 20)",
)
_EXISTS = ("Dataset already exists",)
_PERMISSION = (
    "(os error 1)",
    "(os error 13)",
    "(os error 30)",
    "status code: 401",
    "status code: 403",
    "<Code>AccessDenied<",
)
_FULL = (
    "(os error 27)",
    "(os error 28)",
    "(os error 122)",
    "status code: 507",
    "<Code>QuotaExceeded<",
)
_CORRUPT = (
    "Encountered corrupt file ",
    "Invalid format: ",
    "Invalid range ",
    "LanceError(Schema)",
    "Version not found error: ",  # the version's file exists and contains another version
    "does not appear to be a Lance file",
    "does not appear to be a lance file",
    "does not have sufficient data, len: ",
    "failed to decode Protobuf message",
    "failed to fill whole buffer",
    "file size is too small",
    "row id index corrupt: ",
)
_INTERRUPTED = "External error: KeyboardInterrupt"  # Ctrl-C that arrives inside a Lance stream
_PANIC = "PanicException"  # pyo3's name for a Rust panic; it is not an ``Exception``
_SOURCE = re.compile(r", [^,\s]*\.rs:\d+:\d+")
MESSAGE_CHARACTERS_MAX = 500


@contextmanager
def translated(doing: str, *, committing: bool = False) -> Iterator[None]:
    """Translate any error that Lance raises in the block.

    ``committing``: the block commits. An unclassified failure may then have happened after the
    commit took effect and is reported as ``AmbiguousOutcome``.
    """
    try:
        yield
    except OmnigraphError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        if str(error).startswith(_INTERRUPTED):
            raise KeyboardInterrupt from error
        raise translate(error, doing, committing=committing) from error


def translate(error: BaseException, doing: str, *, committing: bool = False) -> OmnigraphError:
    """The typed form of a Lance error met while ``doing`` something."""
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        text = f"{text} (os error {error.errno})"  # Python's own error in Lance's form
    message = f"{doing}: {_first_line(text)}"
    if _is_conflict(error):
        return CommitRefused(message)
    if _has(text, _FULL):
        return StorageFull(message)
    if _has(text, _PERMISSION):
        return PermissionDenied(message)
    if _has(text, _EXISTS):
        return TableExists(message)
    if committing and "/0.manifest was not found" in text:
        # The loser of two concurrent creations: the other table exists already.
        return TableExists(message)
    if _has(text, _NOT_FOUND):
        return TableNotFound(message)
    if _has(text, _CORRUPT):
        return CorruptData(message)
    if committing:
        return AmbiguousOutcome(message)
    if type(error).__name__ == _PANIC:
        # Lance panics when it reads damaged files.
        return CorruptData(message)
    return StorageFailure(message)


def _is_conflict(error: BaseException) -> bool:
    return type(error).__name__ == "CommitConflictError"


def _has(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)


def _first_line(text: str) -> str:
    """The message without Lance's source locations, on one line."""
    line = text.splitlines()[0] if text else "no message"
    return _SOURCE.sub("", line)[:MESSAGE_CHARACTERS_MAX]
