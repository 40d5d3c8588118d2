"""One branch's manifest, kept warm: the newest state, and the door to publish on it.

A warm handle on an unchanged graph answers without reading anything: it asks the store whether the
next version exists (one small request) and reuses what it has. A reader that stayed away for long
asks the store for the newest version instead, because cleanup may have removed the versions
between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

from omnigraph.catalog.format import Stamp
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.migrations.migrator import Migrator
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.publisher import ATTEMPTS_MIN, BUDGET_S, Published, Publisher, back_off
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.catalog.state import ManifestState, load_state
from omnigraph.errors import Contention, OmnigraphError
from omnigraph.model import outcome
from omnigraph.model.ids import SYSTEM_CLOCK, Clock
from omnigraph.storage.lance.errors import AmbiguousOutcome, CommitRefused
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.thread_queues import queue

# Cleanup keeps every manifest version younger than an hour; a handle that looked less than this
# long ago therefore finds the next version where it expects it.
RELOOK_S = 600.0


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
        """``accepted`` is told what every version that is opened says about its format."""
        self.store = store
        self.physical_branch = migrator.site.ref
        self.migrator = migrator
        self._clock = clock
        self._accepted = accepted
        self._lock = threading.Lock()
        self._state: ManifestState | None = None
        self._looked_at = 0.0

    def current(self) -> ManifestState:
        """The newest state."""
        with self._lock:
            now = self._clock.monotonic()
            if self._state is None or now - self._looked_at > RELOOK_S:
                newest = self.store.open_newest(MANIFEST_PATH, self.physical_branch)
            else:
                known = self._state.ref
                ref = self.store.newest_from(known)
                if ref is known:
                    self._looked_at = now
                    return self._state
                newest = self.store.open(ref)
            self._state = self._load(newest)
            self._looked_at = now
            return self._state

    def _load(self, newest: PinnedTable) -> ManifestState:
        """A version that is new here; what is known of another format does not help with it."""
        stamp = self.migrator.accept(newest)
        self._accepted(stamp)
        previous = self._state
        if previous is not None and not previous.format == stamp.internal == INTERNAL_VERSION:
            previous = None
        return self.migrator.completed(load_state(newest, previous))

    def warm(self) -> ManifestState:
        """The last state seen, without asking whether it is the newest."""
        with self._lock:
            state = self._state
        return state if state is not None else self.current()

    def migrate(self) -> ManifestState:
        """Bring the branch to the current format; a look at what is known where it is."""
        deadline = self._clock.monotonic() + BUDGET_S
        attempt = 0
        while True:
            try:
                return self._migrated(self.warm())
            except (CommitRefused, AmbiguousOutcome) as failure:
                attempt += 1
                if attempt >= ATTEMPTS_MIN and self._clock.monotonic() > deadline:
                    raise _gave_up(failure) from failure
                back_off(attempt)

    def _migrated(self, state: ManifestState) -> ManifestState:
        """One attempt: what it did not finish, the next one does."""
        if state.format == INTERNAL_VERSION:
            return state
        self.migrator.migrate()
        return self.current()

    @cached_property
    def _publisher(self) -> Publisher:
        return Publisher(self.store, self.current, self._migrated, find_commit, self._clock)

    def publish(self, publication: Publication) -> Published:
        """Make a publication visible and remember the state it made."""
        with queue(self.store.location.uri, "publish", self.physical_branch).held():
            published = self._publisher.publish(publication, self.warm())
        with self._lock:
            if self._state is None or published.state.version > self._state.version:
                self._state = published.state
                self._looked_at = self._clock.monotonic()
        return published

    def publish_told(self, publication: Publication) -> Published:
        """Publish a write that is nothing but its publication, and tell its interrupted caller.

        Without a recovery record nobody else looks up whether it landed before the interrupt.
        """
        before = self.warm().version
        try:
            published = self.publish(publication)
            outcome.committed(_commit_id(publication))
            return published
        except OmnigraphError:
            raise
        except BaseException:
            self._tell_what_landed(publication, before)
            raise

    def _tell_what_landed(self, publication: Publication, before: int) -> None:
        try:
            now = self.current()
            landed = any(
                self.store.transaction(now.ref.at(version)).operation == publication.operation_id
                for version in range(before + 1, now.version + 1)
            )
        except BaseException:
            outcome.undecided(_commit_id(publication))
            return
        if landed:
            outcome.committed(_commit_id(publication))


def _commit_id(publication: Publication) -> str | None:
    return None if publication.commit is None else publication.commit.commit_id


def _gave_up(failure: OmnigraphError) -> Contention:
    return Contention(f"could not bring the branch to the current format: {failure.message}")
