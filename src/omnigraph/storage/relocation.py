"""Versions that name other places: what has to change in them when a graph is copied.

A physical branch finds the files that it shares by the absolute location of what it was forked
from, written into each of its versions. A copy of the files alone would read the original. Here the
location inside a version's file is rewritten; everything else stays as it is, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from omnigraph.storage.locations import Location
from omnigraph.storage.tables import PinnedTable
from omnigraph.storage.version_files import content, edited, members, of_bytes

_BASE_PATHS: Final = 18  # field of the message: the places that files are found at
_PATH: Final = 4  # field of such a place: where it is


def relocated(data: bytes, move: Callable[[str], str]) -> bytes:
    """The file of a version with every location that it names moved."""
    return edited(data, lambda found: [_moved(field, raw, move) for field, raw in found])


def outside_bases(table: PinnedTable, graph: Location) -> list[str]:
    """The places outside a graph that a version finds files at."""
    paths = [base.path for base in table.dataset.base_paths().values()]
    return sorted(path for path in paths if not path.startswith(f"{graph.uri}/"))


def _moved(field: int, raw: bytes, move: Callable[[str], str]) -> bytes:
    if field != _BASE_PATHS:
        return raw
    place = b"".join(
        of_bytes(_PATH, move(content(part).decode()).encode()) if number == _PATH else part
        for number, part in members(content(raw))
    )
    return of_bytes(_BASE_PATHS, place)
