"""Applying a schema: plan, check the stored entities, stage columns, and one publish for it all.

A preparer like any other: it works on one snapshot, states what it relied on, and hands the result
to the write transaction. Whoever prepared a write under the old schema is refused by the schema's
name, which every write requires. Nothing here moves or publishes a table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnigraph.catalog.create import discard_tables
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Report, TypeImage, evaluate
from omnigraph.errors import InvalidInput, OmnigraphError, SchemaChangeRefused
from omnigraph.evolution.dropped import Revived, find_dropped
from omnigraph.evolution.purge_dropped import finish_purges
from omnigraph.evolution.stage import Planned, SchemaStaging
from omnigraph.lang.schema import (
    AcceptedSchema,
    EdgeType,
    Plan,
    PlanFacts,
    Property,
    accept_schema,
    plan_schema,
    tightened,
)
from omnigraph.lang.schema.change.plan import TYPE_CHANGE
from omnigraph.lang.schema.parse.expression import parse_computed
from omnigraph.model.ids import new_ulid
from omnigraph.model.types import PropertyType
from omnigraph.prepare.backoff import ask_for_quiet, end_quiet
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions
from omnigraph.prepare.entity_rows import accept_value
from omnigraph.prepare.reshape import EntityType, columns_for, reshaped
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.storage.lance.staging.columns import Fill
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo

log = logging.getLogger("omnigraph.schema")

ATTEMPTS_BEFORE_QUIET: Final = 2
"""A change that was overtaken once takes longer than others: it asks them to wait."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What a caller wants: a schema text, and what the text alone cannot say.

    ``backfill`` gives the entities that exist already a value of a new property (``Person.age``);
    ``compute`` gives them one that is made of their other properties (``first + " " + last``).
    ``undrop`` names types and properties of the text that are to be the dropped ones.
    """

    text: str
    name: str = "<schema>"
    allow_data_loss: bool = False
    backfill: Mapping[str, Any] = field(default_factory=dict)
    compute: Mapping[str, str] = field(default_factory=dict)
    undrop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """The plan, and the commit that carried it out; None when nothing had to be done."""

    plan: Plan
    commit: Commit | None
    purge_pending: bool = False
    """Whether files of what was dropped for good are still there; the next opening goes on."""

    @property
    def applied(self) -> bool:
        return self.commit is not None

    def to_json(self) -> dict[str, Any]:
        told = self.plan.to_json()
        body: dict[str, Any] = {"supported": told["supported"], "applied": self.applied}
        if self.commit is not None:
            body["graph_manifest_version"] = self.commit.manifest_version
            body["graph_commit_id"] = self.commit.commit_id
        if self.purge_pending:
            body["purge_pending"] = True
        return {**body, "steps": told["steps"]}


def plan_change(attempt: Attempt, change: SchemaChange) -> Planned:
    """What has to be done on the snapshot of an attempt. Reads no rows."""
    before, snapshot = attempt.schema, attempt.snapshot
    revived = find_dropped(attempt.repository, attempt.state, before, change.undrop)
    accepted = accept_schema(
        change.text, name=change.name, previous=revived.added_to(before), mint=new_ulid
    )
    after, filled = _filled(before, accepted, change)
    facts = PlanFacts(
        mode="hard" if change.allow_data_loss else "soft",
        filled=filled,
        empty=frozenset(key for key, pin in snapshot.pins.items() if pin.rows == 0),
        revived=revived.by_identity(),
    )
    plan = plan_schema(before, after, facts=facts)
    keys = {pin.type_id: pin for pin in (*revived.pins.values(), *snapshot.pins.values())}
    pins = {t.key: keys[t.type_id] for t in after.types() if t.type_id in keys}
    return Planned(before, after, plan, revived, pins)


class Evolution:
    """One application of a schema to a branch."""

    def __init__(self, repository: Repository, change: SchemaChange, fill: Fill) -> None:
        self._repository = repository
        self._change = change
        self._fill = fill
        self._made: list[str] = []
        self._attempts = 0
        self._planned: Planned | None = None

    def run(self, committer: Committer, options: WriteOptions) -> SchemaResult:
        try:
            done = committer.run(
                replace(options, asks_for_quiet=True),
                lambda attempt: self._prepare(attempt, options.info),
                retry=lambda: True,
                digest=lambda: repr(self._change),
            )
        finally:
            if self._attempts > 1:
                end_quiet(self._repository, self._repository.branch(options.branch))
        # None: an earlier request with the same idempotency key did it.
        plan = Plan(()) if self._planned is None else self._planned.plan
        return SchemaResult(plan, done.commit, self._purge_pending(options.branch))

    def _purge_pending(self, branch: str) -> bool:
        """Remove what was dropped for good; the change itself is done whatever becomes of this."""
        try:
            return not finish_purges(self._repository, self._repository.branch(branch))
        except OmnigraphError as error:
            log.warning("what was dropped is not removed yet: %s", error.message)
            return True

    def _prepare(
        self, attempt: Attempt, info: WriteInfo
    ) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
        self._attempts += 1
        if self._attempts == ATTEMPTS_BEFORE_QUIET:
            ask_for_quiet(self._repository, attempt.branch)
            attempt = replace(attempt, state=self._repository.manifest(attempt.branch).current())
        discard_tables(self._repository, self._made)  # of an attempt that came to nothing
        self._made = []
        self._planned = planned = plan_change(attempt, self._change)
        _require_supported(planned.plan)
        if planned.is_nothing:
            return None, {}
        reads = self._validate(attempt.snapshot, planned)
        work = SchemaStaging(
            self._repository, attempt.snapshot, planned, info, self._made, self._fill
        )
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
            image[after.key] = TypeImage(
                reshaped(rows, before, rules), replaces_all=True, fresh=True
            )
            reduced = reduced.with_type(rules)
            if pin.key in snapshot.pins and snapshot.pins[pin.key].ref == pin.ref:
                reads[pin.key] = pin.ref
        if image:
            report = Report()
            stored = StoredSnapshot(self._repository, replace(snapshot, pins=planned.pins))
            evaluate(reduced, image, stored, report)
            _require_allowed(report)
        return reads


def _rules(before: EntityType, after: EntityType, revived: Revived) -> EntityType | None:
    """The rules to check: new ones, and for an edge type that comes back also its ends."""
    found = tightened(before, after)
    returns = any(item.type_id == after.type_id for item in revived.types)
    if found is None and returns and isinstance(after, EdgeType):
        return replace(after, properties={}, unique=(), indexes=())
    return found


def _filled(
    before: AcceptedSchema, after: AcceptedSchema, change: SchemaChange
) -> tuple[AcceptedSchema, frozenset[str]]:
    """The schema with the values that were given for new properties, and which those are."""
    known = {item.property_id for t in before.types() for item in t.properties.values()}
    filled = set()
    for place, value in change.backfill.items():
        owner, item = _named(after, place)
        fill = accept_value(owner, item.name, value)
        if item.property_id in known:
            if item.fill == fill:
                continue  # the same change was made before
            raise _nothing_new(place)
        after = _with_property(after, owner, replace(item, fill=fill))
        filled.add(f"{owner.key}.{item.name}")
    for place, text in change.compute.items():
        owner, item = _named(after, place)
        if item.property_id in known and item.computed is not None:
            continue
        if item.property_id in known:
            raise _nothing_new(place)
        if f"{owner.key}.{item.name}" in filled:
            raise InvalidInput(f"{place} is given a value and computed", remedy="Choose one.")
        computed = parse_computed(text, item.type, _operands(before, owner))
        after = _with_property(after, owner, replace(item, computed=computed))
        filled.add(f"{owner.key}.{item.name}")
    for owner, item in _defaulted(before, after):
        if f"{owner.key}.{item.name}" not in filled:
            given = replace(item, fill=item.default_stored)
            after = _with_property(after, after.type(owner.key), given)
            filled.add(f"{owner.key}.{item.name}")
    return after, frozenset(filled)


def _named(schema: AcceptedSchema, place: str) -> tuple[EntityType, Property]:
    type_name, _, name = place.partition(".")
    owner = next((t for t in schema.types() if type_name in (t.name, t.key)), None)
    if owner is None or name not in owner.properties:
        raise _nothing_new(place)
    return owner, owner.properties[name]


def _nothing_new(place: str) -> InvalidInput:
    return InvalidInput(
        f"{place!r} is no property that this schema adds",
        remedy="Name a new property as Type.property.",
    )


def _operands(before: AcceptedSchema, owner: EntityType) -> dict[str, tuple[str, PropertyType]]:
    """What a property of a type can be computed from: what there was, by old and by new names."""
    old = next((t for t in before.types() if t.type_id == owner.type_id), None)
    olds = {} if old is None else old.properties
    types = {item.property_id: item.type for item in olds.values()}
    named = {name: item.property_id for name, item in olds.items()}
    named |= {n: i.property_id for n, i in owner.properties.items() if i.property_id in types}
    return {name: (identity, types[identity]) for name, identity in named.items()}


def _with_property(schema: AcceptedSchema, owner: EntityType, item: Property) -> AcceptedSchema:
    return schema.with_type(replace(owner, properties={**owner.properties, item.name: item}))


def _defaulted(
    before: AcceptedSchema, after: AcceptedSchema
) -> Iterator[tuple[EntityType, Property]]:
    """The properties that are new in types that exist, and that have a default."""
    olds = {t.type_id: {i.property_id for i in t.properties.values()} for t in before.types()}
    for owner in after.types():
        for item in owner.properties.values():
            known = olds.get(owner.type_id, {item.property_id})
            if item.default is not None and item.property_id not in known:
                yield owner, item


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
