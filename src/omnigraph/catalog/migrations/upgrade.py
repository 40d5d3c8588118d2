"""The upgrade of a whole graph to the current format: a dry run or the migration of every branch.

Main is migrated first, then the branches in order of their names. A failure on one branch leaves
the branches before it migrated.
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
class PlannedMigration:
    """One step of the format on one branch."""

    source: int
    description: str
    preview: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "from_version": self.source,
            "to_version": self.source + 1,
            "step": self.description,
            "touches": list(self.preview),
        }


@dataclass(frozen=True, slots=True)
class BranchUpgrade:
    """The format version of one branch, and the steps to the current one."""

    branch: str
    found: int
    steps: tuple[PlannedMigration, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "found_version": self.found,
            "steps": [step.to_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class ResolvedRecord:
    """An unfinished write of the original, and what its conversion does about it."""

    operation_id: str
    branch: str
    kind: str
    outcome: str

    def to_json(self) -> dict[str, Any]:
        return {
            "operation_id": self.operation_id,
            "branch": self.branch,
            "kind": self.kind,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    """The step from the layout of the original to ours (ADR 36)."""

    records: tuple[ResolvedRecord, ...]

    def to_json(self) -> dict[str, Any]:
        return {"records": [one.to_json() for one in self.records]}


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade did or, as a dry run, would do."""

    applied: bool
    current: int
    branches: tuple[BranchUpgrade, ...]
    conversion: Conversion | None = None
    """Of a graph of the Rust original; None for others."""

    @property
    def needed(self) -> bool:
        """Whether any branch had an older format or another layout."""
        return self.conversion is not None or any(one.steps for one in self.branches)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "applied": self.applied,
            "current_version": self.current,
            "branches": [one.to_json() for one in self.branches],
        }
        if self.conversion is not None:
            body["conversion"] = self.conversion.to_json()
        return body


def upgrade(repository: Repository, *, apply: bool = False) -> UpgradeReport:
    """The steps that every branch needs; with ``apply`` they are carried out."""
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
    target = manifest.migrator.target
    steps = [
        PlannedMigration(s.source, s.description, tuple(s.preview(target)))
        for s in steps_from(found)
    ]
    return BranchUpgrade(branch.name, found, tuple(steps))
