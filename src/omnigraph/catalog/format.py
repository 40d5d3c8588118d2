"""The format stamp of a graph: the versions this program writes and those it reads.

Every manifest carries two numbers. The *layout* identifies the implementation; another one's is
refused. The *internal version* counts migrations, each a module of
``omnigraph.catalog.migrations``; an older version is read as it is and migrated by the next write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.original.layout import check_version, is_original
from omnigraph.catalog.rows import CURRENT
from omnigraph.errors import CorruptData, FormatUnsupported
from omnigraph.storage.lance.tables import PinnedTable

INTERNAL_VERSION_KEY: Final = "omnigraph:internal_schema_version"
FORMAT_VERSION_KEY: Final = "omnigraph:py_format_version"
GRAPH_ID_KEY: Final = "omnigraph:graph_id"

INTERNAL_VERSION_FLOOR: Final = 1
"""The oldest version with a registered migration step; raised when that step is deleted."""
UNSTAMPED_VERSION: Final = 1
"""The version of a manifest without a stamp: stamps came with version 2."""
LINEAGE_VERSION: Final = 4
"""Since this version commits are rows of the manifest; before, they were separate datasets."""
FORMAT_VERSION: Final = 1
FORMAT_VERSION_FLOOR: Final = 1

EXPORT_AND_LOAD: Final = "Export it with the program that made it and load the export here."


@dataclass(frozen=True, slots=True)
class Stamp:
    """The format stamp of a manifest; the graph's id is missing before version 2."""

    internal: int
    graph_id: str | None
    original: bool = False
    """Whether the graph is the original's (ADR 35), which has stamps of its own."""


def stamp(graph_id: str) -> dict[str, str]:
    """The metadata of the manifest of a new graph."""
    return stamp_of(INTERNAL_VERSION, graph_id)


def stamp_of(internal: int, graph_id: str) -> dict[str, str]:
    """The metadata of a manifest of this version."""
    return {
        INTERNAL_VERSION_KEY: str(internal),
        FORMAT_VERSION_KEY: str(FORMAT_VERSION),
        GRAPH_ID_KEY: graph_id,
    }


def check_stamp(table: PinnedTable, uri: str) -> Stamp:
    """The stamp of a manifest; raises when this program cannot read it."""
    stored = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    internal = _number(stored, INTERNAL_VERSION_KEY, uri)
    internal = UNSTAMPED_VERSION if internal is None else internal
    if is_original(table, FORMAT_VERSION_KEY):
        check_version(internal, uri)
        return Stamp(internal, None, original=True)
    _check_range("internal format", internal, INTERNAL_VERSION_FLOOR, INTERNAL_VERSION, uri)
    ours = _number(stored, FORMAT_VERSION_KEY, uri)
    if ours is None and internal < INTERNAL_VERSION and CURRENT in table.schema.names:
        ours = FORMAT_VERSION  # made before the key existed; only our manifests have this column
    if ours is None:
        raise FormatUnsupported(
            f"the graph at {uri} was made by another implementation (internal format {internal}; "
            f"this program reads layout {FORMAT_VERSION_FLOOR} to {FORMAT_VERSION} of its own)",
            remedy=EXPORT_AND_LOAD,
        )
    _check_range("format", ours, FORMAT_VERSION_FLOOR, FORMAT_VERSION, uri)
    require_stable_row_ids(table, uri)
    graph_id = stored.get(GRAPH_ID_KEY)
    if not graph_id and internal == INTERNAL_VERSION:
        raise CorruptData(f"the manifest of {uri} has no graph id")
    return Stamp(internal, graph_id)


def internal_version(table: PinnedTable) -> int:
    """The internal version of a manifest whose stamp was checked before."""
    text = (table.schema.metadata or {}).get(INTERNAL_VERSION_KEY.encode())
    return UNSTAMPED_VERSION if text is None else int(text)


def require_stable_row_ids(table: PinnedTable, uri: str) -> None:
    """Refuse a dataset without stable row ids: they cannot be added later."""
    if not table.dataset.has_stable_row_ids:
        raise FormatUnsupported(
            f"the graph at {uri} has a dataset without stable row ids ({table.ref.path})",
            remedy=EXPORT_AND_LOAD,
            details={"path": table.ref.path},
        )


def _number(stored: Mapping[str, str], key: str, uri: str) -> int | None:
    text = stored.get(key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise CorruptData(f"the format stamp {key} of {uri} is {text!r}, not a number")
    return int(text)


def _check_range(what: str, found: int, floor: int, newest: int, uri: str) -> None:
    details = {"found": found, "floor": floor, "newest": newest}
    if found > newest:
        raise FormatUnsupported(
            f"the graph at {uri} has {what} version {found}; this program supports up to {newest}",
            remedy="Upgrade Omnigraph to a version that supports this format.",
            details=details,
        )
    if found < floor:
        raise FormatUnsupported(
            f"the graph at {uri} has {what} version {found}; this program reads {floor} and later",
            remedy=EXPORT_AND_LOAD,
            details=details,
        )
