"""Where a graph lives: the one place that reads and normalises graph URIs.

Owns the four spellings a user may write (local path, ``file://``, ``s3://``, ``memory://``), the
absolute form every other room works with, and the object-store settings that come from the
environment. It must never touch storage: parsing a location creates, opens and lists nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from omnigraph.errors import UnsupportedLocation

Scheme = Literal["file", "s3", "memory"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_MEMORY_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# Lance percent-decodes an s3:// URI and cuts it at ? and #, obstore does neither: a key with one
# of these characters would mean two different places.
_AMBIGUOUS_IN_S3 = re.compile(r"[%?#\\]")

# A first look at what people type, so that the remedy names the way that works.
_USE_SERVER = "Name a server with --server; a graph itself lives at a local path or an s3:// URI."
_REMEDIES = {
    "http": _USE_SERVER,
    "https": _USE_SERVER,
    "s3a": "Write the same location as s3://BUCKET/PREFIX.",
    "s3n": "Write the same location as s3://BUCKET/PREFIX.",
}


@dataclass(frozen=True, slots=True)
class Location:
    """An absolute place for a graph or a part of it.

    ``container`` is the bucket or the memory store's name and empty for local paths; ``path`` is
    the rest: absolute for local paths, without a leading slash otherwise.
    """

    scheme: Scheme
    container: str
    path: str

    @property
    def uri(self) -> str:
        """What Lance opens, and what is shown to people."""
        if self.scheme == "file":
            return self.path
        base = f"{self.scheme}://{self.container}"
        return f"{base}/{self.path}" if self.path else base

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    def child(self, *parts: str) -> Location:
        """The location of something inside this one. Parts are names, not spellings to parse."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise UnsupportedLocation(
                    f"{part!r} does not name something inside {self.uri}",
                    remedy="Use a relative name without empty or '..' segments.",
                )
        joined = "/".join(parts)
        path = f"{self.path.rstrip('/')}/{joined}" if self.path else joined
        return Location(self.scheme, self.container, path)

    def storage_options(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Settings for the object store, from the environment; empty for local and memory.

        Lance takes the result as ``storage_options``; the object adapter uses the same, so that
        tables and control objects can never talk to two different stores.
        """
        return (
            _s3_options(os.environ if environ is None else environ) if self.scheme == "s3" else {}
        )

    def __str__(self) -> str:
        return self.uri


def parse_location(uri: str | os.PathLike[str]) -> Location:
    """Read a graph URI as a user writes it, or raise :class:`UnsupportedLocation`."""
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
    """Names that cannot be written down again cannot be reported or reopened."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnsupportedLocation(
            f"the location {text!r} is not valid UTF-8", remedy="Rename the directory."
        ) from None
    if _CONTROL.search(text):
        raise UnsupportedLocation(
            f"the location {text!r} contains control characters", remedy="Remove them."
        )


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise UnsupportedLocation(
            f"the relative path {path!r} has no meaning: the working directory was deleted",
            remedy="Change to a directory that exists, or name an absolute path.",
        ) from None


def _parse_file(text: str) -> Location:
    parts = urlsplit(text)
    if parts.netloc.lower() not in ("", "localhost"):
        raise UnsupportedLocation(
            f"{text!r} names the host {parts.netloc!r}; only files of this machine can be used",
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
            f"{text!r} has an empty or dotted segment", remedy="Write the prefix without it."
        )
    return key


def _s3_options(env: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for option, *names in (
        ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
        ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
        ("aws_session_token", "AWS_SESSION_TOKEN"),
        ("aws_region", "AWS_REGION", "AWS_DEFAULT_REGION"),
        ("aws_endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    ):
        value = next((env[name] for name in names if env.get(name)), None)
        if value is not None:
            options[option] = value
    options.setdefault("aws_region", "us-east-1")
    allow_http = _flag(env, "AWS_ALLOW_HTTP")
    endpoint = options.get("aws_endpoint", "")
    if endpoint.lower().startswith("http://") and not allow_http:
        raise UnsupportedLocation(
            f"the S3 endpoint {endpoint} is not encrypted",
            remedy="Set AWS_ALLOW_HTTP=true to use it, or name an https:// endpoint.",
        )
    if allow_http:
        options["allow_http"] = "true"
    path_style = _flag(env, "AWS_S3_FORCE_PATH_STYLE")
    if path_style is not None:
        options["aws_virtual_hosted_style_request"] = "false" if path_style else "true"
    return options


def _flag(env: Mapping[str, str], name: str) -> bool | None:
    value = env.get(name, "").strip().lower()
    if not value:
        return None
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise UnsupportedLocation(
        f"{name} is {value!r}, which is neither true nor false", remedy=f"Set {name} to true."
    )
