"""Stages a planned schema change: new tables, column changes, and the manifest rows.

Changes that one Lance transaction can make are staged on the table itself, and the write
transaction moves it. Other changes are made on unpublished forks, which the commit publishes.
Whether a change is allowed is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.catalog.create import create_table
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row, TablePin
from omnigraph.catalog.schemas import schema_id, schema_row
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import SchemaChangeRefused
from omnigraph.evolution.dropped import Revived
from omnigraph.evolution.purge_dropped import DroppedTable, holders
from omnigraph.lang.schema import AcceptedSchema, SchemaPlan
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.preparer import writable
from omnigraph.prepare.reshape import EntityType, column_changes
from omnigraph.storage.lance.staging.columns import (
    ColumnChange,
    Fill,
    commit_unpublished,
    stage_columns,
)
from omnigraph.storage.lance.staging.rewrite import rewrite_fork
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

APPLY_KIND = "schema_apply"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan on one snapshot, with the schemas and pins it was made from."""

    before: AcceptedSchema
    after: AcceptedSchema
    plan: SchemaPlan
    revived: Revived
    pins: Mapping[str, TablePin]
    """The pins of existing tables, by the type keys of the new schema."""

    @property
    def is_nothing(self) -> bool:
        return not self.plan.steps and self.before.hash == self.after.hash

    def pairs(self) -> Iterator[tuple[EntityType | None, EntityType]]:
        """Every type of the new schema with its old form; None for a new type."""
        olds: dict[str, EntityType] = {t.type_id: t for t in self.revived.types}
        olds |= {t.type_id: t for t in self.before.types()}
        for after in self.after.types():
            yield olds.get(after.type_id), after


class SchemaStaging:
    """Stages the tables of a plan and collects the rows that publish it."""

    def __init__(
        self,
        repository: Repository,
        snapshot: SnapshotPins,
        planned: Planned,
        info: WriteInfo,
        made: list[str],
        fill: Fill,
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._planned = planned
        self._info = info
        self._made = made
        self._fill = fill
        self._operation_id = new_ulid()
        self._put: list[Row] = [schema_row(planned.after)]
        self._tables: list[PreparedTable] = []
        self._reads: dict[str, Any] = {}

    def prepare(self, *, hard: bool) -> PreparedWrite:
        for before, after in self._planned.pairs():
            if before is None:
                self._create(after)
            else:
                self._change(before, after, hard=hard)
        kept = {item.key for item in self._planned.after.types()}
        if hard:
            self._purge_dropped_types()
        return PreparedWrite(
            self._operation_id,
            self._snapshot,
            self._info,
            tuple(self._tables),
            reads=self._reads,
            put=tuple(self._put),
            drop=tuple(f"table:{key}" for key in self._snapshot.pins if key not in kept),
            schema_hash=schema_id(self._planned.after),
        )

    def _create(self, owner: EntityType) -> None:
        branch = self._snapshot.branch.incarnation
        pin = create_table(
            self._repository, owner, self._operation_id, self._made, kind=APPLY_KIND, owner=branch
        )
        self._put += [pin.to_row(), pin.to_version_row()]

    def _change(self, before: EntityType, after: EntityType, *, hard: bool) -> None:
        pin = self._planned.pins[after.key]
        revived = pin.key not in self._snapshot.pins or self._snapshot.pins[pin.key] != pin
        table = self._open(pin)
        changes = column_changes(before, after, table.dataset.schema.names, hard=hard)
        if changes and revived:
            raise SchemaChangeRefused(
                f"{after.kind} type {after.name} cannot be restored and changed at once",
                remedy="Restore it as it was, then change it with a second apply.",
            )
        if any(change.field is None for change in changes):
            self._drop_hard(pin, after, changes)
        elif changes:
            staged = self._stage(pin, table, changes)
            becomes = None if after.key == pin.key else after.key
            self._tables.append(PreparedTable(pin, staged, becomes))
        elif revived or after.key != pin.key:
            moved = replace(pin, key=after.key, removed=None)
            self._put += [moved.to_row(), moved.to_version_row()]
            if not revived:
                self._reads[pin.key] = pin.ref

    def _drop_hard(self, pin: TablePin, after: EntityType, changes: list[ColumnChange]) -> None:
        """Stage a fork without the dropped columns that shares no file with the table."""
        tables, owner = self._repository.tables, self._snapshot.branch.incarnation
        copy = tables.open(tables.fork(pin.ref, new_ulid()))
        staged = stage_columns(tables, copy, changes, self._properties, lambda: copy, self._fill)
        landed = rewrite_fork(tables, commit_unpublished(tables, staged), self._properties)
        moved = replace(pin, key=after.key, removed=None).moved(
            landed.ref,
            rows=pin.rows,
            transaction=str(tables.transaction(landed.ref).uuid),
            deletes=False,
            inserts=False,
            owner=owner,
        )
        self._put += [moved.to_row(), moved.to_version_row()]
        self._reads[pin.key] = pin.ref
        self._purge(DroppedTable(pin.ref.path, landed.ref.branch, self._operation_id), after)

    def _purge_dropped_types(self) -> None:
        living = {item.type_id for item in self._planned.after.types()}
        for item in self._planned.before.types():
            if item.type_id not in living:
                pin = self._snapshot.pin(item.key)
                self._reads[pin.key] = pin.ref
                self._purge(DroppedTable(pin.ref.path, None, self._operation_id), item)

    def _purge(self, purge: DroppedTable, item: EntityType) -> None:
        held = holders(self._repository, self._snapshot.branch, purge)
        if held:
            raise SchemaChangeRefused(
                f"data of {item.kind} type {item.name} cannot be removed: {', '.join(held)} "
                "still refer to it",
                remedy="Delete them first, or apply without --allow-data-loss.",
                details={"held_by": held},
            )
        self._put.append(purge.to_row())

    def _open(self, pin: TablePin) -> PinnedTable:
        return self._repository.tables.open(pin.ref)

    @property
    def _properties(self) -> dict[str, str]:
        return operation_properties(self._operation_id, APPLY_KIND)

    def _stage(self, pin: TablePin, table: PinnedTable, changes: list[ColumnChange]) -> StagedWrite:
        tables, branch = self._repository.tables, self._snapshot.branch
        if pin.owner != branch.incarnation:
            table = writable(self._repository, pin, branch)

        def fork() -> PinnedTable:
            if table.ref != pin.ref:
                return table  # it is a new fork already
            return tables.open(tables.fork(pin.ref, new_ulid()))

        return stage_columns(tables, table, changes, self._properties, fork, self._fill)
