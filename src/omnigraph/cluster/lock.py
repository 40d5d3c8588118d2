"""The lock of a cluster: one command at a time, and never a lock that outlives its process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.ledger import LOCK, ClusterStore
from omnigraph.errors import ObjectChanged, ObjectExists, ObjectNotFound, OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.transaction.ownership import Owner, is_certainly_dead, this_process


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock as it is stored."""

    lock_id: str
    operation: str
    created_at: str
    pid: int
    owner: Owner | None
    tag: str

    @property
    def age_seconds(self) -> int | None:
        with suppress(ValueError):
            then = datetime.fromisoformat(self.created_at)
            return max(0, int((datetime.now(UTC) - then).total_seconds()))
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "lock_id": self.lock_id,
            "lock_operation": self.operation,
            "lock_created_at": self.created_at,
            "lock_pid": self.pid,
            "lock_age_seconds": self.age_seconds,
        }


def read_lock(store: ClusterStore, findings: Findings) -> HeldLock | None:
    """The lock that is held; None where there is none, or a finding says what is wrong."""
    try:
        data, tag = store.objects.get_tagged(LOCK)
    except ObjectNotFound:
        return None
    except OmnigraphError as error:
        findings.add("state_lock_read_error", LOCK, error.message)
        return None
    try:
        body = json.loads(data)
        if body["version"] != 1:
            message = f"the version is {body['version']!r}; this program reads 1"
            findings.add("unsupported_state_lock_version", LOCK, message)
            return None
        owner = Owner(**body["owner"]) if "owner" in body else None
        pid = int(body["pid"])
        return HeldLock(body["lock_id"], body["operation"], body["created_at"], pid, owner, tag)
    except (ValueError, KeyError, TypeError) as error:
        findings.add("invalid_state_lock", LOCK, f"it is not a lock: {error!r}")
        return None


@contextmanager
def locked(
    store: ClusterStore, operation: str, findings: Findings, *, enabled: bool
) -> Iterator[str | None]:
    """Hold the lock in the block; yields its id, None where it could not be had.

    The block must look at the findings: it also runs without the lock where locks are disabled.
    """
    if not enabled:
        yield ""
        return
    lock_id = _acquire(store, operation, findings)
    try:
        yield lock_id
    finally:
        if lock_id is not None:
            _release(store, lock_id)


def _acquire(store: ClusterStore, operation: str, findings: Findings) -> str | None:
    lock_id = new_ulid()
    body = {
        "version": 1,
        "lock_id": lock_id,
        "operation": operation,
        "created_at": datetime.now(UTC).isoformat(),
        "pid": os.getpid(),
        "owner": asdict(this_process()),
    }
    data = json.dumps(body).encode()
    try:
        store.objects.put_if_absent(LOCK, data)
        hit("cluster.after_lock")
        return lock_id
    except ObjectExists:
        pass
    except OmnigraphError as error:
        findings.add("state_lock_error", LOCK, error.message)
        return None
    held = read_lock(store, findings)
    if not findings.ok:
        return None
    if held is not None and held.owner is not None and is_certainly_dead(held.owner):
        with suppress(ObjectChanged, ObjectNotFound):
            store.objects.replace(LOCK, data, held.tag)
            message = f"process {held.pid} died in `cluster {held.operation}`; its lock is ours"
            findings.add("state_lock_taken_over", LOCK, message)
            return lock_id
    who = "another command" if held is None else f"`cluster {held.operation}` (pid {held.pid})"
    unlock = "" if held is None else f"; if it is gone: cluster force-unlock {held.lock_id}"
    findings.add("state_lock_held", LOCK, f"the lock is held by {who}{unlock}")
    return None


def _release(store: ClusterStore, lock_id: str) -> None:
    """Remove the lock, if it is still ours: it may have been taken over after a suspension."""
    held = read_lock(store, Findings())
    if held is not None and held.lock_id == lock_id:
        store.objects.delete(LOCK)


def force_unlock(store: ClusterStore, lock_id: str, findings: Findings) -> bool:
    """Remove the lock of this exact id."""
    held = read_lock(store, findings)
    if not findings.ok:
        return False
    if held is None:
        findings.add("state_lock_missing", LOCK, "there is no lock")
        return False
    if held.lock_id != lock_id:
        findings.add("state_lock_id_mismatch", LOCK, f"the lock has the id {held.lock_id}")
        return False
    store.objects.delete(LOCK)
    return True
