"""Sweeps one table: finds the versions and files that may be removed, and removes them.

A file is removed together with the last version that names it, or, if no version names it, when it
is older than any running write. Versions are removed before the files that they name, so that every
version that can be opened can be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from omnigraph.errors import CorruptData, ObjectNotFound, OmnigraphError
from omnigraph.maintenance.retention import KeptStates
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.files.table_files import BranchObjects, names_of
from omnigraph.storage.lance.tables import TableRef, TableStore
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore


@dataclass(slots=True)
class Sweep:
    """The objects of one table that may be removed."""

    path: str
    versions: list[ObjectInfo] = field(default_factory=list)
    files: list[ObjectInfo] = field(default_factory=list)
    refs: list[ObjectInfo] = field(default_factory=list)
    """References of physical branches that are removed entirely."""
    foreign: int = 0
    error: str | None = None

    @property
    def size(self) -> int:
        return sum(info.size for info in (*self.versions, *self.files, *self.refs))


@dataclass(frozen=True, slots=True)
class Ages:
    """The times before which objects may be removed."""

    orphans: datetime
    """For files that no version names."""
    versions: datetime
    """For superseded versions: a warm handle of a manifest reads the version after its own."""


def plan_sweep(
    store: TableStore, branches: dict[str | None, BranchObjects], kept: KeptStates, ages: Ages
) -> Sweep:
    """Plan the sweep of one table with all its physical branches. Changes nothing."""
    path = next(iter(branches.values())).path
    sweep = Sweep(path, foreign=sum(len(h.foreign) for h in branches.values()))
    try:
        keep_fork_points(store, branches, kept)
        going, staying = _divide(branches, kept, ages)
        live = {name for ref in staying for name in names_of(store, ref)}
    except OmnigraphError as problem:
        sweep.error = problem.message
        return sweep
    dead = _named_by(store, going) - live
    for holdings in branches.values():
        gone = [ref.version for ref in going if ref.branch == holdings.branch]
        sweep.versions += [holdings.versions[version] for version in sorted(gone)]
        empty = holdings.branch is not None and len(gone) == len(holdings.versions)
        if empty and _is_old(holdings, kept, ages):
            sweep.refs += holdings.own
        for name, infos in holdings.files.items():
            if name in live:
                continue
            sweep.files += [i for i in infos if name in dead or i.modified < ages.orphans]
    return sweep


def run_sweep(objects: ObjectStore, sweep: Sweep) -> None:
    """Remove the planned objects; after a crash the next sweep finds the rest."""
    for infos in (sweep.refs, sweep.versions):
        for info in infos:
            objects.delete(info.path)
    hit("cleanup.after_versions")
    for info in sweep.files:
        objects.delete(info.path)
    hit("cleanup.after_files")


def keep_fork_points(
    store: TableStore, branches: dict[str | None, BranchObjects], kept: KeptStates
) -> None:
    """Keep the fork points of physical branches, on both sides: diffs start from them."""
    waiting = [h for h in branches.values() if h.branch is not None and kept.of(h)]
    seen: set[str | None] = set()
    while waiting:
        holdings = waiting.pop()
        if holdings.branch in seen:
            continue
        seen.add(holdings.branch)
        try:
            start = store.fork_point(holdings.ref(0))
        except ObjectNotFound as missing:
            raise CorruptData(f"{missing.message}: the reference of a fork is missing") from missing
        kept.add(start)
        kept.add(holdings.ref(start.version))
        if start.branch is not None and start.branch in branches:
            waiting.append(branches[start.branch])


def _divide(
    branches: dict[str | None, BranchObjects], kept: KeptStates, ages: Ages
) -> tuple[list[TableRef], list[TableRef]]:
    """The versions to remove and the versions that stay.

    Versions above the newest kept one stay: they may belong to a running write. Young versions that
    were never published stay, too: a writer whose attempt was undone may reuse their files.
    """
    going: list[TableRef] = []
    staying: list[TableRef] = []
    for holdings in branches.values():
        needed = kept.of(holdings)
        newest = max(needed, default=None)
        whole = newest is None and _is_old(holdings, kept, ages)
        for version, info in holdings.versions.items():
            below = newest is not None and version < newest and version not in needed
            stated = holdings.ref(version) in kept.published
            old = info.modified < (ages.versions if stated else ages.orphans)
            goes = whole or (below and old)
            (going if goes else staying).append(holdings.ref(version))
    return going, staying


def _is_old(holdings: BranchObjects, kept: KeptStates, ages: Ages) -> bool:
    """Whether a physical branch without kept versions may be removed: published before, or old."""
    if not holdings.objects():
        return False
    if kept.of(holdings):
        return False
    stated = all(holdings.ref(version) in kept.published for version in holdings.versions)
    return (stated and bool(holdings.versions)) or holdings.modified < ages.orphans


def _named_by(store: TableStore, refs: Iterable[TableRef]) -> set[str]:
    found: set[str] = set()
    for ref in refs:
        try:
            found |= names_of(store, ref)
        except (TableNotFound, CorruptData):
            continue  # its files are removed by age
    return found
