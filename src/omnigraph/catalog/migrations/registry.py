"""All migration steps of the format, oldest first.

A new version is one module with one step, one line here, and one higher ``INTERNAL_VERSION``. An
old version is dropped by raising ``INTERNAL_VERSION_FLOOR`` and deleting its step; a test requires
both.
"""

from __future__ import annotations

from typing import Final

from omnigraph.catalog.migrations.lineage import MoveLineage
from omnigraph.catalog.migrations.primary_key import DeclarePrimaryKey
from omnigraph.catalog.migrations.run_refs import SweepRunRefs
from omnigraph.catalog.migrations.step import MigrationStep

STEPS: Final[tuple[MigrationStep, ...]] = (DeclarePrimaryKey(), SweepRunRefs(), MoveLineage())


def steps_from(version: int) -> tuple[MigrationStep, ...]:
    """The steps that a manifest of this version needs."""
    return tuple(step for step in STEPS if step.source >= version)
