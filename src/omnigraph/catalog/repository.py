"""The storage of one graph: its objects, its tables and the manifest of each branch.

Opening reads the manifest and checks its format stamp; it writes, repairs and migrates nothing. All
cached state of a graph in this process belongs to one ``Repository``.
"""

from __future__ import annotations

import os
import threading

from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, get_branch
from omnigraph.catalog.format import Stamp
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.history.horizon import kept_version, protected_versions, reclaimed
from omnigraph.catalog.history.purged import PurgedVersions
from omnigraph.catalog.manifest import Manifest
from omnigraph.catalog.migrations.legacy import Lineage, unstamped_id
from omnigraph.catalog.migrations.migrator import Migrator
from omnigraph.catalog.original.reader import OriginalReader
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Commit, TablePin
from omnigraph.catalog.schemas import type_keys
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CorruptData, GraphNotFound, UnsupportedLocation
from omnigraph.model.clock import SYSTEM_CLOCK, Clock
from omnigraph.settings import Settings
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.tables import TableStore
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore


class Repository:
    """The storage of one graph. Thread-safe."""

    def __init__(
        self,
        location: Location,
        *,
        objects: ObjectStore | None = None,
        clock: Clock = SYSTEM_CLOCK,
        settings: Settings | None = None,
    ) -> None:
        """Without ``settings``, those of the environment are read."""
        if location.scheme == "memory":
            raise UnsupportedLocation(
                f"a graph cannot be stored in process memory ({location.uri})",
                remedy="Use a local path or an s3:// URI; a path below /dev/shm is kept in memory.",
            )
        self.location = location
        self.clock = clock
        self.settings = Settings.from_environment() if settings is None else settings
        if objects is None:
            objects = open_objects(location, self.settings.storage)
        self.objects = objects
        self.tables = TableStore(location, self.objects, self.settings.storage)
        self._original = OriginalReader(self.tables)
        self._graph_id: str | None = None
        self._manifests: dict[str, Manifest] = {}
        self._purged = PurgedVersions()
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        location: Location,
        *,
        objects: ObjectStore | None = None,
        clock: Clock = SYSTEM_CLOCK,
        settings: Settings | None = None,
    ) -> Repository:
        """Open an existing graph; the error says why a graph cannot be opened."""
        repository = cls(location, objects=objects, clock=clock, settings=settings)
        try:
            repository.manifest(MAIN_BRANCH).current()
        except TableNotFound as error:
            raise repository.open_failure() from error
        return repository

    def is_original(self) -> bool:
        """Whether this is a graph of the original, by the stamp of its manifest alone."""
        try:
            newest = self.tables.open_newest(MANIFEST_PATH)
        except TableNotFound as error:
            raise self.open_failure() from error
        return self.migrator(MAIN_BRANCH).accept(newest).original

    def open_failure(self) -> GraphNotFound | CorruptData:
        """Why a graph cannot be opened: nothing there, other files there, or a damaged graph."""
        uri = self.location.uri
        if self.was_created():
            return CorruptData(
                f"the graph at {uri} is damaged: {MANIFEST_PATH} has files but no readable version",
                remedy=f"Restore {MANIFEST_PATH}/ from a backup; nothing was changed.",
            )
        if self.location.is_local and not os.path.exists(self.location.path):
            return GraphNotFound(f"nothing exists at {uri}", details={"uri": uri})
        return GraphNotFound(f"{uri} is not a graph", details={"uri": uri})

    def was_created(self) -> bool:
        """Whether a graph exists or existed; the files of an interrupted init do not count."""
        for info in self.objects.list(MANIFEST_PATH):
            folder, _, name = info.path.removeprefix(f"{MANIFEST_PATH}/").partition("/")
            first = folder == "data" or (folder == "_transactions" and name.startswith("0-"))
            temporary = folder == "_versions" and not name.endswith(".manifest")
            if not (first or temporary):
                return True
        return False

    @property
    def main(self) -> Manifest:
        return self.manifest(MAIN_BRANCH)

    def branch(self, name: str) -> Branch:
        """The live branch of this name."""
        if name == MAIN:
            return MAIN_BRANCH
        return get_branch(self.main.current(), name)

    def manifest(self, branch: Branch) -> Manifest:
        """The shared, cached manifest of a branch."""
        with self._lock:
            found = self._manifests.get(branch.incarnation)
            if found is None:
                found = Manifest(
                    self.tables, self.migrator(branch), clock=self.clock, accepted=self._identify
                )
                self._manifests[branch.incarnation] = found
            return found

    def incarnations(self, name: str) -> list[str]:
        """The incarnations of a branch name that this process has used, deleted ones included."""
        with self._lock:
            known = list(self._manifests.items())
        return [found for found, manifest in known if manifest.migrator.target.branch == name]

    def migrator(self, branch: Branch, lineage: Lineage | None = None) -> Migrator:
        """The migrator of a branch; ``lineage`` are the commits of a fresh fork."""
        return Migrator(
            self.tables,
            branch.name,
            branch.ref,
            graph_id=lambda: self.graph_id,
            original=self._original,
            lineage=lineage,
        )

    @property
    def graph_id(self) -> str:
        """The unique id of this graph."""
        return self._graph_id or unstamped_id(self.main.warm().pins.values())

    def _identify(self, stamp: Stamp) -> None:
        self._graph_id = stamp.graph_id or self._graph_id

    def snapshot(self, branch: Branch) -> SnapshotPins:
        """The newest snapshot of a branch."""
        return SnapshotPins.of(branch, self.manifest(branch).current())

    def snapshot_at_commit(self, branch: Branch, commit_id: str) -> SnapshotPins:
        """The snapshot a commit made. The commit must be in the branch's history."""
        state = self.manifest(branch).current()
        commit = history.get_commit(state, commit_id)
        return self._at(branch, state, commit, commit.manifest_version or 0)

    def snapshot_at_version(self, branch: Branch, manifest_version: int) -> SnapshotPins:
        """The snapshot as of a manifest version."""
        state = self.manifest(branch).current()
        commit = history.commit_at(state, manifest_version)
        return self._at(branch, state, commit, manifest_version)

    def _at(
        self, branch: Branch, state: ManifestState, commit: Commit, version: int
    ) -> SnapshotPins:
        kept = kept_version(state, version)
        if kept is None:
            kept = self._protected_version(branch, state, commit, version)
        schema_hash = commit.schema_hash or state.head.schema_hash
        pins = self._pins(state, schema_hash, kept)
        self._evict_purged(state.purged)
        state.purged.require_readable(commit.commit_id, pins.values())
        return SnapshotPins(branch, kept, commit.commit_id, schema_hash, pins, state.format)

    def _evict_purged(self, purged: PurgedVersions) -> None:
        """Evict handles on versions that a purge, in any process, has rewritten."""
        if purged == self._purged:
            return
        for path in purged.tables:
            self.tables.evict(path)
        self._purged = purged

    @staticmethod
    def _pins(state: ManifestState, schema_hash: str, version: int) -> dict[str, TablePin]:
        """Only the types of the schema: renamed and dropped types have older rows, too."""
        keys = type_keys(state, schema_hash)
        return {k: pin for k, pin in history.pins_at(state, version).items() if k in keys}

    def _protected_version(
        self, branch: Branch, state: ManifestState, commit: Commit, version: int
    ) -> int:
        """A version below the horizon at which a commit is still readable, or a typed error."""
        held = protected_versions(self.main.current(), branch)
        schema_hash = commit.schema_hash or state.head.schema_hash
        for candidate in (version, *(v for id, v in held if id == commit.commit_id)):
            pins = self._pins(state, schema_hash, candidate).values()
            if all(self.tables.has_version(pin.ref) for pin in pins):
                return candidate
        raise reclaimed(f"commit {commit.commit_id}", commit.commit_id)
