"""Applies a schema: plans the change, checks stored entities, stages columns, one commit.

A writer like any other: it is prepared on one snapshot and states its read set. A write that was
prepared under the old schema is refused, because every write requires the hash of its schema.
Nothing here moves or publishes a table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.catalog.create import discard_tables
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Report, TypeImage, evaluate
from omnigraph.errors import Conflict, InvalidInput, OmnigraphError, SchemaChangeRefused
from omnigraph.evolution.dropped import Revived, find_dropped
from omnigraph.evolution.purge_dropped import finish_purges
from omnigraph.evolution.stage import Planned, SchemaStaging
from omnigraph.lang.schema import (
    AcceptedSchema,
    EdgeType,
    PlanFacts,
    Property,
    SchemaPlan,
    accept_schema,
    plan_schema,
    tightened,
)
from omnigraph.lang.schema.change.plan import TYPE_CHANGE
from omnigraph.lang.schema.parse.expression import parse_computed
from omnigraph.model.ids import new_ulid
from omnigraph.model.requests import SchemaRequest
from omnigraph.model.types import PropertyType
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.entity_rows import accept_value
from omnigraph.prepare.reshape import EntityType, columns_for, reshaped
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.prepare.write_pause import writers_paused
from omnigraph.storage.lance.staging.columns import Fill
from omnigraph.transaction.prepared import WriteInfo

log = logging.getLogger("omnigraph.schema")

ATTEMPTS_BEFORE_PAUSE: Final = 2
"""From this attempt on a schema change, slower than other writes, asks them to pause."""


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """The plan and its commit, which is None when nothing had to be changed."""

    plan: SchemaPlan
    commit: Commit | None
    purge_pending: bool = False
    """Whether files of hard drops still have to be removed, by the next opening for writing."""
    repeated_steps: tuple[Mapping[str, Any], ...] = ()
    """The steps, as data, where an earlier request with the same idempotency key applied them."""

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
        return {**body, "steps": told["steps"] or [dict(step) for step in self.repeated_steps]}


def plan_change(attempt: Attempt, change: SchemaRequest) -> Planned:
    """Plan a schema change on the snapshot of an attempt. Reads no rows."""
    before, snapshot = attempt.schema, attempt.snapshot
    revived = find_dropped(attempt.repository, attempt.state, before, change.undrop)
    accepted = accept_schema(
        change.schema, name=change.name, previous=revived.added_to(before), mint=new_ulid
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

    def __init__(self, repository: Repository, change: SchemaRequest, fill: Fill) -> None:
        self._repository = repository
        self._change = change
        self._fill = fill

    def run(self, committer: Committer, options: WriteOptions) -> SchemaResult:
        with ExitStack() as pause:
            outcome = committer.run(
                replace(options, may_request_pause=True),
                lambda attempt: self._prepare(attempt, options.info, pause),
                # The engine does not change the result.
                digest=lambda: repr(replace(self._change, engine="auto")),
            )
        # None: an earlier request with the same idempotency key applied the change.
        plan = SchemaPlan(()) if outcome.detail is None else outcome.detail
        steps = tuple(outcome.result.get("steps", ())) if outcome.repeated else ()
        return SchemaResult(plan, outcome.commit, self._purge_pending(options.branch), steps)

    def _purge_pending(self, branch: str) -> bool:
        """Remove the files of hard drops; a failure does not fail the schema change."""
        try:
            return not finish_purges(self._repository, self._repository.branch(branch))
        except OmnigraphError as error:
            log.warning("files of dropped data are not removed yet: %s", error.message)
            return True

    def _prepare(self, attempt: Attempt, info: WriteInfo, pause: ExitStack) -> Prepared[SchemaPlan]:
        if attempt.number == ATTEMPTS_BEFORE_PAUSE:
            pause.enter_context(writers_paused(self._repository, attempt.branch))
            attempt = replace(attempt, state=self._repository.manifest(attempt.branch).current())
        planned = plan_change(attempt, self._change)
        _require_supported(planned.plan)
        if planned.is_nothing:
            return Prepared(None, detail=planned.plan)
        reads = self._validate(attempt.snapshot, planned)
        created: list[str] = []
        work = SchemaStaging(self._repository, attempt.snapshot, planned, info, created, self._fill)
        try:
            prepared = work.prepare(hard=self._change.allow_data_loss)
        except Conflict:  # the next attempt creates new tables
            discard_tables(self._repository, created)
            raise
        return Prepared(
            replace(prepared, reads={**prepared.reads, **reads}),
            {"steps": planned.plan.to_json()["steps"]},
            detail=planned.plan,
            discard=lambda: discard_tables(self._repository, created),
        )

    def _validate(self, snapshot: SnapshotPins, planned: Planned) -> dict[str, Any]:
        """Check stored entities against new constraints; returns the types that were read."""
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
    """The constraints to check: new ones, and the ends of an edge type that is restored."""
    found = tightened(before, after)
    returns = any(item.type_id == after.type_id for item in revived.types)
    if found is None and returns and isinstance(after, EdgeType):
        return replace(after, properties={}, unique=(), indexes=())
    return found


def _filled(
    before: AcceptedSchema, after: AcceptedSchema, change: SchemaRequest
) -> tuple[AcceptedSchema, frozenset[str]]:
    """The schema with fill values for new properties, and the properties that have one."""
    known = {item.property_id for t in before.types() for item in t.properties.values()}
    filled = set()
    for place, value in (change.backfill or {}).items():
        owner, item = _named(after, place)
        fill = accept_value(owner, item.name, value)
        if item.property_id in known:
            if item.fill == fill:
                continue  # a repeated request
            raise _nothing_new(place)
        after = _with_property(after, owner, replace(item, fill=fill))
        filled.add(f"{owner.key}.{item.name}")
    for place, text in (change.compute or {}).items():
        owner, item = _named(after, place)
        if item.property_id in known and item.computed is not None:
            continue
        if item.property_id in known:
            raise _nothing_new(place)
        if f"{owner.key}.{item.name}" in filled:
            raise InvalidInput(f"{place} has a backfill and a compute", remedy="Keep one of them.")
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
        f"{place!r} is not a property that this schema adds",
        remedy="Name a new property as Type.property.",
    )


def _operands(before: AcceptedSchema, owner: EntityType) -> dict[str, tuple[str, PropertyType]]:
    """The properties that a new one can be computed from, by their old and new names."""
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
    """New properties with a default, of types that exist already."""
    olds = {t.type_id: {i.property_id for i in t.properties.values()} for t in before.types()}
    for owner in after.types():
        for item in owner.properties.values():
            known = olds.get(owner.type_id, {item.property_id})
            if item.default is not None and item.property_id not in known:
                yield owner, item


def _require_allowed(report: Report) -> None:
    """Raise if stored entities violate the new schema, with all violations."""
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


def _require_supported(plan: SchemaPlan) -> None:
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
