"""Reader leases: protect a snapshot from cleanup while it is read.

Short reads need no lease: a state stays readable for an hour after it was superseded. A longer read
puts a lease object that names the state and renews it. Cleanup keeps that state until the lease is
removed, its owner is certainly dead, or it was not renewed for an hour.
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
from omnigraph.transaction.heartbeat import Heartbeat
from omnigraph.transaction.ownership import Owner, is_certainly_dead

log = logging.getLogger("omnigraph.leases")

PREFIX: Final = "__leases"
EXPIRY_S: Final = 3_600.0
"""A lease that was not renewed for this long has expired."""


@contextmanager
def reader_lease(repository: Repository, snapshot: SnapshotPins) -> Iterator[SnapshotPins]:
    """Keep a state readable for as long as the block runs."""
    about = {"branch": snapshot.branch.incarnation, "version": snapshot.manifest_version}
    lease_s = repository.settings.limits.lease_s
    lease = Heartbeat(repository.objects, f"{PREFIX}/{new_ulid()}.json", about, lease_s)
    lease.start()
    try:
        yield snapshot
    finally:
        lease.stop()
        repository.objects.delete(lease.path)


def leased_versions(repository: Repository) -> dict[str, set[int]]:
    """The manifest versions with live leases, by the incarnation of the branch."""
    found: dict[str, set[int]] = {}
    for path, body in _leases(repository, stale=False):
        log.debug("%s protects a state", path)
        found.setdefault(body["branch"], set()).add(int(body["version"]))
    return found


def stale_leases(repository: Repository) -> list[str]:
    """The leases that have expired or whose owners are dead."""
    return [path for path, _ in _leases(repository, stale=True)]


def _leases(repository: Repository, *, stale: bool) -> Iterator[tuple[str, dict[str, str]]]:
    now = datetime.now(UTC)
    for info in repository.objects.list(PREFIX):
        try:
            body = json.loads(repository.objects.get(info.path))
            owner = Owner(**body["owner"])
        except (ObjectNotFound, ValueError, KeyError, TypeError):
            continue
        expired = (now - info.modified).total_seconds() > EXPIRY_S
        if (expired or is_certainly_dead(owner)) == stale:
            yield info.path, body
