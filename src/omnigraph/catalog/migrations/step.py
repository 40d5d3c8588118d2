"""What a step of the format's history is, and what it works on.

A step leads from one internal version to the next, on one branch. It does its work and nothing
else: the stamp is written after it, by whoever runs the steps. The work must be idempotent (a crash
may come before the stamp) and must converge when two processes do it at once: of two commits that
exclude each other one is refused, and the refused one looks again and finds nothing left to do.
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
class Site:
    """One branch's manifest, as a step finds it."""

    tables: TableStore
    branch: str
    ref: str | None  # the physical branch of the manifest; None for main
    lineage_of: Callable[[ManifestState], Lineage]  # the commits of a manifest that holds none

    def newest(self) -> PinnedTable:
        return self.tables.open_newest(MANIFEST_PATH, self.ref)


class Step(Protocol):
    """From version ``source`` to the next one."""

    @property
    def source(self) -> int: ...

    @property
    def says(self) -> str:
        """What it does, for people."""

    def touches(self, site: Site) -> list[str]:
        """What it would change on this branch now. Reads only."""

    def work(self, site: Site, properties: dict[str, str]) -> None:
        """Change it. Raises ``CommitRefused`` when another process was faster."""
