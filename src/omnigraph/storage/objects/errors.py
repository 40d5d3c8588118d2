"""Translates the errors of object stores, in one function.

obstore types the common cases and leaves the rest as one class with a text; operating system
errors inside that text, HTTP status codes and S3 error codes are recognised here and nowhere else
(``tests/guards/test_obstore_guards.py`` pins the texts). Two rules: a refusal never becomes "does
not exist", and a write whose response was lost never becomes "did not happen".
"""

from __future__ import annotations

import errno
import os
import re

from omnigraph.errors import (
    InvalidInput,
    ObjectChanged,
    ObjectExists,
    ObjectNotFound,
    OmnigraphError,
    OutcomeUnknown,
    PermissionDenied,
    StorageFailure,
    StorageFull,
    UnsupportedLocation,
)

_LOCAL = "Generic LocalFileSystem error"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_STATUS = re.compile(r"status code: (\d{3})")
_S3_CODE = re.compile(r"<Code>(\w+)</Code>")
_NEVER_SENT = re.compile(r"kind: Connect\b|HTTP error: builder error")
_REDIRECT = "Received redirect without LOCATION"
_INSTANCE_CREDENTIALS = "169.254.169.254"

_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_WRONG_KIND = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY})
_FULL_CODES = frozenset({"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"})


def storage_error(error: Exception, *, action: str, where: str, writing: bool) -> OmnigraphError:
    """Translate an error that the store raised during ``action`` on ``where``."""
    if isinstance(error, OmnigraphError):
        return error
    text = str(error).partition("\n\nDebug source")[0].strip()
    details = {"action": action, "object": where}
    number = _os_error(error, text)
    if number is not None:
        return _from_errno(number, action, where, details, writing)
    name = type(error).__name__
    status, code = _http(str(error))
    if code == "NoSuchBucket":
        return UnsupportedLocation(
            f"cannot {action} {where}: the bucket does not exist",
            remedy="Create the bucket, or correct its name and the endpoint.",
            details=details,
        )
    if _INSTANCE_CREDENTIALS in text:
        return PermissionDenied(
            f"cannot {action} {where}: there are no credentials for this store",
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (for s3:// URIs).",
            details=details,
        )
    if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return PermissionDenied(f"not allowed to {action} {where}", details=details)
    if name == "AlreadyExistsError":
        return ObjectExists(f"{where} exists already", details=details)
    if name == "PreconditionError":
        return ObjectChanged(f"{where} was changed since it was read", details=details)
    if isinstance(error, FileNotFoundError):
        return ObjectNotFound(f"{where} does not exist", details=details)
    if status == 507 or code in _FULL_CODES:
        return StorageFull(f"cannot {action} {where}: the store is full", details=details)
    if status == 301 or _REDIRECT in text:
        return UnsupportedLocation(
            f"cannot {action} {where}: the bucket is in another region",
            remedy="Set AWS_REGION to the bucket's region.",
            details=details,
        )
    if name == "InvalidPathError" or isinstance(error, ValueError):
        return InvalidInput(f"cannot {action} {where}: {text}", details=details)
    never_sent = _NEVER_SENT.search(str(error)) is not None
    refused = status is not None and 400 <= status < 500
    if writing and not never_sent and not refused:
        return OutcomeUnknown(
            f"the store did not confirm the request to {action} {where}: {text}",
            remedy="Read the object before repeating the request: it may have taken effect.",
            details=details,
        )
    return StorageFailure(f"cannot {action} {where}: {text}", details=details)


def _os_error(error: Exception, text: str) -> int | None:
    """The file system's error number, typed or from obstore's text; never a network error's."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = _OS_ERROR.search(text) if text.startswith(_LOCAL) else None
    return int(match.group(1)) if match else None


def _http(text: str) -> tuple[int | None, str | None]:
    status, code = _STATUS.search(text), _S3_CODE.search(text)
    return (int(status.group(1)) if status else None, code.group(1) if code else None)


def _from_errno(
    number: int, action: str, where: str, details: dict[str, str], writing: bool
) -> OmnigraphError:
    reason = os.strerror(number)
    if number in _REFUSED:
        return PermissionDenied(
            f"not allowed to {action} {where}: {reason}",
            remedy="Give this user read and write access to the graph's directory.",
            details=details,
        )
    if number in _FULL:
        return StorageFull(f"cannot {action} {where}: {reason}", details=details)
    if number == errno.EEXIST:
        return ObjectExists(f"{where} exists already", details=details)
    if number in _WRONG_KIND and writing:
        return UnsupportedLocation(
            f"cannot {action} {where}: a file is where a directory is needed, or the reverse",
            remedy="Move the conflicting file or directory, or use another location.",
            details=details,
        )
    # A write creates its directories; only a rename needs an existing object.
    missing = number == errno.ENOENT and (not writing or action == "rename")
    if missing or number in _WRONG_KIND:
        return ObjectNotFound(f"{where} does not exist", details=details)
    if number == errno.ENAMETOOLONG:
        return InvalidInput(f"cannot {action} {where}: the path is too long", details=details)
    return StorageFailure(f"cannot {action} {where}: {reason}", details=details)
