"""Graph locations: parses and normalises graph URIs.

Owns the four forms of a location (local path, ``file://``, ``s3://``, ``memory://``), the absolute
form that the rest of the program uses, and the options of the object store at a location. It must
never touch storage: parsing a location creates, opens and lists nothing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from omnigraph.errors import UnsupportedLocation
from omnigraph.settings import StorageSettings

Scheme = Literal["file", "s3", "memory"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_MEMORY_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# Lance percent-decodes an s3:// URI and cuts it at ? and #, obstore does neither: a key with one
# of these characters would refer to two different objects.
_AMBIGUOUS_IN_S3 = re.compile(r"[%?#\\]")

# Remedies for common schemes that are not supported.
_USE_SERVER = "Name a server with --server; a graph is stored at a local path or an s3:// URI."
_REMEDIES = {
    "http": _USE_SERVER,
    "https": _USE_SERVER,
    "s3a": "Write the same location as s3://BUCKET/PREFIX.",
    "s3n": "Write the same location as s3://BUCKET/PREFIX.",
}


@dataclass(frozen=True, slots=True)
class Location:
    """An absolute location of a graph or a part of it.

    ``container`` is the bucket or the memory store's name and empty for local paths; ``path`` is
    the rest: absolute for local paths, without a leading slash otherwise.
    """

    scheme: Scheme
    container: str
    path: str

    @property
    def uri(self) -> str:
        """The URI that Lance opens and that messages show."""
        if self.scheme == "file":
            return self.path
        base = f"{self.scheme}://{self.container}"
        return f"{base}/{self.path}" if self.path else base

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    def child(self, *parts: str) -> Location:
        """A location inside this one. Parts are plain names and are not parsed."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise UnsupportedLocation(
                    f"{part!r} is not a path inside {self.uri}",
                    remedy="Use a relative name without empty or '..' segments.",
                )
        joined = "/".join(parts)
        path = f"{self.path.rstrip('/')}/{joined}" if self.path else joined
        return Location(self.scheme, self.container, path)

    def require_tables(self) -> None:
        """Raise when tables cannot be stored here.

        Lance parses a path as a URI when it forks a table, and writes the fork to the part before
        a ``?``.
        """
        if self.scheme == "file" and "?" in self.path:
            raise UnsupportedLocation(
                f"a graph cannot be stored at {self.path!r}: its path contains a question mark",
                remedy="Move it to a path without question marks.",
            )

    def storage_options(self, storage: StorageSettings) -> dict[str, str]:
        """Options for the object store; empty for local and memory.

        Lance takes the result as ``storage_options``; the object adapter uses the same, so that
        tables and control objects always use the same store.
        """
        return _s3_options(storage) if self.scheme == "s3" else {}

    def __str__(self) -> str:
        return self.uri


def parse_location(uri: str | os.PathLike[str]) -> Location:
    """Parse a graph URI, or raise :class:`UnsupportedLocation`."""
    text = os.fspath(uri)
    if not text.strip():
        raise UnsupportedLocation(
            "no location given", remedy="Name a local path, a file:// URI or an s3:// URI."
        )
    _require_text(text)
    match = _SCHEME.match(text)
    if match is None:
        if text.lower().startswith("file:"):
            raise UnsupportedLocation(
                f"{text!r} is not a file URI", remedy="Write it as file:///absolute/path."
            )
        return Location("file", "", _absolute(text))
    scheme = match.group(1).lower()
    if scheme == "file":
        return _parse_file(text)
    if scheme == "s3":
        return _parse_s3(text, text[match.end() :])
    if scheme == "memory":
        return _parse_memory(text, text[match.end() :])
    raise UnsupportedLocation(
        f"{scheme}:// locations are not supported: {text!r}",
        remedy=_REMEDIES.get(scheme),
        details={"scheme": scheme},
    )


def _require_text(text: str) -> None:
    """Refuse text that cannot be encoded, which could not be reported or reopened."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnsupportedLocation(
            f"the location {text!r} is not valid UTF-8",
            remedy="Rename the directory to valid UTF-8.",
        ) from None
    if _CONTROL.search(text):
        raise UnsupportedLocation(
            f"the location {text!r} contains control characters",
            remedy="Remove the control characters.",
        )


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise UnsupportedLocation(
            f"the relative path {path!r} cannot be resolved: the working directory was deleted",
            remedy="Change to a directory that exists, or name an absolute path.",
        ) from None


def _parse_file(text: str) -> Location:
    parts = urlsplit(text)
    if parts.netloc.lower() not in ("", "localhost"):
        raise UnsupportedLocation(
            f"{text!r} names the host {parts.netloc!r}; only local files can be used",
            remedy="Write file:///absolute/path (three slashes).",
        )
    if parts.query or parts.fragment:
        raise UnsupportedLocation(
            f"{text!r} has a query or a fragment",
            remedy="Write ? as %3F and # as %23 in a file:// URI.",
        )
    try:
        path = unquote_to_bytes(parts.path).decode()
    except UnicodeDecodeError:
        raise UnsupportedLocation(
            f"{text!r} does not decode to UTF-8", remedy="Percent-encode the path as UTF-8."
        ) from None
    if not path.startswith("/"):
        raise UnsupportedLocation(
            f"{text!r} has no path", remedy="Write it as file:///absolute/path."
        )
    _require_text(path)
    return Location("file", "", _absolute(path))


def _parse_s3(text: str, rest: str) -> Location:
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise UnsupportedLocation(
            f"{text!r} does not name a valid bucket",
            remedy="Write s3://BUCKET/PREFIX; a bucket has 3 to 63 lower-case letters, digits, "
            "dots and hyphens.",
        )
    if _AMBIGUOUS_IN_S3.search(key):
        raise UnsupportedLocation(
            f"{text!r} contains one of % ? # \\ in its prefix",
            remedy="Use a prefix without these characters.",
        )
    return Location("s3", bucket, _clean_key(text, key))


def _parse_memory(text: str, rest: str) -> Location:
    name, _, key = rest.partition("/")
    if not _MEMORY_NAME.fullmatch(name):
        raise UnsupportedLocation(
            f"{text!r} does not name a memory store",
            remedy="Write memory://NAME with letters, digits, dots, hyphens and underscores.",
        )
    return Location("memory", name, _clean_key(text, key))


def _clean_key(text: str, key: str) -> str:
    key = key.removesuffix("/")
    if key and any(segment in ("", ".", "..") for segment in key.split("/")):
        raise UnsupportedLocation(
            f"{text!r} has an empty or dotted segment",
            remedy="Write the prefix without empty, . and .. segments.",
        )
    return key


def _s3_options(storage: StorageSettings) -> dict[str, str]:
    endpoint = storage.endpoint or ""
    if endpoint.lower().startswith("http://") and not storage.allow_http:
        raise UnsupportedLocation(
            f"the S3 endpoint {endpoint} is not encrypted",
            remedy="Set AWS_ALLOW_HTTP=true to use it, or name an https:// endpoint.",
        )
    given = {
        "aws_access_key_id": storage.access_key_id,
        "aws_secret_access_key": storage.secret_access_key,
        "aws_session_token": storage.session_token,
        "aws_region": storage.region,
        "aws_endpoint": storage.endpoint,
        "allow_http": "true" if storage.allow_http else None,
    }
    if storage.force_path_style is not None:
        hosted = "false" if storage.force_path_style else "true"
        given["aws_virtual_hosted_style_request"] = hosted
    return {name: value for name, value in given.items() if value is not None}
