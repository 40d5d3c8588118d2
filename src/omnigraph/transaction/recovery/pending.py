"""The recovery records in the store: listing, ownership checks and removal."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from omnigraph.errors import CorruptData, ObjectNotFound
from omnigraph.model.clock import Clock
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore
from omnigraph.storage.paths import RECOVERY_PREFIX
from omnigraph.transaction.owner_lease import is_active
from omnigraph.transaction.ownership import (
    LeaseWatch,
    Owner,
    is_certainly_dead,
    this_process,
)
from omnigraph.transaction.recovery.audit import Cause
from omnigraph.transaction.recovery.record import RecoveryRecord, recovery_prefix

log = logging.getLogger("omnigraph.recovery")


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A record and its side objects. ``heartbeat`` changes whenever a lease is renewed."""

    path: str
    record: RecoveryRecord
    heartbeat: str = ""
    claims: tuple[str, ...] = ()
    aborted: bool = False  # its owner marked it as failed: it must never be rolled forward
    cause: Cause = Cause.OWNER_FAILED  # why it is resolved

    @property
    def stem(self) -> str:
        return self.path.removesuffix(".json")

    @property
    def abort_path(self) -> str:
        return f"{self.stem}.abort.json"

    @property
    def next_claim(self) -> str:
        return f"{self.stem}.claim-{len(self.claims) + 1}.json"


class PendingRecords:
    """Lists records, checks their ownership and removes them."""

    def __init__(self, objects: ObjectStore, clock: Clock, lease_s: float) -> None:
        self._objects = objects
        self._lease_s = lease_s
        self._watch = LeaseWatch(clock)
        self._records: dict[str, RecoveryRecord] = {}  # records never change once written

    def of_branch(self, branch_incarnation: str, *, sweep: bool = False) -> list[PendingRecord]:
        """All records of one branch in order of creation; raises on one that cannot be read.

        ``sweep`` also removes orphaned side objects: a resolver can die between its claim and its
        check that the record still exists.
        """
        prefix = recovery_prefix(branch_incarnation)
        listed = self._objects.list(prefix)
        paths = _record_paths(listed)
        self._evict_all_but(paths, f"{prefix}/")
        if sweep:
            for info in listed:
                if _record_of(info.path) not in paths:
                    self._objects.delete(info.path)
        pending = [self._load(path, listed) for path in paths]
        return [found for found in pending if found is not None]

    def unreadable(self, branch_incarnation: str) -> dict[str, CorruptData]:
        """The records of one branch that cannot be read, by path."""
        problems = {}
        for path in _record_paths(self._objects.list(recovery_prefix(branch_incarnation))):
            try:
                self._record(path)
            except ObjectNotFound:
                continue
            except CorruptData as problem:
                problems[path] = problem
        return problems

    def incarnations(self) -> list[str]:
        """The branches that have records, deleted ones included."""
        listed = self._objects.list(RECOVERY_PREFIX)
        return sorted({info.path.split("/")[1] for info in listed if info.path.count("/") == 2})

    def cause_to_resolve(self, pending: PendingRecord) -> Cause | None:
        """Why other processes may resolve a record; None while its owner or a resolver is alive."""
        if is_active(pending.record.operation_id):
            return None
        responsible = [*filter(None, map(self._claimant, pending.claims))]
        if not pending.aborted:  # after an abort mark nobody waits for the owner
            responsible.append(pending.record.owner)
        if all(owner == this_process() or is_certainly_dead(owner) for owner in responsible):
            if pending.claims:
                return Cause.RESOLVER_GONE
            return Cause.OWNER_FAILED if pending.aborted else Cause.OWNER_GONE
        silent_s = self._watch.unchanged_for(pending.path, pending.heartbeat)
        if silent_s < self._lease_s:
            return None
        log.info(
            "the lease of operation %s was not renewed for %.1f s",
            pending.record.operation_id,
            silent_s,
        )
        return Cause.OWNER_SILENT

    def is_claimed(self, pending: PendingRecord) -> bool:
        """Whether a process has begun to resolve a record."""
        listed = self._objects.list(pending.record.prefix)
        return any(info.path.startswith(f"{pending.stem}.claim-") for info in listed)

    def remove(self, pending: PendingRecord) -> None:
        """Delete everything that belongs to a record, the record itself last."""
        for info in self._objects.list(pending.record.prefix):
            if info.path.startswith(f"{pending.stem}.") and info.path != pending.path:
                self._objects.delete(info.path)
        self._objects.delete(pending.path)
        self._records.pop(pending.path, None)
        self._watch.evict(pending.path)

    def _evict_all_but(self, paths: list[str], prefix: str) -> None:
        """Drop cached records that are gone: live writers remove their records themselves."""
        for path in list(self._records):
            if path.startswith(prefix) and path not in paths:
                self._records.pop(path, None)
                self._watch.evict(path)

    def _load(self, path: str, listed: list[ObjectInfo]) -> PendingRecord | None:
        try:
            record = self._record(path)
        except ObjectNotFound:
            return None  # its owner has removed it since the listing
        stem = path.removesuffix(".json")
        mine = [info for info in listed if info.path.startswith(f"{stem}.") and info.path != path]
        claims = tuple(sorted(i.path for i in mine if ".claim-" in i.path))
        heartbeat = json.dumps([(i.path, i.size, str(i.modified)) for i in mine])
        aborted = any(info.path == f"{stem}.abort.json" for info in mine)
        return PendingRecord(path, record, heartbeat, claims, aborted)

    def _record(self, path: str) -> RecoveryRecord:
        known = self._records.get(path)
        if known is None:
            known = RecoveryRecord.from_bytes(self._objects.get(path), path)
            self._records[path] = known
        return known

    def _claimant(self, claim: str) -> Owner | None:
        try:
            return Owner(**json.loads(self._objects.get(claim)))
        except (ObjectNotFound, ValueError, TypeError):
            return None  # the claim is gone or unreadable: its process is not waited for


def _record_of(path: str) -> str:
    """The record that a lease, a claim or an abort belongs to; a record belongs to itself."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}.json"


def _record_paths(listed: list[ObjectInfo]) -> list[str]:
    """The records, ``<operation>.json``: names of leases and claims have more parts."""
    names = [info.path for info in listed]
    return sorted(n for n in names if n.endswith(".json") and n.split("/")[-1].count(".") == 1)
