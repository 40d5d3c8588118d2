"""Copies of a whole graph: backups, which are updated incrementally, and independent clones.

A copy has every branch with its readable history, and is a graph itself: it is opened, queried and
checked like any other. Files are copied first, then the versions that name them, main's newest
manifest last: until then the copy shows its former state. Files that exist already are not copied
again. Writers are not blocked; unfinished writes are not part of a copy.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.history.attribution import merge_of
from omnigraph.catalog.migrations.legacy import ACTORS_PATH, COMMITS_PATH
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import BackupRefused, Contention, NotFound
from omnigraph.maintenance.retention import (
    BranchState,
    KeptStates,
    branch_states,
    keep_newest,
    kept_states,
)
from omnigraph.maintenance.sweep import keep_fork_points
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.fsync import VERSION_HINT
from omnigraph.storage.lance.files.relocation import relocated, split_base
from omnigraph.storage.lance.files.table_files import (
    BranchObjects,
    Tables,
    group_by_table,
    names_of,
)
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.copy import copy_object
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore
from omnigraph.storage.paths import RECOVERY_AUDIT_PATH

MARKER: Final = "__backup.json"
ATTEMPTS_MAX: Final = 5
"""Attempts: a concurrent cleanup or branch deletion may remove files before they are copied."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The state of a copy, and how much was copied or existed already."""

    uri: str
    commit_id: str
    branches: int
    files: int = 0
    bytes: int = 0
    files_there: int = 0
    bytes_there: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.uri,
            "graph_commit_id": self.commit_id,
            "branches": self.branches,
            "files_copied": self.files,
            "bytes_copied": self.bytes,
            "files_there": self.files_there,
            "bytes_there": self.bytes_there,
        }


def backup(repository: Repository, target: Location) -> CopyReport:
    """Update a backup, or create one at an empty location."""
    objects = open_objects(target, repository.settings.storage)
    for _ in range(ATTEMPTS_MAX):
        try:
            seen = branch_states(repository)
            _require_own_backup(repository, objects, target, seen[0])
            objects.ensure_writable()
            objects.put(MARKER, json.dumps({"graph_id": repository.graph_id}).encode())
            return _copy(repository, objects, target, seen)
        except NotFound:
            continue  # a branch or old history was removed concurrently
    raise Contention(f"the history of {repository.location.uri} was removed while it was copied")


def clone(repository: Repository, target: Location) -> CopyReport:
    """Copy a graph, or a backup of one, to an empty location."""
    objects = open_objects(target, repository.settings.storage)
    for _ in range(ATTEMPTS_MAX):
        there = [info.path for info in objects.list()]
        head = _main_versions(there)
        if head or (there and not _is_unfinished(there)):
            raise BackupRefused(f"{target.uri} is not empty", details={"uri": target.uri})
        objects.ensure_writable()
        try:
            return _copy(repository, objects, target, branch_states(repository))
        except NotFound:
            continue
    raise Contention(f"the history of {repository.location.uri} was removed while it was copied")


def _require_own_backup(
    repository: Repository, objects: ObjectStore, target: Location, main: BranchState
) -> None:
    """Raise unless the target is empty or an older state of this graph."""
    there = [info.path for info in objects.list()]
    if not there:
        return
    if MARKER not in there:
        raise BackupRefused(f"{target.uri} is not empty and not a backup")
    if json.loads(objects.get(MARKER)).get("graph_id") != repository.graph_id:
        raise BackupRefused(f"{target.uri} is the backup of another graph")
    if not _main_versions(there):
        return  # the first backup was interrupted
    copy = Repository.open(target, settings=repository.settings)
    state = copy.main.current()
    same = state.version <= main.state.version
    same = same and state.head.commit_id in main.state.timeline.positions
    if same and repository.tables.has_version(state.ref):
        theirs, ours = (r.tables.transaction(state.ref).uuid for r in (copy, repository))
        same = theirs == ours
    if not same:
        raise BackupRefused(
            f"{target.uri} is not an older state of {repository.location.uri}: it was written to",
            remedy="Keep it as a separate graph, and back up to an empty location.",
        )


def _main_versions(paths: list[str]) -> list[str]:
    version = re.compile(rf"{MANIFEST_PATH}/_versions/\d+\.manifest")
    return [path for path in paths if version.fullmatch(path)]


def _is_unfinished(paths: list[str]) -> bool:
    """Whether a clone was interrupted here: only files of tables, and no head yet."""
    ours = re.compile(r"(__manifest|__history|nodes|edges|_graph_commit\w*\.lance)/")
    return all(ours.match(path) for path in paths)


@dataclass(frozen=True, slots=True)
class _Copying:
    """A running copy."""

    source: ObjectStore
    target: ObjectStore
    there: dict[str, int]
    rewritten: frozenset[str]
    """Tables whose existing versions were rewritten by a purge."""
    counts: Counter[str] = field(default_factory=Counter)

    def file(self, info: ObjectInfo, *, anew: bool = False) -> None:
        """Copy a file. One that exists is skipped, or replaced with ``anew``."""
        if self.there.get(info.path) == info.size and not anew:
            self._count("there", info.size)
            return
        copy_object(self.source, self.target, info.path)
        self._count("copied", info.size)

    def version(self, info: ObjectInfo) -> None:
        table = re.split("/tree/|/_versions/", info.path)[0]
        if info.path in self.there and table not in self.rewritten:
            self._count("there", info.size)
            return
        root = self.target.location.uri
        data = self.source.get(info.path)
        self.target.put(info.path, relocated(data, lambda base: root + split_base(base, table)[1]))
        self._count("copied", info.size)

    def _count(self, what: str, size: int) -> None:
        self.counts[f"files_{what}"] += 1
        self.counts[f"bytes_{what}"] += size


def _copy(
    repository: Repository, objects: ObjectStore, target: Location, seen: list[BranchState]
) -> CopyReport:
    tables, others = group_by_table(repository.objects.list())
    kept = kept_states(repository, seen)
    keep_newest(kept, tables.get(RECOVERY_AUDIT_PATH, {}))
    there = {info.path: info.size for info in objects.list()}
    purged = frozenset(path for one in seen for path in one.state.purged.tables)
    copying = _Copying(repository.objects, objects, there, purged)
    versions: list[ObjectInfo] = []
    manifests: list[ObjectInfo] = []
    for path in sorted(kept.versions):
        files, named = _of_table(repository, tables, path, kept)
        for info in files:
            copying.file(info)
        (manifests if path == MANIFEST_PATH else versions).extend(named)
    for info in _attributions(seen, others):
        copying.file(info, anew=bool(purged))
    if any(one.state.lineage is not None for one in seen):
        versions += _recorded(copying, others)
    hit("copy.after_files")
    head = _head(manifests, seen[0])
    for info in (*versions, *(info for info in manifests if info != head)):
        copying.version(info)
    hit("copy.before_head")
    copying.version(head)
    hit("copy.after_head")
    counts = copying.counts
    return CopyReport(
        target.uri,
        seen[0].state.head.commit_id,
        len(seen),
        counts["files_copied"],
        counts["bytes_copied"],
        counts["files_there"],
        counts["bytes_there"],
    )


def _attributions(seen: list[BranchState], others: list[ObjectInfo]) -> list[ObjectInfo]:
    """The attribution objects of merges that some branch has in its history."""
    timelines = [one.state.timeline for one in seen]
    return [
        info
        for info in others
        if (merge := merge_of(info.path)) is not None and any(t.contains(merge) for t in timelines)
    ]


def _recorded(copying: _Copying, others: list[ObjectInfo]) -> list[ObjectInfo]:
    """Copy the files of the commit datasets of older formats; returns their versions."""
    versions = []
    for info in others:
        path, _, rest = info.path.partition("/")
        if path not in (COMMITS_PATH, ACTORS_PATH) or rest.endswith(VERSION_HINT):
            continue
        if info.path.endswith(".manifest"):
            versions.append(info)
        else:
            copying.file(info)
    return versions


def _of_table(
    repository: Repository, tables: Tables, path: str, kept: KeptStates
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """The files of a table that a copy needs, and the versions that name them."""
    branches = tables.get(path, {})
    keep_fork_points(repository.tables, branches, kept)
    names: set[str] = set()
    versions: list[ObjectInfo] = []
    files: list[ObjectInfo] = []
    for holdings in branches.values():
        wanted = [v for v in sorted(kept.of(holdings)) if v in holdings.versions]
        for version in wanted:
            versions.append(holdings.versions[version])
            names |= names_of(repository.tables, holdings.ref(version))
        if wanted:
            files += _refs(holdings)
    for holdings in branches.values():
        files += [i for name in sorted(names & holdings.files.keys()) for i in holdings.files[name]]
    return files, versions


def _refs(holdings: BranchObjects) -> Iterator[ObjectInfo]:
    """The references of a physical branch; hints of the newest version are left out."""
    return (info for info in holdings.own if "/_refs/" in info.path)


def _head(manifests: list[ObjectInfo], main: BranchState) -> ObjectInfo:
    name = f"{MANIFEST_PATH}/_versions/{2**64 - 1 - main.state.version:020d}.manifest"
    for info in manifests:
        if info.path == name:
            return info
    raise NotFound(f"version {main.state.version} of the manifest was removed")
