"""The difference between two snapshots of a graph: inserted, updated and deleted entities.

Any two snapshots can be compared. The difference is net: changes that were undone in between do not
show. Types are ordered by type key and entities by id, so that a page can continue where the
previous one ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.repository import Repository
from omnigraph.errors import CursorRejected, InvalidInput, ResourceLimit
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model import arguments
from omnigraph.snapshots.entity_delta import (
    ChangedRows,
    Op,
    Side,
    State,
    TypeDelta,
    paired_types,
    touched_types,
    type_delta,
)
from omnigraph.snapshots.images import images
from omnigraph.snapshots.schema_changes import SchemaDifference, schema_changes

PAGE_CHANGES: Final = 1_000
PAGE_CHANGES_MAX: Final = 8_192
"""The largest page: client and server hold it in memory."""

_KINDS: Final = ("node", "edge")


@dataclass(frozen=True, slots=True)
class EntityChange:
    """The change of one entity, with its images before and after."""

    kind: str
    type_name: str
    type_id: str
    id: str
    op: Op
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    version: int | None = None

    @property
    def endpoints(self) -> dict[str, str] | None:
        """The endpoints of an edge, or those it had before it was deleted."""
        image = self.after or self.before or {}
        return image.get("endpoints")

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": self.kind,
            "type_name": self.type_name,
            "id": self.id,
            "op": str(self.op),
            "published_dataset_version": self.version,
            "endpoints": self.endpoints,
            "before": self.before,
            "after": self.after,
        }
        return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, slots=True)
class DiffFilter:
    """Selects changes. An empty set matches everything."""

    kinds: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for what, given, known in (
            ("kind", self.kinds, _KINDS),
            ("op", self.ops, tuple(Op)),
        ):
            for value in sorted(given - {str(item) for item in known}):
                raise InvalidInput(
                    f"{value!r} is not a {what}", remedy=f"Use one of {', '.join(known)}."
                )

    def wants_type(self, side: Side) -> bool:
        return (not self.kinds or side.owner.kind in self.kinds) and (
            not self.types or side.owner.name in self.types
        )

    def wants_op(self, op: Op) -> bool:
        return not self.ops or op in self.ops


@dataclass(frozen=True, slots=True)
class DiffStats:
    """Counts per type key and operation."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(sum(of_type.values()) for of_type in self.counts.values())

    def of(self, op: Op) -> int:
        return sum(of_type.get(op, 0) for of_type in self.counts.values())

    def to_json(self) -> dict[str, Any]:
        return {
            **{f"{op}s": self.of(op) for op in Op},
            "types": sorted({key.partition(":")[2] for key in self.counts}),
            "by_type": {key: dict(of_type) for key, of_type in self.counts.items()},
        }


@dataclass(frozen=True, slots=True)
class DiffPage:
    """A page of changes. ``next_page_token`` is None on the last page."""

    changes: list[EntityChange]
    next_page_token: str | None


@dataclass(frozen=True)
class Diff:
    """A lazy difference between two snapshots; iterating streams the changes."""

    repository: Repository
    old: State
    new: State
    filter: DiffFilter = DiffFilter()

    def __iter__(self) -> Iterator[EntityChange]:
        return self.changes()

    def __repr__(self) -> str:
        """One line, without reading anything."""
        old, new = (
            f"{state.snapshot.branch.name}@{state.snapshot.commit_id}"
            for state in (self.old, self.new)
        )
        return f"<Diff {old} → {new}>"

    @cached_property
    def schema(self) -> list[SchemaDifference]:
        """Types and properties that exist on one side only, or were renamed."""
        return schema_changes(self.old.schema, self.new.schema)

    @cached_property
    def stats(self) -> DiffStats:
        """Counts of changed entities by type and operation. Reads values, builds no images."""
        counts: dict[str, Counter[str]] = {}
        wants = self.filter.wants_op
        with self._checking_deletion():
            for delta in self.deltas():
                found = Counter(str(op) for rows in delta.changes() for op in rows.ops if wants(op))
                if found:
                    counts[delta.side.owner.key] = found
        return DiffStats(counts)

    def changes(self, after: tuple[str, str] | None = None) -> Iterator[EntityChange]:
        """Every change, or those after the entity with this type key and id."""
        if after is not None and len(arguments.texts("after", after)) != 2:
            raise InvalidInput("`after` must be a pair of type key and id")
        with self._checking_deletion():
            for delta in self.deltas():
                key = delta.side.owner.key
                if after is not None and key < after[0]:
                    continue
                after_id = after[1] if after is not None and key == after[0] else None
                for rows in delta.changes(after_id=after_id):
                    found = entity_changes(delta, rows)
                    yield from (c for c in found if self.filter.wants_op(c.op))

    def page(self, limit: int = PAGE_CHANGES, page_token: str | None = None) -> DiffPage:
        """A page of at most ``limit`` changes."""
        arguments.whole("limit", limit)
        arguments.optional_text("page_token", page_token)
        if limit < 1:
            raise InvalidInput(
                f"`limit` must be at least 1, not {limit}", remedy="Pass a limit of at least 1."
            )
        if limit > PAGE_CHANGES_MAX:
            raise ResourceLimit("commit_changes_page_changes", PAGE_CHANGES_MAX, limit)
        after = None if page_token is None else self._position(page_token)
        found: list[EntityChange] = []
        for change in self.changes(after):
            if len(found) == limit:
                last = found[-1]
                return DiffPage(found, self._token(f"{last.kind}:{last.type_name}", last.id))
            found.append(change)
        return DiffPage(found, None)

    def deltas(self) -> Iterator[TypeDelta]:
        """The deltas of all types that may differ and match the filter."""
        old, new = self.old.snapshot, self.new.snapshot
        for keys in touched_types(old, new, paired_types(old, new)):
            key, state = (keys[1], self.new) if keys[1] is not None else (keys[0], self.old)
            assert key is not None
            if self.filter.wants_type(state.side(self.repository, key)):
                delta = type_delta(self.repository, self.old, self.new, keys)
                if delta.pairs.num_rows:
                    yield delta

    def _checking_deletion(self) -> AbstractContextManager[None]:
        branches = (self.old.snapshot.branch, self.new.snapshot.branch)
        return deletion_checked(self.repository, *branches)

    @cached_property
    def _scope(self) -> str:
        """A digest of both snapshots and the filter, part of every page token."""
        chosen = [sorted(part) for part in (self.filter.kinds, self.filter.types, self.filter.ops)]
        ends = [
            (state.snapshot.branch.incarnation, state.snapshot.manifest_version)
            for state in (self.old, self.new)
        ]
        text = json.dumps([self.repository.graph_id, ends, chosen])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _token(self, key: str, id: str) -> str:
        return base64.urlsafe_b64encode(json.dumps([self._scope, key, id]).encode()).decode()

    def _position(self, token: str) -> tuple[str, str]:
        try:
            scope, key, id = json.loads(base64.urlsafe_b64decode(token.encode()))
        except ValueError as error:
            raise CursorRejected("the page token is damaged") from error
        if scope != self._scope or not isinstance(key, str) or not isinstance(id, str):
            raise CursorRejected("the page token belongs to another difference or filter")
        return key, id


def entity_changes(delta: TypeDelta, rows: ChangedRows) -> Iterator[EntityChange]:
    """Changed rows as entity changes with images."""
    befores = _images(delta.old, rows.before)
    afters = _images(delta.new, rows.after)
    owner, version = delta.side.owner, delta.side.pin.ref.version
    for id, op in zip(rows.ids, rows.ops, strict=True):
        before = None if op is Op.INSERT else next(befores)
        after = None if op is Op.DELETE else next(afters)
        yield EntityChange(owner.kind, owner.name, owner.type_id, id, op, before, after, version)


def _images(side: Side | None, rows: Any) -> Iterator[dict[str, Any]]:
    """Rows as images: properties, and the endpoints of edges."""
    if side is None or rows is None:
        return
    for row in images(side.owner, side.table, rows):
        yield image_of(side.owner, row)


def image_of(owner: NodeType | EdgeType, row: Mapping[str, Any]) -> dict[str, Any]:
    """One entity as an image: properties, and the endpoints of an edge."""
    ends = {shown: row[name] for name, shown in owner.endpoints.items() if name in row}
    properties = {n: value for n, value in row.items() if n not in owner.system_columns}
    return {"properties": properties, **({"endpoints": ends} if ends else {})}
