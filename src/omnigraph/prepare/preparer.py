"""Prepares a write: from the image of a change to staged tables and their read set.

The preparer reads one snapshot, adds cascades (deleting a node deletes its edges), evaluates every
constraint, stages one table per touched type, and states the read set: until the commit, the node
types of written edges must not lose nodes, and the edge types of deleted nodes must not gain edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import FILE, LINE, Image, Report, TypeImage, evaluate
from omnigraph.constraints.edge_checks import ends, incident
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The row ids of the entities of a change, for writers that have looked them up.

    ``written`` is parallel to the rows of the change, null for a new entity. ``removed_ids`` are
    the entity ids of the removed rows, where the writer has them.
    """

    written: pa.Array
    removed: pa.Array
    removed_ids: pa.Array | None = None


class Preparer:
    """Prepares changes against one snapshot."""

    def __init__(
        self, repository: Repository, snapshot: SnapshotPins, schema: AcceptedSchema
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._schema = schema
        self._operation_id = new_ulid()
        self.stored = StoredSnapshot(repository, snapshot)

    def with_cascades(self, image: Image) -> dict[str, TypeImage]:
        """The image, in which the edges of every removed node are removed, too."""
        gone: dict[str, list[pa.Array]] = {}
        for key, change in image.items():
            if change.removed is None or not len(change.removed):
                continue
            for edge, column in incident(self._schema, key):
                if self.stored.count(edge.key):
                    found = self.stored.matching(edge.key, column, change.removed, ["id"])
                    gone.setdefault(edge.key, []).append(found["id"].combine_chunks())
        result = dict(image)
        for key, parts in gone.items():
            before = result.get(key, TypeImage())
            if before.removed is not None:
                parts.append(before.removed)
            result[key] = replace(before, removed=pa.concat_arrays(parts).unique())
        return result

    def prepare(
        self,
        image: Image,
        info: WriteInfo,
        *,
        report: Report | None = None,
        cascaded: bool = False,
        expected_head: str | None = None,
    ) -> PreparedWrite:
        """Check and stage an image and collect its requirements. Nothing becomes visible."""
        report = Report() if report is None else report
        self.check(image, report, cascaded=cascaded)
        report.raise_any()
        return self.stage(image, info, expected_head=expected_head)

    def check(
        self,
        image: Image,
        report: Report,
        *,
        cascaded: bool = False,
        rows_checked: bool = False,
        ids_known: bool = False,
    ) -> None:
        """Evaluate every constraint over the image."""
        evaluate(
            self._schema,
            image,
            self.stored,
            report,
            cascaded=cascaded,
            rows_checked=rows_checked,
            ids_known=ids_known,
        )

    def stage(
        self,
        image: Image,
        info: WriteInfo,
        *,
        known: Mapping[str, KnownRows] | None = None,
        expected_head: str | None = None,
    ) -> PreparedWrite:
        """Stage an image that was checked, and collect its requirements."""
        properties = self.properties(info)
        known = known or {}
        tables = [self._stage(key, image[key], properties, known.get(key)) for key in sorted(image)]
        staged = [table for table in tables if table is not None]
        return self.staged(image, info, staged, expected_head=expected_head)

    def properties(self, info: WriteInfo) -> dict[str, str]:
        """The properties of the Lance transactions of this write."""
        return operation_properties(self._operation_id, info.kind)

    def staged(
        self,
        image: Image,
        info: WriteInfo,
        tables: Iterable[PreparedTable],
        *,
        expected_head: str | None = None,
    ) -> PreparedWrite:
        """The prepared write of an image whose tables were staged, in process or on executors."""
        return PreparedWrite(
            self._operation_id,
            self._snapshot,
            info,
            tuple(tables),
            nodes_that_must_stay(self._schema, self._snapshot, _writes_rows(image)),
            edges_that_must_not_appear(self._schema, self._snapshot, _loses_rows(image)),
            expected_head=expected_head,
        )

    def _stage(
        self,
        key: str,
        change: TypeImage,
        properties: Mapping[str, str],
        known: KnownRows | None,
    ) -> PreparedTable | None:
        rows = None if change.final is None else _without_places(change.final)
        if not change.replaces_all and not (rows is not None and rows.num_rows):
            rows = None
        if rows is None and (change.removed is None or not len(change.removed)):
            return None
        pin, table = self.pin(key), self.writable(key)
        if known is not None:
            staged = staging.stage_by_row_ids(
                table,
                rows,
                known.written,
                known.removed,
                properties,
                type_key=key,
                removed_ids=known.removed_ids,
            )
        else:
            staged = _staged(table, key, change, rows, properties)
        return PreparedTable(pin, staged) if has_effect(staged) else None

    def pin(self, key: str) -> TablePin:
        return self._snapshot.pin(key)

    def writable(self, key: str) -> PinnedTable:
        """The table that rows of a type are staged on."""
        return writable(self._repository, self.pin(key), self._snapshot.branch)


def writable(repository: Repository, pin: TablePin, branch: Branch | None) -> PinnedTable:
    """The table to stage on: the branch's own, or a new fork before its first write.

    ``branch`` is None for a branch that is created later and owns no table yet.
    """
    tables = repository.tables
    if branch is not None and pin.owner == branch.incarnation:
        return tables.open(pin.ref)
    return tables.open(tables.fork(pin.ref, new_ulid()))


def nodes_that_must_stay(
    schema: AcceptedSchema, snapshot: SnapshotPins, written: Iterable[str]
) -> dict[str, int]:
    """The delete epochs, in this snapshot, of the node types that written edges point to."""
    edges = [owner for owner in map(schema.type, written) if isinstance(owner, EdgeType)]
    keys = {node_key for edge in edges for _, node_key in ends(edge)}
    return {key: snapshot.pin(key).delete_epoch for key in sorted(keys)}


def edges_that_must_not_appear(
    schema: AcceptedSchema, snapshot: SnapshotPins, losing: Iterable[str]
) -> dict[str, int]:
    """The insert epochs of the edge types that may point to a removed node."""
    keys = {
        edge.key
        for key in losing
        if isinstance(schema.type(key), NodeType)
        for edge, _ in incident(schema, key)
    }
    return {key: snapshot.pin(key).insert_epoch for key in sorted(keys)}


def _writes_rows(image: Image) -> list[str]:
    return [k for k, change in image.items() if change.rows is not None and change.rows.num_rows]


def _loses_rows(image: Image) -> list[str]:
    return [k for k, change in image.items() if change.replaces_all or change.removed is not None]


def _staged(
    table: PinnedTable,
    key: str,
    change: TypeImage,
    rows: pa.Table | None,
    properties: Mapping[str, str],
) -> StagedWrite:
    if rows is None:
        assert change.removed is not None
        return staging.stage_delete(table, change.removed, properties)
    if change.replaces_all:
        return staging.stage_overwrite(table, rows, properties, type_key=key)
    if change.removed is not None:
        return staging.stage_change(table, rows, change.removed, properties, type_key=key)
    if change.fresh or change.must_be_new:
        return staging.stage_insert(table, rows, properties, type_key=key, known_new=True)
    return staging.stage_upsert(table, rows, properties, type_key=key)


def _without_places(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name for name in (FILE, LINE) if name in rows.column_names])


def has_effect(staged: StagedWrite) -> bool:
    return bool(staged.rows_inserted or staged.rows_updated or staged.rows_deleted)
