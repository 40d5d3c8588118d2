"""Which references to bytes outside a graph are allowed, and when their bytes are copied in.

By default none is: a URI in data could make the program read files of the machine it runs on. A
graph handle may allow bases; a reference below one of them is copied into owned bytes, or kept as
a reference where the write says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.errors import (
    ExternalBlobDenied,
    ExternalBlobUnavailable,
    InvalidInput,
    OmnigraphError,
    ResourceLimit,
)
from omnigraph.schema import EdgeType, NodeType
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects import open_objects

URI_CHARS_MAX: Final = 65_536
COPIED_BYTES_MAX: Final = 1 << 30
"""What one write may copy in; everything is held in memory until it is staged."""


@dataclass(frozen=True, slots=True)
class BlobPolicy:
    """The bases that references may point below, and whether a write keeps references."""

    bases: tuple[str, ...] = ()
    keep_references: bool = False

    def keeping(self, keep: bool) -> BlobPolicy:
        return replace(self, keep_references=keep)

    def settle(self, values: Sequence[Any], place: Callable[[int], str] | None = None) -> list[Any]:
        """Stored blob values with every reference checked, and copied unless it is kept.

        ``place`` says where the value at a position came from, for errors.
        """
        settled: list[Any] = []
        copied = 0
        for at, value in enumerate(values):
            if isinstance(value, str):
                where = "" if place is None else place(at)
                self._require_allowed(value, where)
                if not self.keep_references:
                    value = _fetch(value, where)
                    copied += len(value)
                    if copied > COPIED_BYTES_MAX:
                        raise ResourceLimit(
                            "bytes copied from references", COPIED_BYTES_MAX, copied
                        )
            settled.append(value)
        return settled

    def settle_row(self, owner: NodeType | EdgeType, row: dict[str, Any]) -> dict[str, Any]:
        """The same for the blobs among the values of one entity."""
        for name, value in row.items():
            declared = owner.properties.get(name)  # None for an end of an edge
            if isinstance(value, str) and declared is not None and declared.type.is_blob:
                row[name] = self.settle([value])[0]
        return row

    def _require_allowed(self, uri: str, where: str) -> None:
        if len(uri) > URI_CHARS_MAX:
            raise InvalidInput(f"{where}a blob reference has more than {URI_CHARS_MAX} characters")
        inside = any(uri.startswith(_with_slash(base)) for base in self.bases)
        if not inside or ".." in uri.split("/") or "%" in uri:
            raise ExternalBlobDenied(
                f"{where}the blob reference {shown_uri(uri)} is not below an allowed base",
                details={"uri": shown_uri(uri), "reason": "denied by policy"},
            )


def shown_uri(uri: str) -> str:
    """A URI without what may be secret: no user, no query, not too long."""
    scheme, found, rest = uri.partition("://")
    rest = rest.partition("?")[0].rpartition("@")[2]
    text = f"{scheme}://{rest}" if found else uri.partition("?")[0]
    return text if len(text) <= 200 else text[:200] + "…"


def _with_slash(base: str) -> str:
    return base if base.endswith("/") else base + "/"


def _fetch(uri: str, where: str) -> bytes:
    """The bytes behind an allowed reference."""
    base, _, name = uri.rpartition("/")
    try:
        return open_objects(parse_location(base)).get(name)
    except OmnigraphError as problem:
        raise ExternalBlobUnavailable(
            f"{where}the blob reference {shown_uri(uri)} could not be read: {problem.message}",
            details={"uri": shown_uri(uri), "reason": problem.code},
        ) from problem
