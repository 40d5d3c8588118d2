"""``cleanup``: removes old history and files of dead writers; foreign files are never touched.

First every branch publishes its new horizon; then the states that must stay are computed from what
is published by then, and the rest is removed (``catalog/history/horizon.py`` explains the order).
Files of a running write are safe: they are young, or an intent names their owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from omnigraph.catalog.branches.concurrent_deletion import skip_if_deleted
from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.attribution import merge_of
from omnigraph.catalog.history.horizon import raise_horizon
from omnigraph.catalog.migrations.legacy import INERT_SINCE
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import BranchNotFound, Contention, ObjectNotFound
from omnigraph.maintenance.retention import (
    KeptStates,
    RetentionPolicy,
    branch_states,
    keep_newest,
    keep_unfinished,
    kept_states,
    new_horizon,
)
from omnigraph.maintenance.sweep import Ages, Sweep, plan_sweep, run_sweep
from omnigraph.model.ids import new_ulid, ulid_milliseconds
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.table_files import Tables, group_by_table
from omnigraph.storage.objects.store import ObjectInfo
from omnigraph.storage.paths import (
    HISTORY_PREFIX,
    RECOVERY_AUDIT_PATH,
    RECOVERY_PREFIX,
    STAGING_PREFIX,
)
from omnigraph.transaction.ownership import Owner, is_certainly_dead
from omnigraph.transaction.reader_leases import PREFIX as LEASES
from omnigraph.transaction.reader_leases import stale_leases
from omnigraph.transaction.recovery.drift import find_drift
from omnigraph.transaction.recovery.external_drift import external_drift
from omnigraph.transaction.recovery.graph_recovery import SET_ASIDE_PREFIX, GraphRecovery
from omnigraph.transaction.transaction import WriteTransaction

ORPHAN_AGE: Final = timedelta(days=7)
"""Files that no version names are kept for this long: writes without an intent are shorter, and an
intent protects the files of longer ones."""
MANIFEST_AGE: Final = timedelta(hours=1)
"""Manifest versions are kept for this long, because a warm handle reads the version after its
own."""
DELETIONS_MAX: Final = 20
"""Concurrent branch deletions after which the computation of kept states is not retried."""
MARK_AGE_US: Final = 7 * 86_400 * 1_000_000
"""Marks of abandoned writes are dropped after this long: no paused owner resumes later."""
STAGING: Final = "staging"
DRIFT: Final = "drift_needs_repair"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a cleanup removes of one table, or of the objects outside tables."""

    type_key: str
    bytes_removed: int = 0
    old_versions_removed: int = 0
    files_removed: int = 0
    foreign_files: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "bytes_removed": self.bytes_removed,
            "old_versions_removed": self.old_versions_removed,
            "files_removed": self.files_removed,
            "foreign_files": self.foreign_files,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What a cleanup removed; of a dry run, what it would remove."""

    policy: RetentionPolicy
    confirmed: bool
    datasets: list[Cleaned] = field(default_factory=list)
    commits_given_up: dict[str, int] = field(default_factory=dict)
    """By branch: commits that become unreadable."""
    commits_in_grace: dict[str, int] = field(default_factory=dict)
    """By branch: commits past the policy that are kept for the grace period of readers."""

    @property
    def bytes_removed(self) -> int:
        return sum(one.bytes_removed for one in self.datasets)

    def to_json(self) -> dict[str, Any]:
        return {
            "confirmed": self.confirmed,
            "keep_versions": self.policy.keep,
            "older_than_secs": self.policy.older_than_s,
            "commits_given_up": self.commits_given_up,
            "commits_in_grace": self.commits_in_grace,
            "bytes_removed": self.bytes_removed,
            "datasets": [one.to_json() for one in self.datasets],
        }


def cleanup(
    repository: Repository,
    transaction: WriteTransaction,
    policy: RetentionPolicy,
    *,
    confirm: bool = False,
) -> CleanupReport:
    """Remove states past the policy and files of dead writers; a dry run unless confirmed."""
    if confirm:
        GraphRecovery(repository, transaction.recovery).recover()
    tables, others = group_by_table(repository.objects.list())
    branches = list(all_branches(repository.main.current()).values())
    horizons, given_up, in_grace = _horizons(repository, branches, tables, policy)
    report = CleanupReport(policy, confirm, commits_given_up=given_up, commits_in_grace=in_grace)
    if confirm:
        _publish_horizons(repository, branches, horizons)
        hit("cleanup.after_horizons")
        tables, others = group_by_table(repository.objects.list())
    kept = _kept(repository, horizons)
    keep_unfinished(kept, transaction.recovery.pending)
    keep_newest(kept, tables.get(RECOVERY_AUDIT_PATH, {}))
    ages = _ages(repository, others)
    drifted = set(_drifted(repository, transaction, branches))
    for path in sorted(tables):
        sweep = plan_sweep(repository.tables, tables[path], kept, _ages_for(ages, path))
        if path in drifted:
            sweep = Sweep(path, foreign=sweep.foreign, error=DRIFT)
        if confirm and sweep.error is None:
            run_sweep(repository.objects, sweep)
        report.datasets.append(_cleaned(kept.keys.get(path, path), sweep))
    inert, others = _inert(repository, branches, others)
    for path in sorted(inert):
        report.datasets.append(_removed(repository, path, inert[path], confirm=confirm))
    merges = _orphaned_attributions(repository, branches, others, ages)
    report.datasets.append(_outside_tables(repository, others, merges, ages, confirm=confirm))
    return report


def _kept(repository: Repository, horizons: dict[str, int]) -> KeptStates:
    """The states that must stay; retried when a branch is deleted concurrently."""
    for _ in range(DELETIONS_MAX):
        with suppress(BranchNotFound):
            return kept_states(repository, branch_states(repository, horizons))
    raise Contention("too many branches were deleted during the cleanup")


def _orphaned_attributions(
    repository: Repository, branches: list[Branch], others: list[ObjectInfo], ages: Ages
) -> list[ObjectInfo]:
    """Attribution objects of merges that no history has: failed, or deleted with their branch."""
    old = {
        merge: info
        for info in others
        if (merge := merge_of(info.path)) is not None and info.modified < ages.orphans
    }
    timelines = []
    for branch in branches if old else ():
        with skip_if_deleted(repository, branch):
            timelines.append(repository.manifest(branch).current().timeline)
    return [
        info for merge, info in old.items() if not any(one.contains(merge) for one in timelines)
    ]


def _inert(
    repository: Repository, branches: list[Branch], others: list[ObjectInfo]
) -> tuple[dict[str, list[ObjectInfo]], list[ObjectInfo]]:
    """Objects of datasets of older formats, which no branch needs any more, by path; and the
    other objects."""
    formats = []
    for branch in branches:
        with skip_if_deleted(repository, branch):
            formats.append(repository.manifest(branch).current().format)
    oldest = min(formats)
    inert: dict[str, list[ObjectInfo]] = {}
    rest = []
    for info in others:
        path = info.path.partition("/")[0]
        if path not in INERT_SINCE:
            rest.append(info)
        elif oldest >= INERT_SINCE[path]:
            inert.setdefault(path, []).append(info)
    return inert, rest


def _removed(
    repository: Repository, path: str, infos: list[ObjectInfo], *, confirm: bool
) -> Cleaned:
    """Remove one of these datasets entirely."""
    if confirm:
        for info in infos:
            repository.objects.delete(info.path)
        hit("cleanup.after_files")
    return Cleaned(path, sum(info.size for info in infos), 0, len(infos))


def _horizons(
    repository: Repository, branches: list[Branch], tables: Tables, policy: RetentionPolicy
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """New horizons by branch incarnation; by branch name the number of commits that newly fall
    below it, and of those that stay for the grace period of readers.
    """
    grace_s = repository.settings.limits.reader_grace_s
    horizons: dict[str, int] = {}
    given_up: dict[str, int] = {}
    in_grace: dict[str, int] = {}
    for branch in branches:
        with skip_if_deleted(repository, branch):
            state = repository.manifest(branch).current()
            manifest = tables.get(MANIFEST_PATH, {}).get(branch.ref)
            now_us = repository.clock.now_us()
            horizon = new_horizon(state, policy, manifest, now_us, grace_s)
            horizons[branch.incarnation] = horizon
            given_up[branch.name] = _commits_between(state, state.horizon, horizon)
            wanted = new_horizon(state, policy, None, now_us, grace_s)
            in_grace[branch.name] = _commits_between(state, horizon, wanted)
    return horizons, given_up, {name: count for name, count in in_grace.items() if count}


def _commits_between(state: ManifestState, old: int, new: int) -> int:
    """The number of commits between two horizons; the commit at the new one stays."""
    track = state.timeline.commits
    return max(max(track.until(new) - 1, 0) - max(track.until(old) - 1, 0), 0)


def _publish_horizons(
    repository: Repository, branches: list[Branch], horizons: dict[str, int]
) -> None:
    """Publish new horizons, and drop expired marks of abandoned writes."""
    before = repository.clock.now_us() - MARK_AGE_US
    for branch in branches:
        if branch.incarnation in horizons:
            with skip_if_deleted(repository, branch):
                _publish_horizon(repository, branch, horizons[branch.incarnation], before)


def _publish_horizon(repository: Repository, branch: Branch, horizon: int, before: int) -> None:
    manifest = repository.manifest(branch)
    state = manifest.current()
    if horizon > state.horizon:
        raise_horizon(manifest, branch, horizon)
    old = [r for r in state.rows(RowKind.ABANDONED) if r.metadata.get("at_us", before) < before]
    needed = _marks_in_use(repository, branch) if old else set()
    marks = tuple(row.object_id for row in old if row.object_id not in needed)
    if marks:
        manifest.publish(Publication(new_ulid(), branch.name, drop=marks))


def _marks_in_use(repository: Repository, branch: Branch) -> set[str]:
    """The marks of abandoned writes whose drift the next writer of the table has to undo."""
    pins = repository.snapshot(branch).pins.values()
    drifts = [find_drift(repository.tables, p.ref) for p in pins if p.owner == branch.incarnation]
    return {f"abandoned:{operation}" for drift in drifts for operation in drift.operations()}


def _drifted(
    repository: Repository, transaction: WriteTransaction, branches: list[Branch]
) -> Iterator[str]:
    """The paths of tables that another program changed; cleanup removes none of their files."""
    pending = transaction.recovery.pending
    for branch in branches:
        with skip_if_deleted(repository, branch):
            for pin in repository.snapshot(branch).pins.values():
                if external_drift(repository, pending, branch, pin) is not None:
                    yield pin.ref.path


def _ages(repository: Repository, others: list[ObjectInfo]) -> Ages:
    now = datetime.fromtimestamp(repository.clock.now_us() / 1_000_000, UTC)
    orphans = now - ORPHAN_AGE
    for info in others:
        if info.path.startswith(f"{STAGING_PREFIX}/") and info.path.endswith("/intent.json"):
            started = _operation_start(info.path)
            if not _intent_is_dead(repository, info, now) and started is not None:
                orphans = min(orphans, started)
    return Ages(orphans, now - MANIFEST_AGE)


def _ages_for(ages: Ages, path: str) -> Ages:
    """The ages for one table: versions of types have no minimum age, those of manifests do."""
    if path in (MANIFEST_PATH, RECOVERY_AUDIT_PATH):
        return ages
    return replace(ages, versions=datetime.max.replace(tzinfo=UTC))


def _outside_tables(
    repository: Repository,
    others: list[ObjectInfo],
    orphans: list[ObjectInfo],
    ages: Ages,
    *,
    confirm: bool,
) -> Cleaned:
    """Remove the objects of dead bulk loads, merges and readers."""
    now = datetime.fromtimestamp(repository.clock.now_us() / 1_000_000, UTC)
    dead = set(stale_leases(repository))
    by_operation: dict[str, list[ObjectInfo]] = {}
    foreign = 0
    going = [*orphans, *(info for info in others if info.path in dead)]
    for info in others:
        first, _, rest = info.path.partition("/")
        if first == STAGING_PREFIX and "/" in rest:
            by_operation.setdefault(rest.partition("/")[0], []).append(info)
        elif first not in (LEASES, RECOVERY_PREFIX, SET_ASIDE_PREFIX, HISTORY_PREFIX):
            foreign += 1
    for infos in by_operation.values():
        intent = [info for info in infos if info.path.endswith("/intent.json")]
        if intent:
            left = all(_intent_is_dead(repository, info, now) for info in intent)
        else:
            left = all(info.modified < ages.orphans for info in infos)
        if left:
            going += sorted(infos, key=lambda info: info.path.endswith("/intent.json"))
    if confirm:
        for info in going:
            repository.objects.delete(info.path)
        hit("cleanup.after_staging")
    size = sum(info.size for info in going)
    return Cleaned(STAGING, size, 0, len(going), foreign)


def _intent_is_dead(repository: Repository, info: ObjectInfo, now: datetime) -> bool:
    """Whether the owner of a bulk write is dead; on this host that is known at once."""
    try:
        owner = Owner(**json.loads(repository.objects.get(info.path))["owner"])
    except ObjectNotFound:
        return True
    except (ValueError, KeyError, TypeError):
        return now - info.modified > ORPHAN_AGE
    return is_certainly_dead(owner) or now - info.modified > ORPHAN_AGE


def _operation_start(path: str) -> datetime | None:
    milliseconds = ulid_milliseconds(path.split("/")[1])
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1_000, UTC)


def _cleaned(type_key: str, sweep: Sweep) -> Cleaned:
    return Cleaned(
        type_key,
        sweep.size if sweep.error is None else 0,
        len(sweep.versions),
        len(sweep.files),
        sweep.foreign,
        sweep.error,
    )
