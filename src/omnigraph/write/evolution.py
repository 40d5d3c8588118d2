"""Applying a schema: plan, check the stored entities, stage columns, and one publish for it all.

A preparer like any other: it works on one snapshot, states what it relied on, and hands the result
to the write transaction. Whoever prepared a write under the old schema is refused by the schema's
name, which every write requires. Nothing here moves or publishes a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.commit.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.constraints import Report, TypeImage, evaluate
from omnigraph.errors import InvalidInput, NotAvailable, SchemaChangeRefused
from omnigraph.ids import new_ulid
from omnigraph.manifest.create import create_table, discard_tables
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import Commit, Row, TablePin
from omnigraph.manifest.schemas import schema_id, schema_row
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.schema import (
    AcceptedSchema,
    EdgeType,
    NodeType,
    Plan,
    PlanFacts,
    accept_schema,
    plan_schema,
    tightened,
)
from omnigraph.schema.plan import TYPE_CHANGE
from omnigraph.storage.columns import ColumnChange, stage_columns
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY, PinnedTable, StagedWrite
from omnigraph.write.changes import writable
from omnigraph.write.committing import Attempt, Committer, WriteOptions
from omnigraph.write.dropped import Revived, find_dropped
from omnigraph.write.reshape import EntityType, Fills, column_changes, columns_for, reshaped
from omnigraph.write.rows import accept_value
from omnigraph.write.stored import StoredSnapshot

APPLY_KIND = "schema_apply"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What a caller wants: a schema text, and what the text alone cannot say.

    ``backfill`` gives the entities that exist already a value of a new property (``Person.age``);
    ``undrop`` names types and properties of the text that are to be the dropped ones.
    """

    text: str
    name: str = "<schema>"
    allow_data_loss: bool = False
    backfill: Mapping[str, Any] = field(default_factory=dict)
    undrop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """The plan, and the commit that carried it out; None when nothing had to be done."""

    plan: Plan
    commit: Commit | None

    @property
    def applied(self) -> bool:
        return self.commit is not None

    def to_json(self) -> dict[str, Any]:
        told = self.plan.to_json()
        body: dict[str, Any] = {"supported": told["supported"], "applied": self.applied}
        if self.commit is not None:
            body["graph_manifest_version"] = self.commit.manifest_version
            body["graph_commit_id"] = self.commit.commit_id
        return {**body, "steps": told["steps"]}


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan on one snapshot, with everything it was made from."""

    before: AcceptedSchema
    after: AcceptedSchema
    plan: Plan
    fills: Mapping[str, Fills]
    """Stored values of new properties, by type key and name."""
    revived: Revived
    pins: Mapping[str, TablePin]
    """Where the tables are, by the type keys of the new schema."""

    @property
    def is_nothing(self) -> bool:
        return not self.plan.steps and self.before.hash == self.after.hash

    def pairs(self) -> Iterator[tuple[EntityType | None, EntityType]]:
        """Every type of the new schema with what it was; None for one that is new."""
        olds: dict[str, EntityType] = {t.type_id: t for t in self.revived.types}
        olds |= {t.type_id: t for t in self.before.types()}
        for after in self.after.types():
            yield olds.get(after.type_id), after


def plan_change(attempt: Attempt, change: SchemaChange) -> Planned:
    """What has to be done on the snapshot of an attempt. Reads no rows."""
    before, snapshot = attempt.schema, attempt.snapshot
    revived = find_dropped(attempt.repository, attempt.state, before, change.undrop)
    after = accept_schema(
        change.text, name=change.name, previous=revived.added_to(before), mint=new_ulid
    )
    fills = _fills(before, after, change.backfill)
    facts = PlanFacts(
        mode="hard" if change.allow_data_loss else "soft",
        filled=frozenset(f"{key}.{name}" for key, given in fills.items() for name in given),
        empty=frozenset(key for key, pin in snapshot.pins.items() if pin.rows == 0),
        revived=revived.by_identity(),
    )
    plan = plan_schema(before, after, facts=facts)
    keys = {pin.type_id: pin for pin in (*revived.pins.values(), *snapshot.pins.values())}
    pins = {t.key: keys[t.type_id] for t in after.types() if t.type_id in keys}
    return Planned(before, after, plan, fills, revived, pins)


class Evolution:
    """One application of a schema to a branch."""

    def __init__(self, repository: Repository, change: SchemaChange) -> None:
        self._repository = repository
        self._change = change
        self._made: list[str] = []
        self._planned: Planned | None = None

    def run(self, committer: Committer, options: WriteOptions) -> SchemaResult:
        done = committer.run(
            options,
            lambda attempt: self._prepare(attempt, options.info),
            retry=lambda: True,
            digest=lambda: repr(self._change),
        )
        if self._planned is None:  # an earlier request with the same idempotency key did it
            return SchemaResult(Plan(()), done.commit)
        return SchemaResult(self._planned.plan, done.commit)

    def _prepare(
        self, attempt: Attempt, info: WriteInfo
    ) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
        discard_tables(self._repository, self._made)  # of an attempt that came to nothing
        self._made = []
        self._planned = planned = plan_change(attempt, self._change)
        _require_supported(planned.plan)
        _require_soft(planned.plan)
        if planned.is_nothing:
            return None, {}
        reads = self._validate(attempt.snapshot, planned)
        work = _Staging(self._repository, attempt.snapshot, planned, info, self._made)
        prepared = work.prepare(hard=self._change.allow_data_loss)
        return replace(prepared, reads={**prepared.reads, **reads}), {}

    def _validate(self, snapshot: SnapshotPins, planned: Planned) -> dict[str, Any]:
        """Check stored entities against every rule that is new; the types this relied on."""
        reduced, image, reads = planned.after, {}, {}
        for before, after in planned.pairs():
            if before is None:
                continue
            pin = planned.pins[after.key]
            rules = _rules(before, after, planned.revived)
            if rules is None or not pin.rows:
                continue
            table = self._repository.tables.open(pin.ref)
            rows = table.scan(columns_for(before, rules))
            fills = planned.fills.get(after.key)
            rows = reshaped(rows, before, rules, fills)
            image[after.key] = TypeImage(rows, replaces_all=True, fresh=True)
            reduced = _with_type(reduced, rules)
            if pin.key in snapshot.pins and snapshot.pins[pin.key].ref == pin.ref:
                reads[pin.key] = pin.ref
        if image:
            report = Report()
            stored = StoredSnapshot(self._repository, replace(snapshot, pins=planned.pins))
            evaluate(reduced, image, stored, report)
            _require_allowed(report)
        return reads


class _Staging:
    """Stages the tables of a plan and collects the rows that publish it."""

    def __init__(
        self,
        repository: Repository,
        snapshot: SnapshotPins,
        planned: Planned,
        info: WriteInfo,
        made: list[str],
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._planned = planned
        self._info = info
        self._made = made
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

    def _create(self, owner: NodeType | EdgeType) -> None:
        branch = self._snapshot.branch.incarnation
        pin = create_table(
            self._repository, owner, self._operation_id, self._made, kind=APPLY_KIND, owner=branch
        )
        self._put += [pin.to_row(), pin.to_version_row()]

    def _change(self, before: EntityType, after: EntityType, *, hard: bool) -> None:
        pin = self._planned.pins[after.key]
        revived = pin.key not in self._snapshot.pins or self._snapshot.pins[pin.key] != pin
        table = self._repository.tables.open(pin.ref)
        fills = self._planned.fills.get(after.key, {})
        stored = table.dataset.schema.names
        changes = column_changes(before, after, fills, stored, hard=hard)
        if changes and revived:
            raise SchemaChangeRefused(
                f"{after.kind} type {after.name} cannot be brought back and changed at once",
                remedy="Bring it back as it was first, then change it.",
            )
        if changes:
            staged = self._stage(pin, table, changes)
            becomes = None if after.key == pin.key else after.key
            self._tables.append(PreparedTable(pin, staged, becomes))
        elif revived or after.key != pin.key:
            moved = replace(pin, key=after.key, removed=None)
            self._put += [moved.to_row(), moved.to_version_row()]
            if not revived:
                self._reads[pin.key] = pin.ref

    def _stage(self, pin: TablePin, table: PinnedTable, changes: list[ColumnChange]) -> StagedWrite:
        tables, branch = self._repository.tables, self._snapshot.branch
        properties = {OPERATION_PROPERTY: self._operation_id, KIND_PROPERTY: APPLY_KIND}
        if pin.owner != branch.incarnation:
            table = writable(self._repository, pin, branch)

        def fork() -> PinnedTable:
            if table.ref != pin.ref:
                return table  # it is a fresh fork already
            return tables.open(tables.fork(pin.ref, new_ulid()))

        return stage_columns(tables, table, changes, properties, fork)


def _rules(before: EntityType, after: EntityType, revived: Revived) -> EntityType | None:
    """The rules to check: new ones, and for an edge type that comes back also its ends."""
    found = tightened(before, after)
    returns = any(item.type_id == after.type_id for item in revived.types)
    if found is None and returns and isinstance(after, EdgeType):
        return replace(after, properties={}, unique=(), indexes=())
    return found


def _with_type(schema: AcceptedSchema, item: EntityType) -> AcceptedSchema:
    if isinstance(item, NodeType):
        return replace(schema, nodes={**schema.nodes, item.name: item})
    return replace(schema, edges={**schema.edges, item.name: item})


def _fills(
    before: AcceptedSchema, after: AcceptedSchema, given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Values for new properties as stored ones, by type key and name."""
    known = {item.property_id for t in before.types() for item in t.properties.values()}
    fills: dict[str, dict[str, Any]] = {}
    for place, value in given.items():
        type_name, _, name = place.partition(".")
        owner = next((t for t in after.types() if type_name in (t.name, t.key)), None)
        item = None if owner is None else owner.properties.get(name)
        if owner is None or item is None or item.property_id in known:
            raise InvalidInput(
                f"{place!r} is no property that this schema adds",
                remedy="Name a new property as Type.property.",
            )
        fills.setdefault(owner.key, {})[name] = accept_value(owner, name, value)
    return fills


def _require_allowed(report: Report) -> None:
    """Refuse a change that stored entities are in the way of, with all of them."""
    if not report:
        return
    code = f"[{TYPE_CHANGE}] " if report.rules <= {"enum", "required"} else ""
    more = f" (and {report.total - 1} more)" if report.total > 1 else ""
    raise SchemaChangeRefused(
        f"{code}{report.shown[0]}{more}",
        remedy="Change these entities first, then apply the schema; nothing was changed.",
        details={
            "violations": [violation.to_json() for violation in report.shown],
            "total": report.total,
        },
    )


def _require_soft(plan: Plan) -> None:
    if any(
        step.kind in ("drop_type", "drop_property") and step.mode == "hard" for step in plan.steps
    ):
        raise NotAvailable(
            "dropping for good is not available yet",
            remedy="Apply without --allow-data-loss: what is dropped is hidden, its data stays.",
        )


def _require_supported(plan: Plan) -> None:
    refused = [step for step in plan.steps if step.kind == "unsupported_change"]
    if not refused:
        return
    first = refused[0]
    code = f"[{first.code}] " if first.code else ""
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    raise SchemaChangeRefused(
        f"{code}{first.entity}: {first.reason}{more}",
        details={"steps": [step.to_json() for step in refused]},
    )
