"""Relocation of forks: rewrites the absolute base paths of a graph that was moved or copied.

A physical branch of a table (a fork) finds the files that it shares by the absolute location of its
source, stored in each of its versions as *base paths*. A plain copy of the files would read the
original. Here base paths are compared with the location of the graph and rewritten in the version
file; all other bytes stay. Each version is replaced by compare-and-swap, so that concurrent
processes are safe and a crash leaves complete versions only. See ADR 24.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance import LanceDataset
from lance.dataset import Session

from omnigraph.errors import Contention, CorruptData, GraphMoved, ObjectChanged, ObjectNotFound
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.version_files import content, edited, members, of_bytes
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import ObjectStore

ATTEMPTS_MAX: Final = 20
"""How often one version is tried: each concurrent relocation or purge of it costs one attempt."""
_BASE_PATHS: Final = 18  # field of the message: base paths
_PATH: Final = 4  # field of a base path: the path
_VERSION_OF_FORK: Final = re.compile(r"(?P<table>.+?)/tree/.+/_versions/[^/]+\.manifest")


def relocated(data: bytes, move: Callable[[str], str]) -> bytes:
    """A version file with every base path passed through ``move``."""
    return edited(data, lambda found: [_moved(field, raw, move) for field, raw in found])


def foreign_root(dataset: Any, table: str, here: Location) -> str | None:
    """The root of another location that a fork of ``table`` refers to; None when it is ``here``.

    Costs no request: base paths are part of an opened version.
    """
    own = here.child(table).uri
    for base in dataset.base_paths().values():
        if base.path != own and not base.path.startswith(f"{own}/tree/"):
            root, _ = split_base(base.path, table)
            if not _is_same_location(root, here):
                return root
    return None


def split_base(base: str, table: str) -> tuple[str, str]:
    """A base path of a fork of ``table`` as the root of a graph and the path inside it."""
    found = re.fullmatch(rf"(.*)(/{re.escape(table)}(?:/tree/.+)?)/?", base)
    if found is None:
        raise CorruptData(
            f"a branch of {table} refers to {base}, which is not a path of that table",
            remedy="Restore the graph from a backup.",
        )
    return found[1], found[2]


def graph_moved(here: Location, root: str) -> GraphMoved:
    """The error for a branch that refers to files of another location."""
    return GraphMoved(
        f"the graph at {here.uri} was moved or copied: its branches still refer to {root}",
        remedy=f"Run `omnigraph recover {shlex.quote(here.uri)}`, or open it for writing; "
        "either makes the branches refer to their own files. main can be read without it.",
        details={"uri": here.uri, "refers_to": root},
    )


def relocate(objects: ObjectStore) -> int:
    """Make every version of every fork refer to files of this graph; how many were changed."""
    hit("relocate.before_versions")
    changed = 0
    for info in objects.list():
        found = _VERSION_OF_FORK.fullmatch(info.path)
        if found is not None and _relocate(objects, info.path, found["table"]):
            changed += 1
            hit("relocate.after_version")
    hit("relocate.after_versions")
    return changed


def rebased(
    dataset: LanceDataset,
    table: str,
    here: Location,
    session: Session,
    options: Mapping[str, str] | None,
) -> LanceDataset:
    """The same version of a fork, opened with the base paths of this location. Writes nothing."""
    manifest = dataset._ds.serialized_manifest()
    move = _mover(table, here)
    changed = b"".join(_moved(field, raw, move) for field, raw in members(manifest))
    return LanceDataset(
        dataset.uri,
        int(dataset.version),
        serialized_manifest=changed,
        session=session,
        storage_options=None if options is None else dict(options),
    )


def _mover(table: str, here: Location) -> Callable[[str], str]:
    """Maps base paths of forks of ``table`` into the graph at ``here``."""

    def move(base: str) -> str:
        root, inside = split_base(base, table)
        return base if _is_same_location(root, here) else here.child(inside[1:]).uri

    return move


def _relocate(objects: ObjectStore, path: str, table: str) -> bool:
    """Relocate one version; False when it is unchanged, or the branch was deleted."""
    move = _mover(table, objects.location)
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
    raise Contention(f"{path} could not be relocated: too many concurrent changes")


def _is_same_location(root: str, here: Location) -> bool:
    """Whether a location is the graph's own, symbolic links resolved."""
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
