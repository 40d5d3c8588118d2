"""The branches of an original: refs of its manifest, whose names are those of the branches.

Refs of its own machinery (the lock of a schema change, the staging branches of old versions) and
refs that an unfinished conversion left are no branches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from omnigraph.catalog.original.layout import (
    CONVERTED_PREFIX,
    REFS,
    RUN_PREFIX,
    SCHEMA_LOCK,
    SWEPT_VERSION,
    ref_name,
)
from omnigraph.errors import CorruptData, ObjectNotFound
from omnigraph.storage.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class OriginalRef:
    """One branch, and the version of the branch it was forked from; None is main."""

    name: str
    parent: str | None
    parent_version: int


def read_refs(objects: ObjectStore, internal: int) -> list[OriginalRef]:
    """Every branch but main, in name order; ``internal`` is the version of main's manifest."""
    found = []
    for info in objects.list(REFS):
        name = ref_name(info.path)
        runs = internal < SWEPT_VERSION and name.startswith(RUN_PREFIX)
        if runs or name == SCHEMA_LOCK or name.startswith(CONVERTED_PREFIX):
            continue
        try:
            body = json.loads(objects.get(info.path))
            ref = OriginalRef(name, body["parentBranch"], int(body["parentVersion"]))
        except ObjectNotFound:
            continue  # deleted since the listing
        except (ValueError, KeyError, TypeError) as problem:
            raise CorruptData(
                f"{info.path} is not a valid branch file", details={"path": info.path}
            ) from problem
        found.append(ref)
    return sorted(found, key=lambda ref: ref.name)
