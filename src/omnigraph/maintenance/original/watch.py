"""Notices a program of the original that is still writing to a graph.

Its writers leave a recovery record before they move a table and change a manifest at the end, so
one of the two changes while a writer is at work. Nothing is compared with a clock.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Final

from omnigraph.catalog.original.layout import CONVERTED_PREFIX, SCHEMA_FILES
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import Contention, ObjectNotFound
from omnigraph.model.retry import poll_policy, wait_until
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.storage.paths import RECOVERY_PREFIX

POLL_S: Final = 0.5
Signs = frozenset[tuple[str, int, str]]
"""Records and versions of manifests with sizes and times; schema files with their digests."""


def signs_of_writers(objects: ObjectStore) -> Signs:
    """What changes when a program of the original writes."""
    listed = [*objects.list(RECOVERY_PREFIX), *objects.list(MANIFEST_PATH)]
    signs = {
        (info.path, info.size, str(info.modified))
        for info in listed
        if not info.path.startswith(MANIFEST_PATH)
        or ("/_versions/" in info.path and CONVERTED_PREFIX not in info.path)
    }
    for name in SCHEMA_FILES:
        with suppress(ObjectNotFound):
            text = objects.get(name)
            signs.add((name, len(text), hashlib.sha256(text).hexdigest()))
    return frozenset(signs)


def require_quiet(objects: ObjectStore, watch_s: float) -> Signs:
    """Watch a graph; raises as soon as something is written, else returns what was seen."""
    before = signs_of_writers(objects)
    changed = wait_until(
        lambda: signs_of_writers(objects) != before, poll_policy(min(POLL_S, watch_s), watch_s)
    )
    if changed:
        raise being_written(objects)
    return before


def being_written(objects: ObjectStore) -> Contention:
    return Contention(
        f"another program is writing to the graph at {objects.location.uri}",
        remedy="Stop the server or command of the Rust Omnigraph that writes to it, then repeat "
        "the command.",
    )
