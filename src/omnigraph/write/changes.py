"""Preparing a write: from rows and ids per type to staged tables and what they rely on.

The preparer reads one snapshot, resolves what follows from the change (a deleted node takes its
edges along), checks that every edge has both ends, stages one table per touched type, and states
the read set: endpoint types must not lose nodes, and edge types must not gain edges, before it
lands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from omnigraph.commit.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.errors import InvalidInput
from omnigraph.ids import new_ulid
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import TablePin
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.schema import AcceptedSchema, EdgeType
from omnigraph.storage import staging
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY, PinnedTable, StagedWrite

if TYPE_CHECKING:
    import pyarrow as pa

Mode = Literal["insert", "upsert", "update"]
MISSING_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Changes:
    """What to write: rows per type with how they are meant, and ids to delete per type."""

    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    modes: Mapping[str, Mode] = field(default_factory=dict)
    deletes: Mapping[str, pa.Array] = field(default_factory=dict)


class Preparer:
    """Prepares changes against one snapshot."""

    def __init__(
        self, repository: Repository, snapshot: SnapshotPins, schema: AcceptedSchema
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._schema = schema
        self._operation_id = new_ulid()

    def prepare(
        self, changes: Changes, info: WriteInfo, *, expected_head: str | None = None
    ) -> PreparedWrite:
        """Stage everything and collect the requirements. Nothing becomes visible."""
        deletes = self._with_cascades(changes.deletes)
        delete_epochs = self._check_endpoints(changes.rows, deletes)
        insert_epochs = self._edges_that_must_not_appear(changes.deletes)
        properties = {OPERATION_PROPERTY: self._operation_id, KIND_PROPERTY: info.kind}
        tables = [
            self._stage(key, changes, deletes.get(key), properties)
            for key in sorted({*changes.rows, *deletes})
        ]
        return PreparedWrite(
            self._operation_id,
            self._snapshot,
            info,
            tuple(table for table in tables if table is not None),
            delete_epochs,
            insert_epochs,
            expected_head,
        )

    # -- what follows from a change ----------------------------------------------------------------

    def _with_cascades(self, deletes: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Add to deleted nodes every edge that touches them."""
        import pyarrow as pa

        found: dict[str, list[pa.Array]] = {key: [ids] for key, ids in deletes.items()}
        for key, ids in deletes.items():
            for edge, column in self._ends_at(key):
                table = self._table(edge.key)
                if table.rows and len(ids):
                    touching = _where_in(table, column, ids)
                    found.setdefault(edge.key, []).append(touching)
        return {key: pa.concat_arrays(parts).unique() for key, parts in found.items()}

    def _ends_at(self, key: str) -> list[tuple[EdgeType, str]]:
        """The edge types, with the column, whose ends are nodes of this type."""
        kind, _, name = key.partition(":")
        if kind != "node":
            return []
        ends = [(e, "src") for e in self._schema.edges.values() if e.source == name]
        return ends + [(e, "dst") for e in self._schema.edges.values() if e.target == name]

    def _edges_that_must_not_appear(self, deletes: Mapping[str, pa.Array]) -> dict[str, int]:
        keys = {edge.key for key in deletes for edge, _ in self._ends_at(key)}
        return {key: self._pin(key).insert_epoch for key in sorted(keys)}

    def _check_endpoints(
        self, rows: Mapping[str, pa.Table], deletes: Mapping[str, pa.Array]
    ) -> dict[str, int]:
        """Every written edge has both ends; returns the epochs that keep it so."""
        relied_on: dict[str, int] = {}
        for key, table in rows.items():
            edge = self._schema.type(key)
            if not isinstance(edge, EdgeType):
                continue
            for column, end in (("src", edge.source), ("dst", edge.target)):
                end_key = f"node:{end}"
                self._require_nodes(edge, column, end_key, table[column], rows, deletes)
                relied_on[end_key] = self._pin(end_key).delete_epoch
        return relied_on

    def _require_nodes(
        self,
        edge: EdgeType,
        column: str,
        node_key: str,
        ids: pa.ChunkedArray,
        rows: Mapping[str, pa.Table],
        deletes: Mapping[str, pa.Array],
    ) -> None:
        import pyarrow.compute as pc

        wanted = ids.combine_chunks().unique()
        if node_key in rows:
            own = rows[node_key]["id"].combine_chunks()
            wanted = wanted.filter(pc.invert(pc.is_in(wanted, value_set=own)))
        stored = staging.locate(self._table(node_key), wanted).ids.combine_chunks()
        if node_key in deletes:
            stored = stored.filter(pc.invert(pc.is_in(stored, value_set=deletes[node_key])))
        missing = wanted.filter(pc.invert(pc.is_in(wanted, value_set=stored)))
        if len(missing):
            shown = ", ".join(repr(i) for i in missing[:MISSING_SHOWN_MAX].to_pylist())
            name = node_key.partition(":")[2]
            raise InvalidInput(
                f"edge type {edge.name}: {column} {shown} not found in {name}"
                + (f" (and {len(missing) - MISSING_SHOWN_MAX} more)" if len(missing) > 5 else ""),
                remedy=f"Insert the missing {name} nodes first, or in the same write.",
                details={"type_name": edge.name, "missing": len(missing)},
            )

    # -- staging -----------------------------------------------------------------------------------

    def _stage(
        self,
        key: str,
        changes: Changes,
        deleted: pa.Array | None,
        properties: dict[str, str],
    ) -> PreparedTable | None:
        pin, rows = self._pin(key), changes.rows.get(key)
        table = self._writable(pin)
        if rows is None:
            staged = staging.stage_delete(table, deleted, properties)
        elif deleted is not None:
            staged = staging.stage_change(table, rows, deleted, properties, type_key=key)
        else:
            stage = _STAGERS[changes.modes.get(key, "insert")]
            staged = stage(table, rows, properties, type_key=key)
        return PreparedTable(pin, staged) if _has_effect(staged) else None

    def _writable(self, pin: TablePin) -> PinnedTable:
        """The table to stage on: the branch's own, forked on its first write."""
        tables, branch = self._repository.tables, self._snapshot.branch
        if pin.owner == branch.incarnation:
            return tables.open(pin.ref)
        return tables.open(tables.fork(pin.ref, new_ulid()))

    def _table(self, key: str) -> PinnedTable:
        return self._repository.tables.open(self._pin(key).ref)

    def _pin(self, key: str) -> TablePin:
        return self._snapshot.pin(key)


_STAGERS = {
    "insert": staging.stage_insert,
    "upsert": staging.stage_upsert,
    "update": staging.stage_update,
}


def _has_effect(staged: StagedWrite) -> bool:
    return bool(staged.rows_inserted or staged.rows_updated or staged.rows_deleted)


def _where_in(table: PinnedTable, column: str, ids: pa.Array) -> pa.Array:
    """The ids of rows whose ``column`` is one of these ids."""
    import pyarrow.compute as pc

    condition = staging.membership(column, ids)
    found = table.scan(["id", column], condition)
    if condition is None:
        found = found.filter(pc.is_in(found[column], value_set=ids))
    return found["id"].combine_chunks()
