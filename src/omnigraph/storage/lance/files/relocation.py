"""Versions of forks that name a location: finding and changing it when a graph is at another one.

A physical branch of a table (a fork) finds the files that it shares by the absolute location of
what it was forked from, written into each of its versions as *base paths*. A copy of the files
alone would read the original. Here base paths are compared with where the graph is, and rewritten
in the file of a version; everything else stays as it is, byte for byte. Each version is replaced
by compare-and-swap, so that processes can do this at the same time and a crash leaves versions that
are done and versions that are not. See ADR 24.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from typing import Any, Final

from omnigraph.errors import Contention, CorruptData, GraphMoved, ObjectChanged, ObjectNotFound
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.version_files import content, edited, members, of_bytes
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import ObjectStore

ATTEMPTS_MAX: Final = 20
"""Others replace the same version when they relocate it, too, or purge an entity: rarely twice."""
_BASE_PATHS: Final = 18  # field of the message: the places that files are found at
_PATH: Final = 4  # field of such a place: where it is
_VERSION_OF_FORK: Final = re.compile(r"(?P<table>.+?)/tree/.+/_versions/[^/]+\.manifest")


def relocated(data: bytes, move: Callable[[str], str]) -> bytes:
    """The file of a version with every location that it names moved."""
    return edited(data, lambda found: [_moved(field, raw, move) for field, raw in found])


def foreign_root(dataset: Any, table: str, here: Location) -> str | None:
    """The location outside the graph at ``here`` that a fork of ``table`` finds files at, if any.

    Costs no request: base paths are part of an opened version.
    """
    own = here.child(table).uri
    for base in dataset.base_paths().values():
        if base.path != own and not base.path.startswith(f"{own}/tree/"):
            root, _ = split_base(base.path, table)
            if not _is_same_place(root, here):
                return root
    return None


def split_base(base: str, table: str) -> tuple[str, str]:
    """A base path of a fork of ``table`` as the root of a graph and the path inside it."""
    found = re.fullmatch(rf"(.*)(/{re.escape(table)}(?:/tree/.+)?)/?", base)
    if found is None:
        raise CorruptData(
            f"a branch of {table} refers to {base}, which is not a place of that table",
            remedy="Restore the graph from a backup.",
        )
    return found[1], found[2]


def moved(here: Location, root: str) -> GraphMoved:
    """The refusal to read a branch whose files would be those of another place."""
    return GraphMoved(
        f"the graph at {here.uri} was moved or copied: its branches still refer to {root}",
        remedy=f"Run `omnigraph recover {shlex.quote(here.uri)}`, or open it for writing; "
        "either makes the branches refer to their own files. main can be read as it is.",
        details={"uri": here.uri, "refers_to": root},
    )


def relocate(objects: ObjectStore) -> int:
    """Make every version of every fork refer to files of this graph; how many had to be changed."""
    hit("relocate.before_versions")
    changed = 0
    for info in objects.list():
        found = _VERSION_OF_FORK.fullmatch(info.path)
        if found is not None and _relocate(objects, info.path, found["table"]):
            changed += 1
            hit("relocate.after_version")
    hit("relocate.after_versions")
    return changed


def _relocate(objects: ObjectStore, path: str, table: str) -> bool:
    """One version; False when nothing had to be changed, or the branch was deleted meanwhile."""
    here = objects.location

    def move(base: str) -> str:
        root, inside = split_base(base, table)
        return base if _is_same_place(root, here) else here.child(inside[1:]).uri

    for _ in range(ATTEMPTS_MAX):
        try:
            data, tag = objects.get_tagged(path)
            new = relocated(data, move)
            if new == data:
                return False
            objects.replace(path, new, tag)
        except ObjectNotFound:
            return False
        except ObjectChanged:
            continue
        return True
    raise Contention(f"{path} is changed faster than it can be relocated")


def _is_same_place(root: str, here: Location) -> bool:
    """Whether a location is the graph's own, perhaps by way of a symbolic link."""
    if root == here.uri:
        return True
    try:
        return here.is_local and os.path.samefile(root or "/", here.path)
    except OSError:
        return False  # there is nothing at that location


def _moved(field: int, raw: bytes, move: Callable[[str], str]) -> bytes:
    if field != _BASE_PATHS:
        return raw
    place = b"".join(
        of_bytes(_PATH, move(content(part).decode()).encode()) if number == _PATH else part
        for number, part in members(content(raw))
    )
    return of_bytes(_BASE_PATHS, place)
