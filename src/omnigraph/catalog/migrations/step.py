"""The interface of a format migration step, and the manifest it is applied to.

A step migrates one branch from one internal version to the next. The migrator writes the version
stamp after it. ``apply`` must be idempotent (a crash may come before the stamp) and must converge
when two processes run it concurrently: of two conflicting commits one is refused, and the refused
process reads the manifest again and finds nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from omnigraph.catalog.migrations.legacy import Lineage
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.catalog.state import ManifestState
from omnigraph.storage.lance.tables import PinnedTable, TableStore


@dataclass(frozen=True, slots=True)
class MigrationTarget:
    """The manifest of one branch."""

    tables: TableStore
    branch: str
    ref: str | None  # the physical branch of the manifest; None for main
    lineage_of: Callable[[ManifestState], Lineage]  # the commits of a manifest that holds none

    def newest(self) -> PinnedTable:
        return self.tables.open_newest(MANIFEST_PATH, self.ref)


class MigrationStep(Protocol):
    """A migration from version ``source`` to the next one."""

    @property
    def source(self) -> int: ...

    @property
    def description(self) -> str:
        """One line for reports."""

    def preview(self, target: MigrationTarget) -> list[str]:
        """What ``apply`` would change on this branch now. Reads only."""

    def apply(self, target: MigrationTarget, properties: dict[str, str]) -> None:
        """Migrate. Raises ``CommitRefused`` on a conflict with another process."""
