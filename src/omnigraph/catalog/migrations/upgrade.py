"""The upgrade of a whole graph: what it would do on every branch, and doing it.

Main comes first, as it does when a graph is opened for writing; branches follow in the order of
their names. What one branch has taken it keeps, whatever happens to the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations.registry import steps_from
from omnigraph.catalog.repository import Repository


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of the format on one branch."""

    source: int
    says: str
    touches: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "from_version": self.source,
            "to_version": self.source + 1,
            "step": self.says,
            "touches": list(self.touches),
        }


@dataclass(frozen=True, slots=True)
class BranchUpgrade:
    """What one branch has, and what is missing to the current format."""

    branch: str
    found: int
    steps: tuple[PlannedStep, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "found_version": self.found,
            "steps": [step.to_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade did, or would do."""

    applied: bool
    current: int
    branches: tuple[BranchUpgrade, ...]

    @property
    def needed(self) -> bool:
        """Whether any branch had an older format."""
        return any(one.steps for one in self.branches)

    def to_json(self) -> dict[str, Any]:
        return {
            "applied": self.applied,
            "current_version": self.current,
            "branches": [one.to_json() for one in self.branches],
        }


def upgrade(repository: Repository, *, apply: bool = False) -> UpgradeReport:
    """Say what every branch needs; with ``apply`` take the steps, too."""
    found = tuple(_planned(repository, branch) for branch in _branches(repository))
    if apply:
        for branch in _branches(repository):
            repository.manifest(branch).migrate()
    return UpgradeReport(apply, INTERNAL_VERSION, found)


def _branches(repository: Repository) -> Iterator[Branch]:
    branches = all_branches(repository.main.current()).values()
    return iter(sorted(branches, key=lambda branch: (branch.ref is not None, branch.name)))


def _planned(repository: Repository, branch: Branch) -> BranchUpgrade:
    manifest = repository.manifest(branch)
    found = manifest.current().format
    site = manifest.migrator.site
    steps = [PlannedStep(s.source, s.says, tuple(s.touches(site))) for s in steps_from(found)]
    return BranchUpgrade(branch.name, found, tuple(steps))
