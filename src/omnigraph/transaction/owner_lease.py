"""Holding a write in flight: the live owner's side of ownership.

While a write is under way its operation id is in this process's set of active operations, so nobody
in this process mistakes it for an abandoned one. A write that takes long renews its lease from a
background thread. Before every durable step the owner proves that it still owns the write; when the
last proof is recent this costs nothing, otherwise it looks whether somebody has claimed the record.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, OwnershipLost
from omnigraph.model.ids import Clock
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.transaction.ownership import lease_seconds
from omnigraph.transaction.recovery.record import RecoveryRecord

log = logging.getLogger("omnigraph.commit")

_active: set[str] = set()
_active_lock = threading.Lock()


def is_active(operation_id: str) -> bool:
    """Whether this process is carrying the operation out right now."""
    with _active_lock:
        return operation_id in _active


@contextmanager
def active(operation_id: str) -> Iterator[bool]:
    """Mark an operation as being carried out here; yields False when it already is."""
    with _active_lock:
        first = operation_id not in _active
        _active.add(operation_id)
    try:
        yield first
    finally:
        if first:
            with _active_lock:
                _active.discard(operation_id)


class Holding:
    """One record's lease, as its owner sees it."""

    def __init__(self, objects: ObjectStore, record: RecoveryRecord, clock: Clock) -> None:
        self._objects = objects
        self._record = record
        self._clock = clock
        self._lease_s = lease_seconds()
        self._proved_at = clock.monotonic()
        self._renewals = 0
        self._lost = False
        self._over = threading.Event()
        self._lock = threading.Lock()

    @property
    def stem(self) -> str:
        return self._record.path.removesuffix(".json")

    @property
    def lease_path(self) -> str:
        return f"{self.stem}.lease.json"

    @contextmanager
    def kept(self) -> Iterator[Holding]:
        """Renew the lease in the background for as long as the block runs."""
        renewal = threading.Timer(self._lease_s / 3, self._renew_until_over)
        renewal.daemon = True
        renewal.start()
        try:
            yield self
        finally:
            self._over.set()
            renewal.cancel()

    def prove(self) -> None:
        """Raise ``OwnershipLost`` if another process has taken this write over.

        Nobody can have done so within half a lease of the last proof.
        """
        if self._lost or self._clock.monotonic() - self._proved_at > self._lease_s / 2:
            self._renew()

    def release(self) -> None:
        """Remove the lease, if one was ever written; call it when the block of ``kept`` is over."""
        with self._lock:  # a renewal under way would otherwise write it again
            if self._renewals:
                self._objects.delete(self.lease_path)

    def _renew_until_over(self) -> None:
        while not self._over.is_set():
            try:
                self._renew()
            except OwnershipLost:
                return  # the writing thread finds out at its next durable step
            except OmnigraphError as error:
                log.warning(
                    "could not renew the lease of operation %s: %s",
                    self._record.operation_id,
                    error.message,
                )
            self._over.wait(self._lease_s / 3)

    def _renew(self) -> None:
        with self._lock:
            if self._lost:
                raise self._ownership_lost()
            looked_at = self._clock.monotonic()
            names = {info.path for info in self._objects.list(self._record.prefix)}
            claimed = any(name.startswith(f"{self.stem}.claim-") for name in names)
            if claimed or self._record.path not in names:
                self._lost = True
                raise self._ownership_lost()
            if self._over.is_set():
                return
            self._renewals += 1
            self._objects.put(self.lease_path, json.dumps({"renewals": self._renewals}).encode())
            self._proved_at = looked_at

    def _ownership_lost(self) -> OwnershipLost:
        return OwnershipLost(
            "this write was paused for longer than its lease, and another process took it over",
            details={"commit_id": self._record.operation_id},
        )
