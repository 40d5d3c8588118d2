"""The original's own migrations, 1 to 4, in its own layout: each step first, its stamp last.

Main first, then the branches. A step that was taken is recognised and not taken again; of two
processes that take one at once, Lance refuses one, which then finds it taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.catalog.format import INTERNAL_VERSION_KEY, internal_version
from omnigraph.catalog.migrations.primary_key import DeclarePrimaryKey
from omnigraph.catalog.migrations.run_refs import SweepRunRefs
from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.catalog.original.layout import ORIGINAL_VERSION
from omnigraph.catalog.original.rows import read_rows
from omnigraph.catalog.rows import Commit
from omnigraph.maintenance.original.layout_writer import commit_rows, stage_publish
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.metadata import stage_schema_metadata
from omnigraph.storage.lance.tables import PinnedTable, operation_properties

ReadCommits = Callable[[PinnedTable], Sequence[Commit]]
"""Reads the commits of the branch that is migrated, wherever its version keeps them."""


@dataclass(frozen=True, slots=True)
class MoveCommits:
    """Version 3 to 4: the commits of a branch become rows of its manifest."""

    read: ReadCommits
    source: int = 3
    description: str = "move the commits into the manifest"

    def preview(self, target: MigrationTarget) -> list[str]:
        table = target.newest()
        return [] if read_rows(table).commits else [f"{len(self.read(table))} commits"]

    def apply(self, target: MigrationTarget, properties: dict[str, str]) -> None:
        table = target.newest()
        if not read_rows(table).commits:
            rows = commit_rows(self.read(table), target.branch)
            target.tables.commit(stage_publish(table, rows, new_ulid()))


_SHARED: Final = (DeclarePrimaryKey(), SweepRunRefs())


def steps_of(
    version: int, read: ReadCommits
) -> tuple[DeclarePrimaryKey | SweepRunRefs | MoveCommits, ...]:
    """The steps that a manifest of this version needs."""
    return tuple(s for s in (*_SHARED, MoveCommits(read)) if s.source >= version)


def migrate(target: MigrationTarget, read: ReadCommits) -> None:
    """Take every missing step of one branch."""
    properties = operation_properties(new_ulid(), "migrate")
    for step in steps_of(internal_version(target.newest()), read):
        hit("migrate.before_step")
        step.apply(target, properties)
        hit("migrate.after_work")
        _stamp(target, step.source + 1, properties)
        hit("migrate.after_stamp")
    assert internal_version(target.newest()) == ORIGINAL_VERSION


def _stamp(target: MigrationTarget, version: int, properties: dict[str, str]) -> None:
    table = target.newest()
    if internal_version(table) < version:
        entries = {INTERNAL_VERSION_KEY: str(version)}
        target.tables.commit_rebasing(stage_schema_metadata(table, entries, properties))
