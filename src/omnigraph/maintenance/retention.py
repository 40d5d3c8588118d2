"""Which states of a graph must stay: decided by looking only, so that it can also be foretold.

A branch keeps its newest commits, as many or as young as the policy says, its head in any case; and
every state that a tag, another branch, a merge to come, an unfinished write or a reader holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.catalog.branches.deleted import deletion_noticed, skipped_if_deleted
from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.history.ancestry import load_ancestry
from omnigraph.catalog.history.horizon import kept_version, protected_versions
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH, ref_at
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import InvalidInput
from omnigraph.storage.lance.files.table_files import Holdings
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.reader_leases import held_versions
from omnigraph.transaction.recovery.pending import PendingRecords

READER_GRACE_S: Final = 3_600.0
READER_GRACE_VARIABLE: Final = "OMNIGRAPH_READER_GRACE_SECONDS"
"""A state may be read for this long after a newer one took its place, without a lease."""
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What to keep of every branch: its newest commits by number, by age, or what is more."""

    keep: int | None = None
    older_than_s: int | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than_s is None:
            raise InvalidInput(
                "cleanup needs to know what to keep",
                remedy="Say how many commits to keep, from which age on they may go, or both.",
            )
        if (self.keep or 0) < 0 or (self.older_than_s or 0) < 0:
            raise InvalidInput("a negative number of commits or seconds cannot be kept")


@dataclass(slots=True)
class Kept:
    """Every version of every table that must stay, by path and physical branch."""

    versions: dict[str, dict[str | None, set[int]]] = field(default_factory=dict)
    published: set[TableRef] = field(default_factory=set)  # versions that some branch has stated
    keys: dict[str, str] = field(default_factory=dict)  # type keys by path

    def add(self, ref: TableRef) -> None:
        self.versions.setdefault(ref.path, {}).setdefault(ref.branch, set()).add(ref.version)

    def of(self, holdings: Holdings) -> set[int]:
        return self.versions.get(holdings.path, {}).get(holdings.branch, set())


def reader_grace_seconds() -> float:
    text = os.environ.get(READER_GRACE_VARIABLE)
    try:
        value = READER_GRACE_S if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10**9:
        raise InvalidInput(f"{READER_GRACE_VARIABLE} is {text!r}; it must be a number of seconds")
    return value


def new_horizon(
    state: ManifestState, policy: Policy, manifest: Holdings | None, now_us: int
) -> int:
    """The manifest version below which the policy gives a branch's states up."""
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
    return max(state.horizon, min(horizon, _read_by_somebody(state, manifest, now_us)))


def _read_by_somebody(state: ManifestState, manifest: Holdings | None, now_us: int) -> int:
    """The oldest version that was the newest one within the grace of readers."""
    since = now_us - reader_grace_seconds() * _MICROSECONDS
    known = {} if manifest is None else manifest.versions
    young = [
        version
        for version, info in known.items()
        if version <= state.version and info.modified.timestamp() * _MICROSECONDS > since
    ]
    return max(min(young) - 1, 1) if young else state.version


@dataclass(frozen=True, slots=True)
class BranchState:
    """A branch as it was seen, and the horizon that counts for it."""

    branch: Branch
    state: ManifestState
    horizon: int


def seen_states(
    repository: Repository, horizons: Mapping[str, int] | None = None
) -> list[BranchState]:
    """Every branch that main knows now, main first; without horizons those that are stated."""
    main = repository.main.current()
    found = []
    for branch in sorted(all_branches(main).values(), key=lambda b: b.ref or ""):
        with skipped_if_deleted(repository, branch):
            state = main if branch.ref is None else repository.manifest(branch).current()
            horizon = (horizons or {}).get(branch.incarnation, state.horizon)
            found.append(BranchState(branch, state, horizon))
    return found


def kept_states(repository: Repository, seen: Sequence[BranchState]) -> Kept:
    """Everything of these states that must stay, but for what is unfinished.

    Raises ``BranchNotFound`` when one of the branches is deleted meanwhile.
    """
    kept = Kept()
    main = seen[0].state
    branches = [one.branch for one in seen]
    with deletion_noticed(repository, *branches):
        bases = dict(_merge_bases(repository, branches))
        leases = held_versions(repository)
        for one in seen:
            incarnation = one.branch.incarnation
            held = {version for _, version in protected_versions(main, one.branch)}
            held |= bases.get(incarnation, set()) | leases.get(incarnation, set())
            _keep_branch(kept, one.branch, one.state, one.horizon, held)
    return kept


def keep_unfinished(kept: Kept, pending: PendingRecords) -> None:
    """What unfinished writes start from and go to stays, too."""
    for incarnation in pending.incarnations():
        for found in pending.of_branch(incarnation):
            for table in found.record.tables:
                for ref in (table.base, table.target, table.landing):
                    kept.add(ref)


def keep_newest(kept: Kept, branches: Mapping[str | None, Holdings]) -> None:
    """Of the audit of recoveries only the newest version is ever read."""
    for holdings in branches.values():
        if holdings.versions:
            kept.add(holdings.ref(max(holdings.versions)))
            kept.published |= {holdings.ref(version) for version in holdings.versions}


def _keep_branch(
    kept: Kept, branch: Branch, state: ManifestState, horizon: int, held: set[int]
) -> None:
    kept.published |= {TableRef(MANIFEST_PATH, branch.ref, v) for v in range(state.version + 1)}
    kept.keys[MANIFEST_PATH] = MANIFEST_PATH
    for version in (*held, *range(max(horizon, 1), state.version + 1)):
        kept.add(TableRef(MANIFEST_PATH, branch.ref, version))
    for key, track in state.timeline.types.items():
        refs = [ref_at(name) for name in track.names]
        kept.published |= set(refs)
        kept.keys |= {ref.path: key for ref in refs}
        for ref in refs[max(track.until(horizon) - 1, 0) :]:
            kept.add(ref)
        for version in held:
            count = track.until(version)
            if count:
                kept.add(refs[count - 1])


def _merge_bases(repository: Repository, branches: list[Branch]) -> Iterator[tuple[str, set[int]]]:
    """The states that a merge with main or with the parent would compare both sides with."""
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
