"""A plan: what differs between the declared and the applied state, and what that needs.

A pure function of both, so that the plan that is shown is the plan that is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.cluster.desired import DeclaredResource, DesiredState
from omnigraph.cluster.ledger import Ledger

Operation = Literal["create", "update", "delete"]
Disposition = Literal["applied", "derived", "deferred", "blocked"]

ORDER: Final = {"provider": 0, "graph": 1, "schema": 2, "query": 3, "policy": 4}
"""Kinds in the order they are applied."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """One difference."""

    resource: str
    operation: Operation
    before: str | None
    after: str | None
    disposition: Disposition | None = None
    reason: str | None = None
    metadata_change: str | None = None
    migration: Mapping[str, Any] | None = None

    @property
    def kind(self) -> str:
        return self.resource.partition(".")[0]

    @property
    def graph_id(self) -> str | None:
        """The graph that the resource belongs to."""
        kind, _, name = self.resource.partition(".")
        return name.partition(".")[0] if kind in ("graph", "schema", "query") else None

    @property
    def needs_approval(self) -> bool:
        """Whether it loses data."""
        return self.kind == "graph" and self.operation == "delete"

    def to_json(self) -> dict[str, Any]:
        optional = {
            "before_digest": self.before,
            "after_digest": self.after,
            "disposition": self.disposition,
            "reason": self.reason,
            "metadata_change": self.metadata_change,
            "binding_change": True if self.metadata_change == "policy_bindings" else None,
            "migration": None if self.migration is None else dict(self.migration),
        }
        known = {key: value for key, value in optional.items() if value is not None}
        return {"resource": self.resource, "operation": self.operation, **known}


def plan_changes(desired: DesiredState, ledger: Ledger) -> list[ResourceChange]:
    """Every difference, in the order it is applied; deletions of graphs last."""
    found: list[ResourceChange] = []
    for address, resource in desired.resources.items():
        before = ledger.digest(address)
        if before is None:
            found.append(ResourceChange(address, "create", None, resource.digest))
        elif before != resource.digest:
            derived: Disposition | None = "derived" if resource.kind == "graph" else None
            change = ResourceChange(address, "update", before, resource.digest, derived)
            found.append(change)
        elif _bindings(ledger, address) != list(resource.applies_to):
            found.append(
                ResourceChange(address, "update", before, before, metadata_change="policy_bindings")
            )
    for address in ledger.resources:
        if address not in desired.resources:
            found.append(ResourceChange(address, "delete", ledger.digest(address), None))
    return sorted(found, key=_order)


def blast_radius(desired: DesiredState, changes: list[ResourceChange]) -> list[dict[str, Any]]:
    """For each changed resource, what depends on it."""
    found = []
    for change in changes:
        affected = sorted(
            {source for source, target in desired.dependencies if target == change.resource}
        )
        if affected:
            found.append({"resource": change.resource, "affected": affected})
    return found


def stored_entry(resource: DeclaredResource) -> dict[str, Any]:
    """What the ledger keeps of an applied resource."""
    entry: dict[str, Any] = {"digest": resource.digest, **resource.metadata}
    if resource.kind == "provider":
        entry = {"digest": resource.digest, "embedding_profile": dict(resource.metadata)}
    if resource.applies_to:
        entry["applies_to"] = list(resource.applies_to)
    return entry


def _bindings(ledger: Ledger, address: str) -> list[str]:
    return list(ledger.resources[address].get("applies_to", ()))


def _order(change: ResourceChange) -> tuple[int, int, str]:
    rank = ORDER[change.kind]
    if change.operation == "delete":
        return (1, -rank, change.resource)
    return (0, rank, change.resource)
