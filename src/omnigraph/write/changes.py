"""Preparing a write: from the image of a change to staged tables and what they rely on.

The preparer reads one snapshot, resolves what follows from the change (a deleted node takes its
edges along), evaluates every constraint, stages one table per touched type, and states the read
set: endpoint types must not lose nodes, and edge types must not gain edges, before it lands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.commit.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.constraints import FILE, LINE, Image, Report, TypeImage, evaluate
from omnigraph.constraints.edges import ends, incident
from omnigraph.ids import new_ulid
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import TablePin
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.storage import staging
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY, PinnedTable, StagedWrite
from omnigraph.write.stored import StoredSnapshot

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Where the entities of a change are stored, for writers that know: as row ids.

    ``written`` is parallel to the rows of the change, null for an entity that is new.
    """

    written: pa.Array
    removed: pa.Array


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
        """The image with, for every removed node, the edges that touch it removed too."""
        import pyarrow as pa

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
        """Check and stage everything and collect the requirements. Nothing becomes visible."""
        report = Report() if report is None else report
        self.check(image, report, cascaded=cascaded)
        report.raise_any()
        return self.stage(image, info, expected_head=expected_head)

    def check(self, image: Image, report: Report, *, cascaded: bool = False) -> None:
        """Evaluate every constraint over the image."""
        evaluate(self._schema, image, self.stored, report, cascaded=cascaded)

    def stage(
        self,
        image: Image,
        info: WriteInfo,
        *,
        known: Mapping[str, KnownRows] | None = None,
        expected_head: str | None = None,
    ) -> PreparedWrite:
        """Stage an image that was checked, and collect the requirements."""
        properties = {OPERATION_PROPERTY: self._operation_id, KIND_PROPERTY: info.kind}
        known = known or {}
        tables = [self._stage(key, image[key], properties, known.get(key)) for key in sorted(image)]
        return PreparedWrite(
            self._operation_id,
            self._snapshot,
            info,
            tuple(table for table in tables if table is not None),
            self._nodes_that_must_stay(image),
            self._edges_that_must_not_appear(image),
            expected_head=expected_head,
        )

    # -- the read set ------------------------------------------------------------------------------

    def _nodes_that_must_stay(self, image: Image) -> dict[str, int]:
        """Deletions of the endpoint types of written edges, as counted when they were checked."""
        relied_on: dict[str, int] = {}
        for key, change in image.items():
            edge = self._schema.type(key)
            if isinstance(edge, EdgeType) and change.rows is not None and change.rows.num_rows:
                for _, node_key in ends(edge):
                    relied_on[node_key] = self._pin(node_key).delete_epoch
        return relied_on

    def _edges_that_must_not_appear(self, image: Image) -> dict[str, int]:
        """Insertions into edge types that could point to a node that goes away."""
        keys = {
            edge.key
            for key, change in image.items()
            if isinstance(self._schema.type(key), NodeType)
            and (change.replaces_all or change.removed is not None)
            for edge, _ in incident(self._schema, key)
        }
        return {key: self._pin(key).insert_epoch for key in sorted(keys)}

    # -- staging -----------------------------------------------------------------------------------

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
        pin = self._pin(key)
        table = self._writable(pin)
        if known is not None:
            staged = staging.stage_known(
                table, rows, known.written, known.removed, properties, type_key=key
            )
        else:
            staged = _staged(table, key, change, rows, properties)
        return PreparedTable(pin, staged) if _has_effect(staged) else None

    def _writable(self, pin: TablePin) -> PinnedTable:
        """The table to stage on: the branch's own, forked on its first write."""
        tables, branch = self._repository.tables, self._snapshot.branch
        if pin.owner == branch.incarnation:
            return tables.open(pin.ref)
        return tables.open(tables.fork(pin.ref, new_ulid()))

    def _pin(self, key: str) -> TablePin:
        return self._snapshot.pin(key)


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


def _has_effect(staged: StagedWrite) -> bool:
    return bool(staged.rows_inserted or staged.rows_updated or staged.rows_deleted)
