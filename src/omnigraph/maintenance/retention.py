"""Retention: which states of a graph must stay. A pure function of the stored state, for dry runs.

A branch keeps its head, its newest commits by number or age, and every state that a tag, another
branch, a future merge (as its merge base), an unfinished write or a reader needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked, skip_if_deleted
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.history.ancestry import load_ancestry
from omnigraph.catalog.history.horizon import kept_version, protected_versions
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH, parse_version_key
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import InvalidInput
from omnigraph.storage.lance.files.table_files import BranchObjects
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.reader_leases import leased_versions
from omnigraph.transaction.recovery.pending import PendingRecords

_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The newest commits that every branch keeps: by number, by age, or the larger of both."""

    keep: int | None = None
    older_than_s: int | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than_s is None:
            raise InvalidInput(
                "cleanup needs a retention policy",
                remedy="Give the number of commits to keep, the age of commits to remove, or both.",
            )
        if (self.keep or 0) < 0 or (self.older_than_s or 0) < 0:
            raise InvalidInput("the number of commits and the age must not be negative")


@dataclass(slots=True)
class KeptStates:
    """The versions of tables that must stay, by path and physical branch."""

    versions: dict[str, dict[str | None, set[int]]] = field(default_factory=dict)
    published: set[TableRef] = field(default_factory=set)
    """Versions that some branch has published."""
    keys: dict[str, str] = field(default_factory=dict)
    """Type keys by path."""

    def add(self, ref: TableRef) -> None:
        self.versions.setdefault(ref.path, {}).setdefault(ref.branch, set()).add(ref.version)

    def of(self, holdings: BranchObjects) -> set[int]:
        return self.versions.get(holdings.path, {}).get(holdings.branch, set())


def new_horizon(
    state: ManifestState,
    policy: RetentionPolicy,
    manifest: BranchObjects | None,
    now_us: int,
    reader_grace_s: float,
) -> int:
    """The manifest version below which the policy removes the states of a branch.

    A state may be read, without a lease, for ``reader_grace_s`` after a newer one replaced it.
    """
    commits = history.list_commits(state)[::-1]
    last = len(commits) - 1
    first_kept = last if policy.keep is None else min(last, max(0, len(commits) - policy.keep))
    if policy.older_than_s is not None:
        since = now_us - policy.older_than_s * _MICROSECONDS
        young = next((at for at, c in enumerate(commits) if c.created_at_us > since), last)
        first_kept = min(first_kept, young)
    horizon = state.version
    if first_kept < last:
        horizon = (commits[first_kept + 1].manifest_version or 1) - 1
    since_us = now_us - reader_grace_s * _MICROSECONDS
    return max(state.horizon, min(horizon, _oldest_in_grace(state, manifest, since_us)))


def _oldest_in_grace(state: ManifestState, manifest: BranchObjects | None, since_us: float) -> int:
    """The oldest version that was the newest one within the grace period of readers."""
    known = {} if manifest is None else manifest.versions
    young = [
        version
        for version, info in known.items()
        if version <= state.version and info.modified.timestamp() * _MICROSECONDS > since_us
    ]
    return max(min(young) - 1, 1) if young else state.version


@dataclass(frozen=True, slots=True)
class BranchState:
    """The state of a branch, and its horizon."""

    branch: Branch
    state: ManifestState
    horizon: int


def branch_states(
    repository: Repository, horizons: Mapping[str, int] | None = None
) -> list[BranchState]:
    """The states of all branches, main first; ``horizons`` replace the published ones."""
    main = repository.main.current()
    found = []
    for branch in sorted(all_branches(main).values(), key=lambda b: b.ref or ""):
        with skip_if_deleted(repository, branch):
            state = main if branch.ref is None else repository.manifest(branch).current()
            horizon = (horizons or {}).get(branch.incarnation, state.horizon)
            found.append(BranchState(branch, state, horizon))
    return found


def kept_states(repository: Repository, seen: Sequence[BranchState]) -> KeptStates:
    """The versions of these states that must stay, without those of unfinished writes.

    Raises ``BranchNotFound`` when one of the branches is deleted concurrently.
    """
    kept = KeptStates()
    main = seen[0].state
    branches = [one.branch for one in seen]
    with deletion_checked(repository, *branches):
        bases = dict(_merge_bases(repository, branches))
        leases = leased_versions(repository)
        for one in seen:
            incarnation = one.branch.incarnation
            held = {version for _, version in protected_versions(main, one.branch)}
            held |= bases.get(incarnation, set()) | leases.get(incarnation, set())
            _keep_branch(kept, one.branch, one.state, one.horizon, held)
    return kept


def keep_unfinished(kept: KeptStates, pending: PendingRecords) -> None:
    """Keep the versions that unfinished writes start from and move to."""
    for incarnation in pending.incarnations():
        for found in pending.of_branch(incarnation):
            for table in found.record.tables:
                for ref in (table.base, table.target, table.landing):
                    kept.add(ref)


def keep_newest(kept: KeptStates, branches: Mapping[str | None, BranchObjects]) -> None:
    """Keep the newest version of each physical branch, as for the audit of recoveries."""
    for holdings in branches.values():
        if holdings.versions:
            kept.add(holdings.ref(max(holdings.versions)))
            kept.published |= {holdings.ref(version) for version in holdings.versions}


def _keep_branch(
    kept: KeptStates, branch: Branch, state: ManifestState, horizon: int, held: set[int]
) -> None:
    kept.published |= {TableRef(MANIFEST_PATH, branch.ref, v) for v in range(state.version + 1)}
    kept.keys[MANIFEST_PATH] = MANIFEST_PATH
    for version in (*held, *range(max(horizon, 1), state.version + 1)):
        kept.add(TableRef(MANIFEST_PATH, branch.ref, version))
    for key, track in state.timeline.types.items():
        refs = [parse_version_key(name) for name in track.names]
        kept.published |= set(refs)
        kept.keys |= {ref.path: key for ref in refs}
        for ref in refs[max(track.until(horizon) - 1, 0) :]:
            kept.add(ref)
        for version in held:
            count = track.until(version)
            if count:
                kept.add(refs[count - 1])


def _merge_bases(repository: Repository, branches: list[Branch]) -> Iterator[tuple[str, set[int]]]:
    """The merge bases of every branch with main and with its parent, by branch incarnation."""
    if len(branches) == 1:
        return
    by_incarnation = {branch.incarnation: branch for branch in branches}
    ancestry = load_ancestry(repository, branches)
    found: dict[str, set[int]] = {}
    for branch in branches:
        for other in {MAIN_BRANCH, by_incarnation.get(branch.parent or "", MAIN_BRANCH)}:
            heads = [repository.manifest(b).current().head.commit_id for b in (branch, other)]
            base = None if branch == other else ancestry.base(*heads)
            if base is None:
                continue
            holder = ancestry.holders[base.commit_id]
            state = repository.manifest(holder).current()
            version = base.manifest_version or 1
            kept = kept_version(state, version) or version
            found.setdefault(holder.incarnation, set()).add(kept)
    yield from found.items()
