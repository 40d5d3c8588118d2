"""Migrates the manifest of one branch to the current format: each step first, its stamp last.

In the steady state the cost is a check of the stamp of a manifest that is open anyway. Reading an
older manifest changes nothing: its commits are read from where that format keeps them. Writing, or
opening for writing, applies the missing steps in order. A refused commit means that another process
migrates concurrently: the migrator reads the manifest again, and usually nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.catalog.format import (
    LINEAGE_VERSION,
    Stamp,
    check_stamp,
    require_stable_row_ids,
    stamp_of,
)
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations.legacy import Lineage, read_lineage, unstamped_id
from omnigraph.catalog.migrations.registry import steps_from
from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.catalog.original.reader import OriginalReader
from omnigraph.catalog.state import ManifestState, load_state
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging.metadata import stage_schema_metadata
from omnigraph.storage.lance.tables import PinnedTable, TableStore, operation_properties


class Migrator:
    """Checks, reads and migrates the format of one branch's manifest."""

    def __init__(
        self,
        tables: TableStore,
        branch: str,
        ref: str | None,
        *,
        graph_id: Callable[[], str],
        original: OriginalReader,
        lineage: Lineage | None = None,
    ) -> None:
        """``graph_id`` is called for branches only; main's manifest identifies the graph itself.

        ``lineage`` are the commits of a fresh fork, which has no separate datasets of commits.
        """
        self._tables = tables
        self._uri = tables.location.uri
        self._graph_id = graph_id
        self._lineage = lineage
        self._original = original
        self.target = MigrationTarget(tables, branch, ref, self.lineage_of)

    def accept(self, table: PinnedTable) -> Stamp:
        """The format stamp; raises if this program does not support it."""
        return check_stamp(table, self._uri)

    def load(
        self, table: PinnedTable, stamp: Stamp, previous: ManifestState | None
    ) -> ManifestState:
        """The state at an accepted version; ``previous`` is an older state of the same format."""
        if stamp.original:
            return self._original.load(table, self.target.branch)
        return self._completed(load_state(table, previous))

    def _completed(self, state: ManifestState) -> ManifestState:
        """An older state with the commits that its format stores elsewhere; a current one as is."""
        if state.format == INTERNAL_VERSION:
            return state
        for pin in state.pins.values():
            require_stable_row_ids(self._tables.open(pin.ref), self._uri)
        if state.format >= LINEAGE_VERSION or state.heads:
            return state
        return replace(state, lineage=self.lineage_of(state))

    def lineage_of(self, state: ManifestState) -> Lineage:
        """The commits of a manifest that holds none."""
        if self._lineage is not None:
            return self._lineage
        schema_hash, graph_id = state.only_schema, self._id_of(state)
        return read_lineage(self._tables, state.ref, self.target.branch, schema_hash, graph_id)

    def migrate(self) -> None:
        """Apply every missing step. After ``CommitRefused`` the caller repeats the call."""
        properties = operation_properties(new_ulid(), "migrate")
        stamp = self.accept(self.target.newest())
        for step in steps_from(stamp.internal):
            hit("migrate.before_step")
            step.apply(self.target, properties)
            hit("migrate.after_work")
            self._stamp(step.source + 1, properties)
            hit("migrate.after_stamp")

    def _stamp(self, version: int, properties: dict[str, str]) -> None:
        """Write the version stamp, unless another process wrote this one or a later one."""
        table = self.target.newest()
        found = self.accept(table)
        if found.internal >= version:
            return
        entries = stamp_of(version, self._id_of(load_state(table)))
        try:
            self._tables.commit_rebasing(stage_schema_metadata(table, entries, properties))
        except CommitRefused:
            if self.accept(self.target.newest()).internal < version:
                raise

    def _id_of(self, state: ManifestState) -> str:
        stamped = self.accept(state.table).graph_id
        if stamped is not None:
            return stamped
        return unstamped_id(state.pins.values()) if self.target.ref is None else self._graph_id()
