"""The records of writes in flight, as others find them in the store."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from omnigraph.errors import CorruptData, ObjectNotFound
from omnigraph.model.ids import Clock
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore
from omnigraph.storage.paths import RECOVERY_PREFIX
from omnigraph.transaction.owner_lease import is_active
from omnigraph.transaction.ownership import (
    Owner,
    Watch,
    is_certainly_dead,
    lease_seconds,
    this_process,
)
from omnigraph.transaction.recovery.audit import Cause
from omnigraph.transaction.recovery.record import RecoveryRecord, recovery_prefix

log = logging.getLogger("omnigraph.recovery")


@dataclass(frozen=True, slots=True)
class Pending:
    """One record and what belongs to it. ``pulse`` changes whenever a lease is renewed."""

    path: str
    record: RecoveryRecord
    pulse: str = ""
    claims: tuple[str, ...] = ()
    aborted: bool = False  # its owner gave up and said so: it must never be rolled forward
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
    """Lists, judges and removes records."""

    def __init__(self, objects: ObjectStore, clock: Clock) -> None:
        self._objects = objects
        self._watch = Watch(clock)
        self._records: dict[str, RecoveryRecord] = {}  # records never change once written

    def of_branch(self, branch_incarnation: str, *, sweep: bool = False) -> list[Pending]:
        """All records of one branch in order of creation; raises on one that cannot be read.

        ``sweep`` also removes what is left of records that are gone: a resolver can die between
        its claim and its look whether there still is something to resolve.
        """
        prefix = recovery_prefix(branch_incarnation)
        listed = self._objects.list(prefix)
        paths = _record_paths(listed)
        self._forget_all_but(paths, f"{prefix}/")
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
        """The branches that have records, live or not."""
        listed = self._objects.list(RECOVERY_PREFIX)
        return sorted({info.path.split("/")[1] for info in listed if info.path.count("/") == 2})

    def cause_to_resolve(self, pending: Pending) -> Cause | None:
        """Why others may resolve a record; None while its owner or a resolver is at work."""
        if is_active(pending.record.operation_id):
            return None
        responsible = [*filter(None, map(self._claimant, pending.claims))]
        if not pending.aborted:  # an owner that gave up is waiting for nobody
            responsible.append(pending.record.owner)
        if all(owner == this_process() or is_certainly_dead(owner) for owner in responsible):
            if pending.claims:
                return Cause.RESOLVER_GONE
            return Cause.OWNER_FAILED if pending.aborted else Cause.OWNER_GONE
        quiet_s = self._watch.unchanged_for(pending.path, pending.pulse)
        if quiet_s < lease_seconds():
            return None
        log.info("operation %s was silent for %.1f s", pending.record.operation_id, quiet_s)
        return Cause.OWNER_SILENT

    def is_claimed(self, pending: Pending) -> bool:
        """Whether anybody has begun to resolve a record."""
        listed = self._objects.list(pending.record.prefix)
        return any(info.path.startswith(f"{pending.stem}.claim-") for info in listed)

    def remove(self, pending: Pending) -> None:
        """Delete everything that belongs to a record, the record itself last."""
        for info in self._objects.list(pending.record.prefix):
            if info.path.startswith(f"{pending.stem}.") and info.path != pending.path:
                self._objects.delete(info.path)
        self._objects.delete(pending.path)
        self._records.pop(pending.path, None)
        self._watch.forget(pending.path)

    def _forget_all_but(self, paths: list[str], prefix: str) -> None:
        """Most records seen are those of writers that live and remove them themselves."""
        for path in list(self._records):
            if path.startswith(prefix) and path not in paths:
                self._records.pop(path, None)
                self._watch.forget(path)

    def _load(self, path: str, listed: list[ObjectInfo]) -> Pending | None:
        try:
            record = self._record(path)
        except ObjectNotFound:
            return None  # its owner finished between the listing and now
        stem = path.removesuffix(".json")
        mine = [info for info in listed if info.path.startswith(f"{stem}.") and info.path != path]
        claims = tuple(sorted(i.path for i in mine if ".claim-" in i.path))
        pulse = json.dumps([(i.path, i.size, str(i.modified)) for i in mine])
        aborted = any(info.path == f"{stem}.abort.json" for info in mine)
        return Pending(path, record, pulse, claims, aborted)

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
            return None  # gone, or unreadable and therefore nobody to wait for


def _record_of(path: str) -> str:
    """The record that a lease, a claim or an abort belongs to; a record belongs to itself."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}.json"


def _record_paths(listed: list[ObjectInfo]) -> list[str]:
    """Records are ``<operation>.json``; leases and claims have one more part in their names."""
    names = [info.path for info in listed]
    return sorted(n for n in names if n.endswith(".json") and n.split("/")[-1].count(".") == 1)
