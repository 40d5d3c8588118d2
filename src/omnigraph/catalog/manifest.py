"""The manifest of one branch: its cached newest state, and publishing to it.

On an unchanged graph a warm handle probes whether the next version exists (one small request) and
reuses its cached state. After a long pause it lists for the newest version instead, because cleanup
may have removed the versions in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

from omnigraph.catalog.format import Stamp
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.migrations.migrator import Migrator
from omnigraph.catalog.original.layout import read_only
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.publisher import PUBLISH_RETRY, Published, Publisher
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import Contention, OmnigraphError
from omnigraph.model import outcome
from omnigraph.model.clock import SYSTEM_CLOCK, Clock
from omnigraph.storage.lance.errors import AmbiguousOutcome, CommitRefused
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.named_locks import named_lock

# Cleanup keeps every manifest version younger than an hour, so the next version still exists for a
# handle that checked less than this long ago.
REOPEN_AFTER_S = 600.0


class Manifest:
    """The manifest of one branch. Thread-safe; states are immutable."""

    def __init__(
        self,
        store: TableStore,
        migrator: Migrator,
        *,
        clock: Clock = SYSTEM_CLOCK,
        accepted: Callable[[Stamp], None] = lambda stamp: None,
    ) -> None:
        """``accepted`` is called with the format stamp of every version that is opened."""
        self.store = store
        self.physical_branch = migrator.target.ref
        self.migrator = migrator
        self._clock = clock
        self._accepted = accepted
        self._lock = threading.Lock()
        self._state: ManifestState | None = None
        self._checked_at = 0.0

    def current(self) -> ManifestState:
        """The newest state."""
        with self._lock:
            now = self._clock.monotonic()
            if self._state is None or now - self._checked_at > REOPEN_AFTER_S:
                newest = self.store.open_newest(MANIFEST_PATH, self.physical_branch)
            else:
                known = self._state.ref
                ref = self.store.newest_from(known)
                if ref is known:
                    self._checked_at = now
                    return self._state
                newest = self.store.open(ref)
            self._state = self._load(newest)
            self._checked_at = now
            return self._state

    def _load(self, newest: PinnedTable) -> ManifestState:
        """Load a new version; a cached state of another format is not reused."""
        stamp = self.migrator.accept(newest)
        self._accepted(stamp)
        previous = self._state
        if previous is not None and (
            previous.is_original or not previous.format == stamp.internal == INTERNAL_VERSION
        ):
            previous = None
        return self.migrator.load(newest, stamp, previous)

    def warm(self) -> ManifestState:
        """The cached state, without a check whether it is the newest."""
        with self._lock:
            state = self._state
        return state if state is not None else self.current()

    def migrate(self) -> ManifestState:
        """Migrate the branch to the current format. Free when its cached state has it."""
        retry = PUBLISH_RETRY.start(self._clock)
        while True:
            try:
                return self._migrated(self.warm())
            except (CommitRefused, AmbiguousOutcome) as failure:
                if not retry.again():
                    raise _gave_up(failure) from failure

    def _migrated(self, state: ManifestState) -> ManifestState:
        """One attempt at the migration, which the next one continues."""
        if state.is_original:
            raise read_only(self.store.location.uri)
        if state.format == INTERNAL_VERSION:
            return state
        self.migrator.migrate()
        return self.current()

    @cached_property
    def _publisher(self) -> Publisher:
        return Publisher(self.store, self.current, self._migrated, find_commit, self._clock)

    def publish(self, publication: Publication) -> Published:
        """Make a publication visible and cache the state it made."""
        with named_lock(self.store.location.uri, "publish", self.physical_branch).held():
            published = self._publisher.publish(publication, self.warm())
        with self._lock:
            if self._state is None or published.state.version > self._state.version:
                self._state = published.state
                self._checked_at = self._clock.monotonic()
        return published

    def publish_and_report(self, publication: Publication) -> Published:
        """Publish a write that has no recovery record, and report its outcome after an interrupt.

        Without a record no later recovery would find out whether it was committed.
        """
        before = self.warm().version
        try:
            published = self.publish(publication)
            outcome.committed(publication.commit_id)
            return published
        except OmnigraphError:
            raise
        except BaseException:
            self._report_outcome(publication, before)
            raise

    def _report_outcome(self, publication: Publication, before: int) -> None:
        try:
            now = self.current()
            landed = any(
                self.store.transaction(now.ref.at(version)).operation == publication.operation_id
                for version in range(before + 1, now.version + 1)
            )
        except BaseException:
            outcome.undecided(publication.commit_id)
            return
        if landed:
            outcome.committed(publication.commit_id)


def _gave_up(failure: OmnigraphError) -> Contention:
    return Contention(f"could not migrate the branch to the current format: {failure.message}")
