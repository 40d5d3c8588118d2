"""Sweeping one table: which versions and files may go, and removing them.

A file goes when the versions that named it go, or when it is old and no version ever named it:
what a dead writer staged. Young files that nothing names are somebody's work and stay. Versions go
before the files they name, so a version that can be opened can always be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from omnigraph.errors import CorruptData, ObjectNotFound, OmnigraphError
from omnigraph.maintenance.retention import Kept
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.files.table_files import Holdings, names_of
from omnigraph.storage.lance.tables import TableRef, TableStore
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore


@dataclass(slots=True)
class Sweep:
    """What may go of one table."""

    path: str
    versions: list[ObjectInfo] = field(default_factory=list)
    files: list[ObjectInfo] = field(default_factory=list)
    refs: list[ObjectInfo] = field(default_factory=list)  # of physical branches that go as a whole
    foreign: int = 0
    error: str | None = None

    @property
    def size(self) -> int:
        return sum(info.size for info in (*self.versions, *self.files, *self.refs))


@dataclass(frozen=True, slots=True)
class Ages:
    """Before which moments things are nobody's any more."""

    orphans: datetime
    versions: datetime  # of the manifest: a warm handle looks for the version after its own


def plan_sweep(
    store: TableStore, branches: dict[str | None, Holdings], kept: Kept, ages: Ages
) -> Sweep:
    """Decide about one table with all its physical branches."""
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


def carry_out(objects: ObjectStore, sweep: Sweep) -> None:
    """Remove what was decided; what a crash leaves is found by a later sweep."""
    for infos in (sweep.refs, sweep.versions):
        for info in infos:
            objects.delete(info.path)
    hit("cleanup.after_versions")
    for info in sweep.files:
        objects.delete(info.path)
    hit("cleanup.after_files")


def keep_fork_points(store: TableStore, branches: dict[str | None, Holdings], kept: Kept) -> None:
    """What a physical branch was forked from is what differences between branches start from."""
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
            raise CorruptData(f"{missing.message}: a branch does not say what it is") from missing
        kept.add(start)
        kept.add(holdings.ref(start.version))
        if start.branch is not None and start.branch in branches:
            waiting.append(branches[start.branch])


def _divide(
    branches: dict[str | None, Holdings], kept: Kept, ages: Ages
) -> tuple[list[TableRef], list[TableRef]]:
    """The versions that go and those that stay.

    Nothing above the newest version that is needed goes: it may be a write in the making. Nor does
    a young version that nobody published: whoever made it, and saw it undone, may use its files for
    another attempt.
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


def _is_old(holdings: Holdings, kept: Kept, ages: Ages) -> bool:
    """Whether a physical branch that nobody needs may go: it was published, or it is old."""
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
            continue  # what it named is found by its age
    return found
