"""Lance's errors, translated in one place.

Lance raises plain ``OSError`` and ``ValueError`` for most failures, so this is the one function
that reads message texts. ``tests/guards`` pins every text it relies on to the Lance version in
use.
"""

from __future__ import annotations

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
    """Lance refused a table commit because the table moved. Nothing of it is visible."""

    code = "commit_refused"


class AmbiguousOutcome(StorageFailure):
    """The store failed in a way that leaves open whether the commit took effect."""

    code = "ambiguous_outcome"


_NOT_FOUND = ("was not found", "Not found:", "does not exist", "NoSuchKey", "NoSuchBucket")
_EXISTS = ("Dataset already exists",)
_PERMISSION = (
    "Permission denied",
    "Read-only file system",
    "AccessDenied",
    "403 Forbidden",
    "status: 403",
    "Operation not permitted",
    "Unauthorized",
    "not authorized",
)
_FULL = ("No space left", "Disk quota exceeded", "File too large", "QuotaExceeded")
_CORRUPT = (
    "does not have sufficient data",
    "magic number",
    "Invalid file format",
    "failed to decode",
    "corrupt",
    "Invalid manifest",
    "protobuf",
    "file size is too small",
    "LanceError(Schema)",
)


@contextmanager
def translated(doing: str, *, committing: bool = False) -> Iterator[None]:
    """Turn whatever Lance raises inside into one of our errors.

    ``committing`` says that a durable step was under way: an unclassified failure may then have
    happened after the effect and is reported as ``AmbiguousOutcome``.
    """
    try:
        yield
    except OmnigraphError:
        raise
    except Exception as error:
        raise translate(error, doing, committing=committing) from error


def translate(error: Exception, doing: str, *, committing: bool = False) -> OmnigraphError:
    """The typed form of a Lance error met while ``doing`` something."""
    text = str(error)
    message = f"{doing}: {_first_line(text)}"
    if _is_conflict(error):
        return CommitRefused(message)
    if _has(text, _FULL):
        return StorageFull(message)
    if _has(text, _PERMISSION):
        return PermissionDenied(message)
    if _has(text, _EXISTS):
        return TableExists(message)
    if committing and "0.manifest was not found" in text:
        # What the loser of two racing creations sees: the winner's table is already there.
        return TableExists(message)
    if _has(text, _NOT_FOUND):
        return TableNotFound(message)
    if _has(text, _CORRUPT):
        return CorruptData(message)
    if committing:
        return AmbiguousOutcome(message)
    return StorageFailure(message)


def _is_conflict(error: Exception) -> bool:
    return type(error).__name__ == "CommitConflictError"


def _has(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)


def _first_line(text: str) -> str:
    """The message without Lance's source locations, on one line."""
    line = text.splitlines()[0] if text else "no message"
    return line.split(", /home/")[0].split(", rust/")[0][:500]
