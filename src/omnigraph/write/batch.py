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

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.commit.prepared import PreparedWrite
from omnigraph.constraints import TypeImage
from omnigraph.errors import EntityNotFound, InvalidInput, SchemaChanged
from omnigraph.ids import new_ulid
from omnigraph.manifest.rows import Commit
from omnigraph.schema import EdgeType, NodeType, entity_id
from omnigraph.storage.blobs import complete_rows
from omnigraph.storage.locating import locate
from omnigraph.write.blobs import BlobPolicy
from omnigraph.write.changes import Preparer
from omnigraph.write.committing import Attempt, Committer, WriteOptions
from omnigraph.write.rows import Row, accept_row, accept_value, column_array, rows_to_arrow

if TYPE_CHECKING:
    import pyarrow as pa


class Batch:
    """Collects changes; ``commit()`` makes them one commit (None when nothing changed), which is
    the ``result`` from then on."""

    def __init__(self, committer: Committer, options: WriteOptions, blobs: BlobPolicy) -> None:
        self._committer = committer
        self._options = options
        self._blobs = blobs
        start = committer.begin(options.branch)
        self._schema = start.schema
        self._schema_hash = start.snapshot.schema_hash
        self._inserts: dict[str, dict[str, Row]] = {}
        self._updates: dict[str, dict[str, Row]] = {}
        self._deletes: dict[str, dict[str, None]] = {}
        self._calls = hashlib.sha256()
        self.result: Commit | None = None

    # -- collecting --------------------------------------------------------------------------------

    def insert(self, type_name: str, values: Mapping[str, Any]) -> str:
        """Add a node; returns its id. A node whose key exists already is replaced."""
        node = self._node(type_name)
        row = self._blobs.settle_row(node, accept_row(node, values))
        id = entity_id(node, row) or new_ulid()
        self._note("insert", type_name, row)
        self._inserts.setdefault(node.key, {})[id] = {**row, "id": id}
        return id

    def insert_edge(
        self, type_name: str, source: str, target: str, values: Mapping[str, Any] | None = None
    ) -> str:
        """Add an edge between two node ids; returns the edge's id."""
        edge = self._edge(type_name)
        row = self._blobs.settle_row(edge, accept_row(edge, values or {}))
        row |= {"src": source, "dst": target}
        id = new_ulid()
        self._note("insert", type_name, row)
        self._inserts.setdefault(edge.key, {})[id] = {**row, "id": id}
        return id

    def update(self, type_name: str, id: str, values: Mapping[str, Any]) -> None:
        """Change some properties of a node that exists."""
        node = self._node(type_name)
        touched = sorted(set(values) & set(node.key_properties))
        if touched:
            raise InvalidInput(
                f"{touched[0]} is part of the key of {type_name} and cannot change",
                remedy="Delete the node and insert it with its new key.",
            )
        changed = {name: accept_value(node, name, value) for name, value in values.items()}
        changed = self._blobs.settle_row(node, changed)
        self._note("update", type_name, {**changed, "id": id})
        self._updates.setdefault(node.key, {}).setdefault(id, {}).update(changed)

    def delete(self, type_name: str, id: str) -> None:
        """Remove a node, with every edge that touches it."""
        self._note("delete", type_name, {"id": id})
        self._deletes.setdefault(self._node(type_name).key, {})[id] = None

    def delete_edge(self, type_name: str, id: str) -> None:
        """Remove an edge."""
        self._note("delete", type_name, {"id": id})
        self._deletes.setdefault(self._edge(type_name).key, {})[id] = None

    # -- committing --------------------------------------------------------------------------------

    def commit(self) -> Commit | None:
        """Make the batch visible, all of it or nothing."""
        self.result = self._committer.run(
            self._options,
            self._prepare,
            retry=lambda: not self._updates and not self._deletes,
            digest=self._calls.hexdigest,
        ).commit
        return self.result

    @property
    def rows_written(self) -> dict[str, int]:
        """How many changes were collected per type key."""
        changes = (self._inserts, self._updates, self._deletes)
        return {key: sum(len(c.get(key, ())) for c in changes) for key in self.touched}

    @property
    def touched(self) -> list[str]:
        """The type keys this batch changes."""
        return sorted({*self._inserts, *self._updates, *self._deletes})

    # -- inside ------------------------------------------------------------------------------------

    def _prepare(self, attempt: Attempt) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
        if attempt.snapshot.schema_hash != self._schema_hash:
            raise SchemaChanged(self._schema_hash, attempt.snapshot.schema_hash)
        preparer = Preparer(attempt.repository, attempt.snapshot, attempt.schema)
        image = {}
        for key in self.touched:
            owner = attempt.schema.type(key)
            rows = self._rows(preparer, owner)
            removed = self._deletes.get(key)
            image[key] = TypeImage(
                rows,
                None if removed is None else _ids(removed),
                fresh=not owner.key_properties and key not in self._updates,
            )
        image = preparer.with_cascades(image)
        prepared = preparer.prepare(image, self._options.info, cascaded=True)
        return (prepared if prepared.tables else None), {}

    def _rows(self, preparer: Preparer, owner: NodeType | EdgeType) -> pa.Table | None:
        """Updated entities with their new values, then inserted ones; the later one counts."""
        import pyarrow as pa

        updates, inserts = self._updates.get(owner.key), self._inserts.get(owner.key)
        parts = []
        if updates:
            parts.append(_patched(preparer, owner, updates))
        if inserts:
            parts.append(rows_to_arrow(owner, list(inserts.values())))
        return pa.concat_tables(parts) if parts else None

    def _note(self, call: str, type_name: str, row: Row) -> None:
        """What identifies the request: the calls, without ids made here."""
        self._calls.update(repr((call, type_name, sorted(row.items()))).encode())

    def _node(self, name: str) -> NodeType:
        found = self._schema.type(f"node:{name}")
        assert isinstance(found, NodeType)
        return found

    def _edge(self, name: str) -> EdgeType:
        found = self._schema.type(f"edge:{name}")
        assert isinstance(found, EdgeType)
        return found


def _patched(
    preparer: Preparer, owner: NodeType | EdgeType, updates: Mapping[str, Row]
) -> pa.Table:
    """The stored rows of updated entities, with the new values."""
    ids = _ids(updates)
    table = preparer.stored.table(owner.key)
    stored = complete_rows(table, locate(table, ids).row_ids.tolist())
    found = stored["id"].to_pylist()
    missing = sorted(set(updates) - set(found))
    if missing:
        raise EntityNotFound(
            f"there is no {owner.name} with id {missing[0]!r}",
            details={"type_key": owner.key, "id": missing[0]},
        )
    columns = {}
    for column in owner.columns():
        values = stored[column.name]
        changed = [at for at, id in enumerate(found) if column.name in updates[id]]
        if changed:
            given = column_array(column.type, [updates[found[at]][column.name] for at in changed])
            values = replace_at(values, changed, given)
        columns[column.name] = values
    return _table(columns)


def replace_at(column: pa.ChunkedArray, positions: list[int], given: pa.Array) -> pa.Array:
    """A column with other values at some positions."""
    import numpy as np
    import pyarrow as pa

    order = np.arange(len(column))
    order[positions] = len(column) + np.arange(len(positions))
    both = pa.concat_arrays([column.combine_chunks().cast(given.type), given])
    return both.take(pa.array(order))


def _table(columns: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    return pa.table(dict(columns))


def _ids(ids: Mapping[str, Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array(list(ids), type=pa.string())
