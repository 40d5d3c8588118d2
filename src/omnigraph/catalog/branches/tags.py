"""Tags: names for commits, kept as rows of main's manifest.

A tag never moves by itself. It keeps its commit readable: a branch whose own commit is tagged
cannot be deleted, and cleanup leaves what tagged commits refer to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.rows import Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import TagNotFound


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit. ``branch`` is the incarnation of the branch that holds the commit."""

    name: str
    commit_id: str
    branch: str
    manifest_version: int
    created_at_us: int
    actor: str | None = None
    message: str | None = None

    @property
    def object_id(self) -> str:
        return f"tag:{self.name}"

    def to_row(self) -> Row:
        data = {
            "commit_id": self.commit_id,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "created_at_us": self.created_at_us,
            "actor": self.actor,
            "message": self.message,
        }
        return Row(self.object_id, RowKind.TAG, data)

    @classmethod
    def from_row(cls, row: Row) -> Tag:
        return cls(row.object_id.partition(":")[2], **row.metadata)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "graph_manifest_version": self.manifest_version,
            "created_at": self.created_at_us,
            "actor_id": self.actor,
            "message": self.message,
        }


def all_tags(main_state: ManifestState) -> dict[str, Tag]:
    """Every tag by name, in name order."""
    found = [Tag.from_row(row) for row in main_state.rows(RowKind.TAG)]
    return {tag.name: tag for tag in sorted(found, key=lambda tag: tag.name)}


def find_tag(main_state: ManifestState, name: str) -> Tag | None:
    row = main_state.row(f"tag:{name}")
    return None if row is None else Tag.from_row(row)


def get_tag(main_state: ManifestState, name: str) -> Tag:
    """The tag of this name, or a typed error."""
    found = find_tag(main_state, name)
    if found is None:
        raise TagNotFound(f"tag {name!r} does not exist", details={"tag": name})
    return found
