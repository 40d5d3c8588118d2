"""The publisher of all maintenance, which changes tables without blocking writers.

``publish`` stages several types on one snapshot and publishes them together, without a graph
commit. After an optimistic conflict it tries again with backoff; stages keep the files that are
still valid, so that a retry is cheap. A type that stays busy, or that another program changed, is
skipped and named. ``publish_once`` makes a single try, for upkeep after a write. ``adopt``
publishes a version that already exists, for repair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.errors import Conflict, Drift, RecoveryRequired
from omnigraph.model.ids import new_ulid
from omnigraph.model.retry import RetryPolicy
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.tables import (
    PinnedTable,
    StagedWrite,
    TableRef,
    operation_properties,
)
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

RETRY: Final = RetryPolicy(base_s=0.02, cap_s=0.5, attempts_max=30)
"""Staging again is cheap, because the files of the first attempt are reused."""
ATTEMPTS_TOGETHER: Final = 10
"""After this many attempts each type is published by itself: a busy type must not block others."""

BUSY: Final = "busy"
DRIFT: Final = "drift_needs_repair"


class StageMaintenance(Protocol):
    """Stages the maintenance of one type; None when there is nothing to do.

    It is called again for every attempt.
    """

    def __call__(
        self, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None: ...


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The outcome for each type, by type key."""

    published: Mapping[str, TablePin] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Types that were not published, with the reason: ``BUSY`` or ``DRIFT``."""
    newest_versions: Mapping[str, int] = field(default_factory=dict)
    """Of types with drift: the newest version of the table."""

    def __or__(self, other: PublishReport) -> PublishReport:
        return PublishReport(
            {**self.published, **other.published},
            {**self.skipped, **other.skipped},
            {**self.newest_versions, **other.newest_versions},
        )


class MaintenancePublisher:
    """Publishes maintenance of one branch."""

    def __init__(
        self, repository: Repository, transaction: WriteTransaction, branch: Branch
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._branch = branch

    def own_types(self) -> list[str]:
        """The types with a table of their own on this branch; others are read from the parent."""
        return [key for key, pin in self._pins().items() if self._is_own(pin)]

    def publish(
        self, info: WriteInfo, keys: Collection[str], stage: StageMaintenance
    ) -> PublishReport:
        """Publish maintenance of these types, together unless a type stays busy."""
        report = PublishReport()
        left = set(keys)
        retry = RETRY.start()
        while left:
            together = retry.failures < ATTEMPTS_TOGETHER
            for chosen in [left] if together else [{key} for key in sorted(left)]:
                done, found = self._attempt(info, set(chosen), stage)
                left -= done
                report |= found
            if left and not retry.again():
                break
        return report | PublishReport(skipped=dict.fromkeys(left, BUSY))

    def publish_once(self, info: WriteInfo, key: str, stage: StageMaintenance) -> bool:
        """Make one try on the newest state that this process has read; raises conflicts.

        False when there was nothing to do, or the type has changed since that state.
        """
        pin = self._repository.manifest(self._branch).warm().pins.get(key)
        operation_id = new_ulid()
        tables = self._stage(operation_id, info, () if pin is None else (pin,), stage)
        if not tables:
            return False
        snapshot = self._repository.snapshot(self._branch)
        if snapshot.pins.get(key) != pin:
            return False
        self._transaction.commit(PreparedWrite(operation_id, snapshot, info, tables))
        return True

    def adopt(self, pin: TablePin, newest: TableRef, commit: Commit | None) -> None:
        """Publish the newest version of a table as it is; only the manifest changes.

        With a commit, the version may have other rows than the published one; without a commit it
        must have the same rows.
        """
        change = TableChange(
            pin.key,
            newest,
            self._repository.tables.open(newest).rows,
            self._repository.tables.transaction(newest).uuid or "",
            deletes=commit is not None,
            inserts=commit is not None,
            owner=self._branch.incarnation,
        )
        operation = new_ulid() if commit is None else commit.commit_id
        requirements = Requirements(tables={pin.key: pin.ref})
        hit("repair.before_publish")
        self._repository.manifest(self._branch).publish_and_report(
            Publication(operation, self._branch.name, requirements, (change,), commit)
        )
        hit("repair.after_publish")

    def _attempt(
        self, info: WriteInfo, keys: set[str], stage: StageMaintenance
    ) -> tuple[set[str], PublishReport]:
        """Try once; returns the types that need no other attempt."""
        self._transaction.enter(self._branch)
        operation_id = new_ulid()
        snapshot = self._repository.snapshot(self._branch)
        pins = [snapshot.pins[key] for key in sorted(keys & snapshot.pins.keys())]
        tables = self._stage(operation_id, info, pins, stage)
        if not tables:
            return keys, PublishReport()
        try:
            self._transaction.commit(PreparedWrite(operation_id, snapshot, info, tables))
        except Drift as drift:
            key = drift.details.get("type_key")
            if key is None:  # a table moved under this attempt, which was undone
                return set(), PublishReport()
            newest = drift.details["newest_version"]
            return {key}, PublishReport(skipped={key: DRIFT}, newest_versions={key: newest})
        except (Conflict, RecoveryRequired):
            return set(), PublishReport()
        now = self._pins()
        published = {t.pin.key: now[t.pin.key] for t in tables if t.pin.key in now}
        return keys, PublishReport(published)

    def _stage(
        self,
        operation_id: str,
        info: WriteInfo,
        pins: Iterable[TablePin],
        stage: StageMaintenance,
    ) -> tuple[PreparedTable, ...]:
        properties = operation_properties(operation_id, info.kind)
        found = []
        for pin in filter(self._is_own, pins):
            staged = stage(pin.key, self._repository.tables.open(pin.ref), properties)
            if staged is not None:
                found.append(PreparedTable(pin, staged))
        return tuple(found)

    def _is_own(self, pin: TablePin) -> bool:
        return pin.owner == self._branch.incarnation

    def _pins(self) -> Mapping[str, TablePin]:
        return self._repository.snapshot(self._branch).pins
