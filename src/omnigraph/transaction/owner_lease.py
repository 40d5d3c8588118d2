"""The lease of a write in flight, as its owner holds and renews it.

While a write runs, its operation id is in this process's set of active operations, so that no
thread of this process treats it as abandoned. A long write renews its lease from a background
thread. Before every durable step the owner verifies that it still owns the write: it looks for a
claim of another process on the record, unless the last check was less than half a lease ago.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, OwnershipLost
from omnigraph.model.clock import Clock
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.transaction.recovery.record import RecoveryRecord

log = logging.getLogger("omnigraph.commit")

_active: set[str] = set()
_active_lock = threading.Lock()


def is_active(operation_id: str) -> bool:
    """Whether this process is executing the operation."""
    with _active_lock:
        return operation_id in _active


@contextmanager
def active(operation_id: str) -> Iterator[bool]:
    """Mark an operation as executing in this process; yields False when it already is."""
    with _active_lock:
        first = operation_id not in _active
        _active.add(operation_id)
    try:
        yield first
    finally:
        if first:
            with _active_lock:
                _active.discard(operation_id)


class OwnerLease:
    """The lease of one recovery record, for its owner."""

    def __init__(
        self, objects: ObjectStore, record: RecoveryRecord, clock: Clock, lease_s: float
    ) -> None:
        self._objects = objects
        self._record = record
        self._clock = clock
        self._lease_s = lease_s
        self._verified_at = clock.monotonic()
        self._renewals = 0
        self._lost = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def stem(self) -> str:
        return self._record.path.removesuffix(".json")

    @property
    def lease_path(self) -> str:
        return f"{self.stem}.lease.json"

    @contextmanager
    def renewed(self) -> Iterator[OwnerLease]:
        """Renew the lease in the background for as long as the block runs."""
        renewal = threading.Timer(self._lease_s / 3, self._renew_until_stopped)
        renewal.daemon = True
        renewal.start()
        try:
            yield self
        finally:
            self._stopped.set()
            renewal.cancel()

    def verify(self) -> None:
        """Raise ``OwnershipLost`` if another process has taken this write over.

        Makes no request within half a lease of the last check, when that is impossible.
        """
        if self._lost or self._clock.monotonic() - self._verified_at > self._lease_s / 2:
            self._renew()

    def release(self) -> None:
        """Remove the lease, if one was ever written; call it after the block of ``renewed``."""
        with self._lock:  # a concurrent renewal would otherwise write it again
            if self._renewals:
                self._objects.delete(self.lease_path)

    def _renew_until_stopped(self) -> None:
        while not self._stopped.is_set():
            try:
                self._renew()
            except OwnershipLost:
                return  # the writing thread raises ``OwnershipLost`` at its next durable step
            except OmnigraphError as error:
                log.warning(
                    "could not renew the lease of operation %s: %s",
                    self._record.operation_id,
                    error.message,
                )
            self._stopped.wait(self._lease_s / 3)

    def _renew(self) -> None:
        with self._lock:
            if self._lost:
                raise self._ownership_lost()
            checked_at = self._clock.monotonic()
            names = {info.path for info in self._objects.list(self._record.prefix)}
            claimed = any(name.startswith(f"{self.stem}.claim-") for name in names)
            if claimed or self._record.path not in names:
                self._lost = True
                raise self._ownership_lost()
            if self._stopped.is_set():
                return
            self._renewals += 1
            self._objects.put(self.lease_path, json.dumps({"renewals": self._renewals}).encode())
            self._verified_at = checked_at

    def _ownership_lost(self) -> OwnershipLost:
        return OwnershipLost(
            "this write was paused for longer than its lease, and another process took it over",
            details={"commit_id": self._record.operation_id},
        )
