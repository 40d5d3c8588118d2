"""Which blob references to bytes outside a graph are allowed, and when the bytes are copied in.

By default none is allowed: a URI in data could make the program read files of its host. A graph
handle may allow base URIs; the bytes behind a reference below one of them are copied into the
graph, or the reference is kept where the write asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnigraph.errors import (
    ExternalBlobDenied,
    ExternalBlobUnavailable,
    InvalidInput,
    OmnigraphError,
    ResourceLimit,
)
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.settings import StorageSettings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.confined_files import OutsideBase, is_below, read_below
from omnigraph.storage.objects.obstore_store import open_objects

URI_CHARS_MAX: Final = 65_536
COPIED_BYTES_MAX: Final = 1 << 30
"""The most bytes that one write may copy in: they are in memory until they are staged."""


@dataclass(frozen=True, slots=True)
class BlobPolicy:
    """The base URIs below which references are allowed, and whether a write keeps references."""

    bases: tuple[str, ...] = ()
    keep_references: bool = False
    storage: StorageSettings = field(default_factory=StorageSettings)

    def keeping(self, keep: bool) -> BlobPolicy:
        return replace(self, keep_references=keep)

    def settle(self, values: Sequence[Any], place: Callable[[int], str] | None = None) -> list[Any]:
        """Blob values with every reference checked, and replaced by its bytes unless kept.

        ``place`` gives the file and line of the value at a position, for errors.
        """
        settled: list[Any] = []
        copied = 0
        for at, value in enumerate(values):
            if isinstance(value, str):
                where = "" if place is None else place(at)
                base = self._allowing(value, where)
                if self.keep_references:
                    _require_below(base, value, where)
                else:
                    value = self._fetch(base, value, where)
                    copied += len(value)
                    if copied > COPIED_BYTES_MAX:
                        raise ResourceLimit(
                            "bytes copied from references", COPIED_BYTES_MAX, copied
                        )
            settled.append(value)
        return settled

    def settle_row(self, owner: NodeType | EdgeType, row: dict[str, Any]) -> dict[str, Any]:
        """``settle`` for the blobs among the values of one entity."""
        for name, value in row.items():
            declared = owner.properties.get(name)  # None for an end of an edge
            if isinstance(value, str) and declared is not None and declared.type.is_blob:
                row[name] = self.settle([value])[0]
        return row

    def _allowing(self, uri: str, where: str) -> str:
        """The allowed base URI that a reference is below."""
        if len(uri) > URI_CHARS_MAX:
            raise InvalidInput(f"{where}a blob reference has more than {URI_CHARS_MAX} characters")
        base = next((base for base in self.bases if uri.startswith(_with_slash(base))), None)
        if base is None or ".." in uri.split("/") or "%" in uri:
            raise _denied(uri, where)
        return base

    def _fetch(self, base: str, uri: str, where: str) -> bytes:
        """The bytes behind an allowed reference; symbolic links must not lead out of its base."""
        try:
            location = parse_location(uri)
            if location.is_local:
                return read_below(parse_location(base).path, location.path)
            folder, _, name = uri.rpartition("/")
            return open_objects(parse_location(folder), self.storage).get(name)
        except OutsideBase:
            raise _denied(uri, where) from None
        except OSError as problem:
            raise ExternalBlobUnavailable(
                f"{where}the blob reference {shown_uri(uri)} could not be read: {problem.strerror}",
                details={"uri": shown_uri(uri), "reason": _reason(problem)},
            ) from problem
        except OmnigraphError as problem:
            raise ExternalBlobUnavailable(
                f"{where}the blob reference {shown_uri(uri)} could not be read: {problem.message}",
                details={"uri": shown_uri(uri), "reason": problem.code},
            ) from problem


def shown_uri(uri: str) -> str:
    """A URI for error texts: without user, password and query, and shortened."""
    scheme, found, rest = uri.partition("://")
    rest = rest.partition("?")[0].rpartition("@")[2]
    text = f"{scheme}://{rest}" if found else uri.partition("?")[0]
    return text if len(text) <= 200 else text[:200] + "…"


def _with_slash(base: str) -> str:
    return base if base.endswith("/") else base + "/"


def _denied(uri: str, where: str) -> ExternalBlobDenied:
    return ExternalBlobDenied(
        f"{where}the blob reference {shown_uri(uri)} is not below an allowed base",
        details={"uri": shown_uri(uri), "reason": "denied by policy"},
    )


def _require_below(base: str, uri: str, where: str) -> None:
    """Raise if symbolic links lead a kept reference out of its base; the file is not read."""
    location = parse_location(uri)
    if location.is_local and not is_below(parse_location(base).path, location.path):
        raise _denied(uri, where)


def _reason(problem: OSError) -> str:
    return "object_not_found" if isinstance(problem, FileNotFoundError) else "not readable"
