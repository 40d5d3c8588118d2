"""One branch's manifest, kept warm: the newest state, and the door to publish on it.

A warm handle on an unchanged graph answers without reading anything: it asks the store whether the
next version exists (one small request) and reuses what it has. A reader that stayed away for long
asks the store for the newest version instead, because cleanup may have removed the versions
between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from omnigraph.ids import SYSTEM_CLOCK, Clock
from omnigraph.manifest.history import find_commit
from omnigraph.manifest.publication import Publication
from omnigraph.manifest.publisher import Published, Publisher
from omnigraph.manifest.rows import MANIFEST_PATH
from omnigraph.manifest.state import ManifestState, load_state
from omnigraph.storage.tables import PinnedTable, TableStore

# Cleanup keeps every manifest version younger than an hour; a handle that looked less than this
# long ago therefore finds the next version where it expects it.
RELOOK_S = 600.0


class Manifest:
    """The manifest of one branch. Thread-safe; states are immutable."""

    def __init__(
        self,
        store: TableStore,
        physical_branch: str | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        accept: Callable[[PinnedTable], None] | None = None,
    ) -> None:
        self.store = store
        self.physical_branch = physical_branch
        self._clock = clock
        self._accept = accept
        self._lock = threading.Lock()
        self._state: ManifestState | None = None
        self._looked_at = 0.0
        self._publisher = Publisher(store, self.current, find_commit, clock)

    def current(self) -> ManifestState:
        """The newest state."""
        with self._lock:
            now = self._clock.monotonic()
            if self._state is None or now - self._looked_at > RELOOK_S:
                newest = self.store.open_newest(MANIFEST_PATH, self.physical_branch)
                if self._accept is not None:
                    self._accept(newest)
            else:
                ref = self.store.newest_from(self._state.ref)
                if ref == self._state.ref:
                    self._looked_at = now
                    return self._state
                newest = self.store.open(ref)
            self._state = load_state(newest, self._state)
            self._looked_at = now
            return self._state

    def warm(self) -> ManifestState:
        """The last state seen, without asking whether it is the newest."""
        with self._lock:
            state = self._state
        return state if state is not None else self.current()

    def publish(self, publication: Publication) -> Published:
        """Make a publication visible and remember the state it made."""
        published = self._publisher.publish(publication, self.warm())
        with self._lock:
            if self._state is None or published.state.version > self._state.version:
                self._state = published.state
                self._looked_at = self._clock.monotonic()
        return published
