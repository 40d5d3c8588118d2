"""Leases of readers: a state that somebody reads for long stays, whatever is cleaned up.

A reader needs no lease: a state may be read for an hour after it was superseded. Whoever needs
longer puts an object that names the state and renews it; cleanup leaves that state alone until the
lease is gone, its owner certainly dead, or nothing was heard of it for an hour.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import ObjectNotFound
from omnigraph.model.ids import new_ulid
from omnigraph.transaction.heartbeat import Renewal
from omnigraph.transaction.ownership import Owner, is_certainly_dead

log = logging.getLogger("omnigraph.leases")

PREFIX: Final = "__leases"
SILENT_S_MAX: Final = 3_600.0
"""A lease of another host that was not renewed for this long is nobody's any more."""


@contextmanager
def held(repository: Repository, snapshot: SnapshotPins) -> Iterator[SnapshotPins]:
    """Keep a state readable for as long as the block runs."""
    about = {"branch": snapshot.branch.incarnation, "version": snapshot.manifest_version}
    lease = Renewal(repository.objects, f"{PREFIX}/{new_ulid()}.json", about)
    lease.start()
    try:
        yield snapshot
    finally:
        lease.stop()
        repository.objects.delete(lease.path)


def held_versions(repository: Repository) -> dict[str, set[int]]:
    """The manifest versions that live readers hold, by the incarnation of the branch."""
    found: dict[str, set[int]] = {}
    for path, body in _leases(repository, dead=False):
        log.debug("%s holds a state", path)
        found.setdefault(body["branch"], set()).add(int(body["version"]))
    return found


def dead_leases(repository: Repository) -> list[str]:
    """The leases whose owners are gone."""
    return [path for path, _ in _leases(repository, dead=True)]


def _leases(repository: Repository, *, dead: bool) -> Iterator[tuple[str, dict[str, str]]]:
    now = datetime.now(UTC)
    for info in repository.objects.list(PREFIX):
        try:
            body = json.loads(repository.objects.get(info.path))
            owner = Owner(**body["owner"])
        except (ObjectNotFound, ValueError, KeyError, TypeError):
            continue
        silent = (now - info.modified).total_seconds() > SILENT_S_MAX
        if (silent or is_certainly_dead(owner)) == dead:
            yield info.path, body
