"""The merge target, migrated to the merged schema.

Where the source changed the schema, the tables of the target are forked and get the same column
changes, new types get tables, and the merge is prepared on these unpublished tables. The merge's
commit publishes them. Where only the target changed its schema, nothing has to be migrated: rows of
the source are read in the target's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.create import create_table
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row, TablePin
from omnigraph.catalog.schemas import schema_id, schema_row
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Image, Report, TypeImage, evaluate
from omnigraph.errors import SchemasDiffer
from omnigraph.lang.schema import AcceptedSchema, tightened
from omnigraph.lang.schema.change.merge import merge_schemas
from omnigraph.merge.conflicts import VIOLATIONS_MAX, MergeConflict
from omnigraph.merge.resolutions import Dropped
from omnigraph.merge.three_way import ConflictKind
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.entity_rows import column_array
from omnigraph.prepare.reshape import EntityType, column_changes
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.snapshots.entity_delta import Op, Side, State, TypeDelta, type_delta
from omnigraph.snapshots.equality import comparable, same_values
from omnigraph.snapshots.schema_changes import schema_changes
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.staging.columns import (
    commit_unpublished,
    fill_in_process,
    stage_columns,
)
from omnigraph.storage.lance.tables import ROW_ID, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite

RELATED_MAX: Final = 100
"""The number of entities that a conflict about a dropped property lists."""


def merged_schema(states: Mapping[str, State]) -> AcceptedSchema:
    """The merged schema of source and target; raises where both changed it differently."""
    base, source, target = (states[name].schema for name in ("base", "source", "target"))
    if source.digest in (base.digest, target.digest):
        return target
    if target.digest == base.digest:
        return source
    merged, reasons = merge_schemas(base, source, target)
    if merged is None:
        raise SchemasDiffer(
            f"both sides changed the schema: {reasons[0]}",
            remedy="Apply a schema with the changes of both to one side, then merge.",
            details={
                "conflicts": reasons,
                **{
                    side: [change.to_json() for change in schema_changes(base, states[side].schema)]
                    for side in ("source", "target")
                },
            },
        )
    return merged


def dropped_and_changed(
    repository: Repository,
    states: Mapping[str, State],
    merged: AcceptedSchema,
    accepted: Dropped = frozenset(),
) -> list[MergeConflict]:
    """Conflicts about types and properties that one side dropped and the other changed.

    ``accepted`` drops are no conflicts.
    """
    kept = {item.incarnation: item for item in merged.types()}
    olds = {item.incarnation: item for item in states["base"].schema.types()}
    found = []
    for name in ("source", "target"):
        for owner in states[name].schema.types():
            was, after = olds.get(owner.incarnation), kept.get(owner.incarnation)
            if was is None or (owner.key, None) in accepted:
                continue
            lost = {} if after is None else _lost(was, owner, after)
            if after is not None and not lost:
                continue
            delta = type_delta(repository, states["base"], states[name], (was.key, owner.key))
            if after is None:
                if any(rows.ids for rows in delta.changes()):
                    found.append(_dropped_type(owner))
                continue
            for item, old in lost.items():
                ids = _changed_ids(delta, old, item)
                if ids and (after.key, item) not in accepted:
                    found.append(_dropped_property(after, item, ids))
    return found


def _lost(was: EntityType, side: EntityType, after: EntityType) -> dict[str, str]:
    """The properties of a side that the merge drops, with their names in the base.

    Properties from which a new one is computed do not count as lost.
    """
    living = {item.property_id for item in after.properties.values()}
    olds = {item.property_id: item.name for item in was.properties.values()}
    known = {item.property_id for item in side.properties.values()}
    newer = [item for item in after.properties.values() if item.property_id not in known]
    carried = set().union(*(PropertyBackfill(item, after, side).reads() for item in newer))
    return {
        item.name: olds[item.property_id]
        for item in side.properties.values()
        if item.property_id in olds and item.property_id not in living and item.name not in carried
    }


def _changed_ids(delta: TypeDelta, old: str, new: str) -> list[str]:
    """The ids of entities whose value of a property was changed, or that were inserted with one.

    An inserted default does not count.
    """
    assert delta.old is not None
    assert delta.new is not None
    declared = delta.new.owner.properties[new]
    found: list[str] = []
    for rows in delta.changes():
        if rows.after is None:
            continue
        ops = np.array([str(op) for op in rows.ops])
        ids = np.array(rows.ids, dtype=object)[ops != Op.DELETE]
        after = _column(delta.new, rows.after, new)
        changed = np.asarray(after.is_valid())
        if declared.default is not None:
            default = column_array(declared.type, [declared.default_stored])
            changed = ~same_values(after, default.take(np.zeros(len(after), np.int64))) & changed
        updated = ops[ops != Op.DELETE] == Op.UPDATE
        if updated.any() and rows.before is not None:
            before = _column(delta.old, rows.before, old)
            before = before.filter(pa.array(ops[ops != Op.INSERT] == Op.UPDATE))
            changed = changed.copy()
            changed[updated] = ~same_values(before, after.filter(pa.array(updated)))
        found += ids[changed].tolist()
    return found


def _column(side: Side, rows: pa.Table, name: str) -> pa.Array:
    """One column in a comparable form."""
    return comparable(side.table, rows.select([name, ROW_ID]))[name].combine_chunks()


def _dropped_type(owner: EntityType) -> MergeConflict:
    message = f"{owner.kind} type {owner.name}: one side dropped it, the other changed its entities"
    return MergeConflict(owner.key, None, ConflictKind.DELETE_VS_UPDATE, message)


def _dropped_property(owner: EntityType, name: str, ids: Sequence[str]) -> MergeConflict:
    count = f"{len(ids)} entit{'y' if len(ids) == 1 else 'ies'}"
    message = f"{owner.name}.{name}: one side dropped it, the other changed its value in {count}"
    related = tuple((owner.key, id) for id in ids[:RELATED_MAX])
    kind = ConflictKind.DELETE_VS_UPDATE
    return MergeConflict(owner.key, None, kind, message, (name,), related=related)


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The target that a merge is prepared on, in its own or in the merged schema."""

    repository: Repository
    original: SnapshotPins
    state: State
    before: Mapping[str, TablePin] = field(default_factory=dict)
    """The published pin of each type, by its type key in the merged schema."""
    remade: frozenset[str] = frozenset()
    """Types whose tables are not published yet."""
    rules: Mapping[str, EntityType] = field(default_factory=dict)
    """Constraints by type key that are new to the target's own entities."""
    is_migrated: bool = False

    def check(self, image: Image) -> Report:
        """Violations of the new constraints, by merged and by the target's own entities."""
        reduced, whole = self.state.schema, dict(image)
        for key, rules in self.rules.items():
            change = image.get(key, TypeImage())
            whole[key] = replace(
                change, rows=self._after(key, rules, change), replaces_all=True, fresh=True
            )
            reduced = reduced.with_type(rules)
        report = Report(shown_max=VIOLATIONS_MAX)
        if self.rules:
            stored = StoredSnapshot(self.repository, self.state.snapshot)
            evaluate(reduced, whole, stored, report, ids_known=True)
        return report

    def _after(self, key: str, rules: EntityType, change: TypeImage) -> pa.Table:
        """All entities of a type after the merge, in the columns that its constraints need."""
        table = self.repository.tables.open(self.state.snapshot.pin(key).ref)
        names = [column.name for column in rules.columns()]
        rows = table.scan(names)
        rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=change.superseded)))
        if change.final is None:
            return rows
        return pa.concat_tables([rows, change.final.select(names)], promote_options="permissive")

    def finish(self, prepared: PreparedWrite) -> PreparedWrite:
        """The prepared merge, which also publishes the migration of the target."""
        if not self.is_migrated:
            return prepared
        staged = {table.pin.key: table for table in prepared.tables}
        tables: list[PreparedTable] = []
        put: list[Row] = [*prepared.put, schema_row(self.state.schema)]
        reads = {old.key: old.ref for old in self.before.values()}
        for key, pin in self.state.snapshot.pins.items():
            table, old = staged.get(key), self.before.get(key)
            if key in self.remade:
                if table is not None:
                    pin = self._moved(pin, table)
                put += [pin.to_row(), pin.to_version_row()]
            elif table is not None and old is not None:
                becomes = None if old.key == key else key
                tables.append(PreparedTable(old, table.staged, becomes))
            elif old is not None and old.key != key:
                put += [pin.to_row(), pin.to_version_row()]
        gone = self.original.pins.keys() - self.state.snapshot.pins.keys()
        return replace(
            prepared,
            snapshot=self.original,
            tables=tuple(tables),
            reads=reads,
            delete_epochs=self._published(prepared.delete_epochs),
            insert_epochs=self._published(prepared.insert_epochs),
            put=tuple(put),
            drop=(*prepared.drop, *(f"table:{key}" for key in sorted(gone))),
            schema_hash=schema_id(self.state.schema),
        )

    def _moved(self, pin: TablePin, table: PreparedTable) -> TablePin:
        """Commit staged rows to an unpublished table; returns its new pin."""
        landed = commit_unpublished(self.repository.tables, table.staged)
        planned = table.planned()
        return pin.moved(
            landed.ref,
            rows=planned.rows_after,
            transaction=planned.transaction,
            deletes=planned.deletes,
            inserts=planned.inserts,
            owner=self.original.branch.incarnation,
            removed=planned.removed,
        )

    def _published(self, epochs: Mapping[str, int]) -> dict[str, int]:
        """Epochs by the published type keys."""
        return {self.before[key].key: e for key, e in epochs.items() if key in self.before}


def migrate_target(repository: Repository, target: State, schema: AcceptedSchema) -> MergeTarget:
    """The target migrated to a schema, on forks of its tables. Publishes nothing."""
    snapshot = target.snapshot
    if schema.digest == target.schema.digest:
        return MergeTarget(repository, snapshot, target)
    work = _TargetMigration(repository, snapshot, target.schema)
    pins = {item.key: work.pin(item) for item in schema.types()}
    made = replace(snapshot, pins=dict(sorted(pins.items())), schema_hash=schema_id(schema))
    remade = frozenset(work.remade)
    state = State(made, schema)
    return MergeTarget(
        repository, snapshot, state, work.before, remade, work.rules, is_migrated=True
    )


class _TargetMigration:
    def __init__(
        self, repository: Repository, snapshot: SnapshotPins, schema: AcceptedSchema
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._olds = {item.incarnation: item for item in schema.types()}
        self._operation_id = new_ulid()
        self.before: dict[str, TablePin] = {}
        self.remade: set[str] = set()
        self.rules: dict[str, EntityType] = {}

    def pin(self, after: EntityType) -> TablePin:
        owner, tables = self._snapshot.branch.incarnation, self._repository.tables
        before = self._olds.get(after.incarnation)
        if before is None:
            self.remade.add(after.key)
            return create_table(
                self._repository,
                after,
                self._operation_id,
                [],
                kind="merge",
                owner=owner,
                suffix=f"@{self._operation_id}",
            )
        pin = self._snapshot.pin(before.key)
        self.before[after.key] = pin
        rules = tightened(before, after)
        if rules is not None:
            self.rules[after.key] = rules
        table = tables.open(pin.ref)
        changes = column_changes(before, after, table.dataset.schema.names)
        if not changes:
            return replace(pin, key=after.key)
        self.remade.add(after.key)
        properties = operation_properties(self._operation_id, "merge")
        copy = tables.open(tables.fork(pin.ref, new_ulid()))
        staged = stage_columns(tables, copy, changes, properties, lambda: copy, fill_in_process)
        landed = commit_unpublished(tables, staged)
        return replace(
            pin,
            key=after.key,
            ref=landed.ref,
            transaction=staged.uuid,
            owner=owner,
            removed=None,
        )
