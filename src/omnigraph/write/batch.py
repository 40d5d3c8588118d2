"""A batch of entity changes made from Python: collected in memory, committed as one commit.

    with graph.write(message="new colleague") as w:
        ana = w.insert("Person", {"name": "ana"})
        w.insert_edge("Knows", ana, "bo", {"since": 2024})
        w.update("Person", "bo", {"age": 41})
        w.delete("Person", "cy")

Nothing is checked against the graph, and nothing is visible, before the block ends. When it ends
with an exception nothing happens at all. A batch that only inserts is prepared again when another
writer was faster; one with updates or deletes reports the conflict instead, because what it
decided was decided on what it had read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.commit.prepared import PreparedWrite, WriteInfo
from omnigraph.commit.transaction import WriteTransaction
from omnigraph.errors import (
    Conflict,
    EntityNotFound,
    InvalidInput,
    KeyConflict,
    PreconditionFailed,
)
from omnigraph.ids import new_ulid
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import Commit
from omnigraph.manifest.schemas import load_schema
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.schema import AcceptedSchema, EdgeType, NodeType, entity_id
from omnigraph.storage.staging import membership
from omnigraph.write.changes import Changes, Mode, Preparer

if TYPE_CHECKING:
    import pyarrow as pa

PREPARE_ATTEMPTS_MAX = 10
PREPARE_BACKOFF_S = 0.01

Row = dict[str, Any]


class Batch:
    """Collects changes; ``commit()`` makes them one commit (None when nothing changed)."""

    def __init__(
        self,
        repository: Repository,
        transaction: WriteTransaction,
        branch: str,
        info: WriteInfo,
        expected_head: str | None = None,
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._branch_name = branch
        self._info = info
        self._expected_head = expected_head
        self._transaction.enter(repository.branch(branch))
        self._schema = _schema(repository, self._snapshot())
        self._inserts: dict[str, dict[str, Row]] = {}
        self._updates: dict[str, dict[str, Row]] = {}
        self._deletes: dict[str, dict[str, None]] = {}

    # -- collecting --------------------------------------------------------------------------------

    def insert(self, type_name: str, values: Mapping[str, Any]) -> str:
        """Add a node; returns its id. A node whose key exists already is replaced."""
        node = self._node(type_name)
        row = _accept(node, values)
        derived = entity_id(node, row)
        row["id"] = new_ulid() if derived is None else derived
        self._inserts.setdefault(node.key, {})[row["id"]] = row
        return str(row["id"])

    def insert_edge(
        self, type_name: str, source: str, target: str, values: Mapping[str, Any] | None = None
    ) -> str:
        """Add an edge between two node ids; returns the edge's id."""
        edge = self._edge(type_name)
        row = {**_accept(edge, values or {}), "id": new_ulid(), "src": source, "dst": target}
        self._inserts.setdefault(edge.key, {})[row["id"]] = row
        return str(row["id"])

    def update(self, type_name: str, id: str, values: Mapping[str, Any]) -> None:
        """Change some properties of a node that exists."""
        node = self._node(type_name)
        touched = sorted(set(values) & set(node.key_properties))
        if touched:
            raise InvalidInput(
                f"{touched[0]} is part of the key of {type_name} and cannot change",
                remedy="Delete the node and insert it with its new key.",
            )
        changed = {name: _accept_value(node, name, value) for name, value in values.items()}
        self._updates.setdefault(node.key, {}).setdefault(id, {}).update(changed)

    def delete(self, type_name: str, id: str) -> None:
        """Remove a node, with every edge that touches it."""
        self._deletes.setdefault(self._node(type_name).key, {})[id] = None

    def delete_edge(self, type_name: str, id: str) -> None:
        """Remove an edge."""
        self._deletes.setdefault(self._edge(type_name).key, {})[id] = None

    # -- committing --------------------------------------------------------------------------------

    def commit(self) -> Commit | None:
        """Make the batch visible, all of it or nothing."""
        if not (self._inserts or self._updates or self._deletes):
            return None
        retry = not self._updates and not self._deletes
        return commit_with_retry(self._transaction, self._prepare, retry=retry)

    @property
    def touched(self) -> list[str]:
        """The type keys this batch changes."""
        return sorted({*self._inserts, *self._updates, *self._deletes})

    # -- inside ------------------------------------------------------------------------------------

    def _prepare(self) -> PreparedWrite:
        snapshot = self._snapshot()
        schema = _schema(self._repository, snapshot)
        if self._expected_head is not None and snapshot.commit_id != self._expected_head:
            raise PreconditionFailed(self._expected_head, snapshot.commit_id)
        rows: dict[str, pa.Table] = {}
        modes: dict[str, Mode] = {}
        for key in {*self._inserts, *self._updates}:
            inserted, updated = self._inserts.get(key, {}), self._updates.get(key, {})
            merged = {**self._patched(snapshot, schema, key, updated), **inserted}
            rows[key] = self._to_arrow(snapshot, key, list(merged.values()))
            keyed = bool(schema.type(key).key_properties)
            modes[key] = "upsert" if keyed or updated else "insert"
        changes = Changes(rows, modes, {k: _ids(list(v)) for k, v in self._deletes.items()})
        preparer = Preparer(self._repository, snapshot, schema)
        return preparer.prepare(changes, self._info, expected_head=self._expected_head)

    def _patched(
        self, snapshot: SnapshotPins, schema: AcceptedSchema, key: str, updates: dict[str, Row]
    ) -> dict[str, Row]:
        """The stored rows of updated entities, with the new values."""
        if not updates:
            return {}
        table = self._repository.tables.open(snapshot.pin(key).ref)
        ids = _ids(list(updates))
        found = table.scan(filter=membership("id", ids)).to_pylist()
        stored = {row["id"]: row for row in found if row["id"] in updates}
        missing = sorted(set(updates) - set(stored))
        if missing:
            raise EntityNotFound(
                f"there is no {schema.type(key).name} with id {missing[0]!r}",
                details={"type_key": key, "id": missing[0]},
            )
        return {id: {**stored[id], **change} for id, change in updates.items()}

    def _to_arrow(self, snapshot: SnapshotPins, key: str, rows: list[Row]) -> pa.Table:
        import pyarrow as pa

        schema = self._repository.tables.open(snapshot.pin(key).ref).schema
        return pa.Table.from_pylist(rows, schema=schema)

    def _snapshot(self) -> SnapshotPins:
        return self._repository.snapshot(self._repository.branch(self._branch_name))

    def _node(self, name: str) -> NodeType:
        found = self._schema.type(f"node:{name}")
        assert isinstance(found, NodeType)
        return found

    def _edge(self, name: str) -> EdgeType:
        found = self._schema.type(f"edge:{name}")
        assert isinstance(found, EdgeType)
        return found


def commit_with_retry(
    transaction: WriteTransaction, prepare: Callable[[], PreparedWrite], *, retry: bool
) -> Commit | None:
    """Prepare and commit; on a conflict prepare anew on the current state, if that is allowed."""
    for attempt in range(1, PREPARE_ATTEMPTS_MAX + 1):
        prepared = prepare()
        if not prepared.tables:
            return None
        try:
            return transaction.commit(prepared)
        except (KeyConflict, PreconditionFailed):
            raise
        except Conflict as conflict:
            if not retry or not conflict.retryable or attempt == PREPARE_ATTEMPTS_MAX:
                raise
            time.sleep(random.uniform(0, PREPARE_BACKOFF_S * 2**attempt))
    raise AssertionError("the last attempt returns or raises")


def _schema(repository: Repository, snapshot: SnapshotPins) -> AcceptedSchema:
    state = repository.manifest(snapshot.branch).warm()
    return load_schema(state, snapshot.schema_hash)


def _accept(entity_type: NodeType | EdgeType, values: Mapping[str, Any]) -> Row:
    """Declared properties as stored values: omitted ones are null, unknown ones an error."""
    row = {name: _accept_value(entity_type, name, value) for name, value in values.items()}
    for name, declared in entity_type.properties.items():
        if name not in row:
            if not declared.type.nullable:
                raise InvalidInput(f"{entity_type.name}.{name} is required")
            row[name] = None
    return row


def _accept_value(entity_type: NodeType | EdgeType, name: str, value: Any) -> Any:
    declared = entity_type.properties.get(name)
    if declared is None:
        raise InvalidInput(f"{entity_type.name} has no property {name}")
    return declared.type.accept(value)


def _ids(ids: list[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(ids, type=pa.string())
