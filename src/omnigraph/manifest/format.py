"""The format stamp of a graph: what this program writes, and what it agrees to read."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import CorruptData, FormatUnsupported

INTERNAL_VERSION_KEY = "omnigraph:internal_schema_version"
FORMAT_VERSION_KEY = "omnigraph:py_format_version"
GRAPH_ID_KEY = "omnigraph:graph_id"

INTERNAL_VERSION = 4
INTERNAL_VERSION_FLOOR = 4
FORMAT_VERSION = 1
FORMAT_VERSION_FLOOR = 1


def stamp(graph_id: str) -> dict[str, str]:
    """The metadata a new graph is born with."""
    return {
        INTERNAL_VERSION_KEY: str(INTERNAL_VERSION),
        FORMAT_VERSION_KEY: str(FORMAT_VERSION),
        GRAPH_ID_KEY: graph_id,
    }


def check_stamp(metadata: Mapping[bytes, bytes] | None, uri: str) -> str:
    """Refuse a graph this program cannot read; returns the graph's id."""
    stored = {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    internal = _number(stored, INTERNAL_VERSION_KEY, uri)
    if internal is None:
        raise FormatUnsupported(
            f"the graph at {uri} carries no format version (this program reads version "
            f"{INTERNAL_VERSION_FLOOR} to {INTERNAL_VERSION})",
            remedy="It was made by a very old program: export it there and load the export here.",
        )
    _check_range("internal format", internal, INTERNAL_VERSION_FLOOR, INTERNAL_VERSION, uri)
    ours = _number(stored, FORMAT_VERSION_KEY, uri)
    if ours is None:
        raise FormatUnsupported(
            f"the graph at {uri} was made by another implementation (internal format {internal})",
            remedy="Export it with the program that made it and load the export here.",
        )
    _check_range("format", ours, FORMAT_VERSION_FLOOR, FORMAT_VERSION, uri)
    graph_id = stored.get(GRAPH_ID_KEY)
    if not graph_id:
        raise CorruptData(f"the manifest of {uri} carries no graph id")
    return graph_id


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
            f"the graph at {uri} has {what} version {found}; this program knows up to {newest}",
            remedy="Upgrade Omnigraph to a version that knows this format.",
            details=details,
        )
    if found < floor:
        raise FormatUnsupported(
            f"the graph at {uri} has {what} version {found}; this program reads from {floor} on",
            remedy="Export it with the program that made it and load the export here.",
            details=details,
        )
