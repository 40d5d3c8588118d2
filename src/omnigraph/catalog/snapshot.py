"""A snapshot: every type of a graph at one commit, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.rows import TablePin
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import TypeNotFound


@dataclass(frozen=True, slots=True)
class SnapshotPins:
    """The pins of one manifest version, its commit and its schema: all that a read needs."""

    branch: Branch
    manifest_version: int
    commit_id: str
    schema_hash: str
    pins: Mapping[str, TablePin]
    format: int = INTERNAL_VERSION  # the version that the branch is stored in

    @classmethod
    def of(cls, branch: Branch, state: ManifestState) -> SnapshotPins:
        head = state.head
        return cls(
            branch, state.version, head.commit_id, head.schema_hash, state.pins, state.format
        )

    def pin(self, key: str) -> TablePin:
        try:
            return self.pins[key]
        except KeyError:
            kind, _, name = key.partition(":")
            raise TypeNotFound(
                f"the {kind} type {name} does not exist at this snapshot",
                details={"entity_kind": kind, "type_name": name},
            ) from None

    def to_json(self) -> dict[str, Any]:
        """The wire form of a snapshot."""
        return {
            "graph_branch": self.branch.name,
            "graph_manifest_version": self.manifest_version,
            "internal_schema_version": self.format,
            "graph_commit_id": self.commit_id,
            "datasets": [
                {
                    "entity_kind": key.partition(":")[0],
                    "type_name": key.partition(":")[2],
                    "dataset_path": pin.ref.path,
                    "published_dataset_version": pin.ref.version,
                    "native_dataset_branch": pin.ref.branch,
                    "entity_count": pin.rows,
                }
                for key, pin in sorted(self.pins.items())
            ],
        }
