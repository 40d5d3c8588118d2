"""The changes of one commit relative to its first parent, in a stable order.

Nodes come before edges; then changes are ordered by type identity and id. A commit that changed the
schema of a type with entities is refused: images under two schemas are not comparable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.errors import ChangeFeedGap, ChangesRefused, InvalidInput, ResourceLimit
from omnigraph.snapshots.commit_range import CommitTransition
from omnigraph.snapshots.diff import DiffFilter, EntityChange, entity_changes
from omnigraph.snapshots.entity_delta import State, paired_types, touched_types, type_delta
from omnigraph.snapshots.schema_changes import schema_changes
from omnigraph.storage.lance.errors import TableNotFound

PAGE_CHANGES: Final = 1_000
PAGE_CHANGES_MAX: Final = 8_192
PAGE_BYTES: Final = 4 * 1024 * 1024
PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The largest page, in bytes: client and server hold it in memory."""


class ChangePosition(NamedTuple):
    """The position of a change in its commit; sorts in the order of delivery."""

    kind: int
    """0 for nodes, 1 for edges."""
    type_id: str
    id: str

    @classmethod
    def of(cls, change: EntityChange) -> ChangePosition:
        return cls(int(change.kind == "edge"), change.type_id, change.id)


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """The changes of one commit, or a part of them, with their cause."""

    commit: Commit
    changes: list[EntityChange]

    def to_json(self) -> dict[str, Any]:
        return {
            "cause": cause_json(self.commit),
            "changes": [change_json(change) for change in self.changes],
        }


def cause_json(commit: Commit) -> dict[str, Any]:
    """The commit that caused changes, as JSON: branch, parents, actor and time."""
    body = {
        "graph_commit_id": commit.commit_id,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "authored_branch": commit.branch,
        "actor_id": commit.actor,
        "authored_at": commit.created_at_us,
    }
    return {name: value for name, value in body.items() if value is not None}


def change_json(change: EntityChange) -> dict[str, Any]:
    """The wire form of a change in a feed."""
    body: dict[str, Any] = {
        "kind": change.kind,
        "type": {"id": change.type_id, "name": change.type_name},
        "id": change.id,
        "op": str(change.op),
    }
    for name, image in (("before", change.before), ("after", change.after)):
        if image is not None:
            body[name] = image
    return body


@dataclass(frozen=True, slots=True)
class CommitReader:
    """Reads the changes of one commit."""

    repository: Repository
    step: CommitTransition
    filter: DiffFilter

    def changes(self, after: ChangePosition | None = None) -> Iterator[EntityChange]:
        """The changes that match the filter, after a position."""
        self._require_one_schema()
        try:
            yield from self._changes(after)
        except TableNotFound as error:
            raise ChangeFeedGap(self.step.commit.commit_id) from error

    def _changes(self, after: ChangePosition | None) -> Iterator[EntityChange]:
        for rank, type_id, keys, state in self._types():
            if after is not None and (rank, type_id) < after[:2]:
                continue
            key = keys[1] or keys[0]
            assert key is not None
            if not self.filter.wants_type(state.side(self.repository, key)):
                continue
            after_id = after.id if after is not None and (rank, type_id) == after[:2] else None
            delta = type_delta(self.repository, self.step.before, self.step.after, keys)
            for rows in delta.changes(after_id=after_id):
                found = entity_changes(delta, rows)
                yield from (change for change in found if self.filter.wants_op(change.op))

    def _types(self) -> list[tuple[int, str, tuple[str | None, str | None], State]]:
        """The types that may have changed, in the order of delivery."""
        before, after = self.step.before, self.step.after
        pairs = paired_types(before.snapshot, after.snapshot)
        found = []
        for keys in touched_types(before.snapshot, after.snapshot, pairs):
            key, state = (keys[1], after) if keys[1] is not None else (keys[0], before)
            assert key is not None
            pin = state.snapshot.pins[key]
            found.append((int(key.startswith("edge:")), pin.type_id, keys, state))
        return sorted(found, key=lambda item: item[:2])

    def _require_one_schema(self) -> None:
        """Refuse a commit that changed the schema of a type, or added or dropped a filled type."""
        before, after = self.step.before, self.step.after
        if before.snapshot.schema_hash == after.snapshot.schema_hash:
            return
        for change in schema_changes(before.schema, after.schema):
            state = after if change.what == "added" else before
            pin = state.snapshot.pins.get(f"{change.kind}:{change.type_name}")
            reshaped = change.property is not None
            filled = change.what in ("added", "removed") and pin is not None and pin.rows > 0
            if reshaped or filled:
                commit_id = self.step.commit.commit_id
                raise ChangesRefused("schema_boundary", commit_id, change.type_name)


@dataclass(slots=True)
class Packer:
    """Fills a page up to limits of changes and bytes."""

    changes_max: int = PAGE_CHANGES
    bytes_max: int = PAGE_BYTES
    changes: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        for what, resource, given, most in (
            ("changes", "commit_changes_page_changes", self.changes_max, PAGE_CHANGES_MAX),
            ("bytes", "commit_changes_page_bytes", self.bytes_max, PAGE_BYTES_MAX),
        ):
            if given < 1:
                raise InvalidInput(
                    f"a page must hold at least 1 of its {what}, not {given}",
                    remedy="Pass a limit of at least 1.",
                )
            if given > most:
                raise ResourceLimit(resource, most, given)

    def takes(self, change: EntityChange) -> bool:
        """Add a change if it fits; returns whether it did. An empty page accepts any change."""
        size = len(json.dumps(change_json(change), ensure_ascii=False).encode())
        full = self.changes >= self.changes_max or self.bytes + size > self.bytes_max
        if self.changes and full:
            return False
        self.changes += 1
        self.bytes += size
        return True
