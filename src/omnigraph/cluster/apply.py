"""Applying a plan: graphs, schemas, the catalog of queries and policies, the ledger, deletions.

Every step on a graph stands between an intent and the ledger. A resource whose step failed keeps
its former entry, and what depends on it waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.cluster.desired import DeclaredResource, DesiredState, sha256
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.graphs import ClusterGraphs
from omnigraph.cluster.ledger import Ledger, payload_path, write_ledger
from omnigraph.cluster.plan import ResourceChange, plan_changes, stored_entry
from omnigraph.cluster.records import (
    GraphIntent,
    StepKind,
    consumed,
    now,
    read_approvals,
    remove_intent,
    write_approval,
    write_intent,
)
from omnigraph.cluster.recovery import sweep, without_graph
from omnigraph.errors import ObjectExists, OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit


@dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """What an apply did."""

    ledger: Ledger
    changes: list[ResourceChange]
    converged: bool
    state_written: bool

    def count(self, disposition: str) -> int:
        return sum(change.disposition == disposition for change in self.changes)


@dataclass(frozen=True, slots=True)
class _Run:
    """The state of one apply: what was done so far."""

    graphs: ClusterGraphs
    desired: DesiredState
    findings: Findings
    actor: str | None
    ledger: Ledger
    resources: dict[str, Mapping[str, Any]]
    statuses: dict[str, Mapping[str, Any]]
    blocked: set[str]
    intents: list[str] = field(default_factory=list)

    def fail(self, change: ResourceChange, code: str, message: str) -> ResourceChange:
        """A change that could not be made; its graph waits."""
        self.findings.add(code, change.resource, message)
        if change.graph_id is not None:
            self.blocked.add(change.graph_id)
        self.statuses[change.resource] = {"status": "error", "message": message}
        return replace(change, disposition="blocked", reason=message)

    def done(self, change: ResourceChange, resource: DeclaredResource) -> ResourceChange:
        self.resources[change.resource] = stored_entry(resource)
        self.statuses[change.resource] = {"status": "applied"}
        return replace(change, disposition=change.disposition or "applied")

    def intent(self, kind: StepKind, id: str, approval: str | None = None) -> GraphIntent:
        """Write down what is about to happen to a graph."""
        schema = self.desired.resources.get(f"schema.{id}")
        digest = None if schema is None else schema.digest
        uri = self.graphs.store.graph_uri(id)
        made = GraphIntent(
            new_ulid(), now(), self.actor, kind, id, uri, digest, self.ledger.cas, approval
        )
        write_intent(self.graphs.store, made)
        return made


def apply_plan(
    graphs: ClusterGraphs,
    desired: DesiredState,
    ledger: Ledger,
    findings: Findings,
    actor: str | None,
) -> ApplyOutcome:
    """Make the applied state the desired one, as far as it can be done and is approved."""
    swept, settled, blocked = sweep(graphs, ledger, desired, findings)
    run = _Run(
        graphs,
        desired,
        findings,
        actor,
        swept,
        dict(swept.resources),
        dict(swept.statuses),
        blocked,
        settled,
    )
    planned = plan_changes(desired, swept)
    deletions = [change for change in planned if change.needs_approval]
    doomed = {change.graph_id for change in deletions}
    others = [change for change in planned if change not in deletions]
    changes = [
        _apply_one(run, change)
        for change in others
        if not (change.operation == "delete" and change.graph_id in doomed)
    ]
    waiting = any(change.disposition in ("blocked", "deferred") for change in changes)
    after = replace(swept, resources=run.resources, statuses=run.statuses)
    complete = not waiting and not deletions and not run.blocked
    after = replace(after, config_digest=desired.digest if complete else ledger.config_digest)
    written = False
    if _differs(after, ledger):
        stored = _write_next(run, after)
        if stored is None:
            return ApplyOutcome(ledger, changes, False, False)
        after, written = stored, True
    for operation_id in run.intents:
        remove_intent(graphs.store, operation_id, findings)
    for change in deletions:
        changed, after = _delete(run, change, after)
        changes.append(changed)
        written = written or changed.disposition == "applied"
    if deletions and all(change.disposition != "blocked" for change in changes):
        complete = all(change.disposition not in ("deferred",) for change in changes)
        if complete and findings.ok and not run.blocked:
            stored = _write_next(run, replace(after, config_digest=desired.digest))
            complete, after = stored is not None, stored or after
    return ApplyOutcome(after, changes, complete and findings.ok, written)


def _apply_one(run: _Run, change: ResourceChange) -> ResourceChange:
    id = change.graph_id
    if id is not None and id in run.blocked:
        run.findings.add("apply_dependency_blocked", change.resource, f"graph {id} is blocked")
        return replace(change, disposition="blocked", reason=f"graph {id} is blocked")
    if change.operation == "delete":
        run.resources.pop(change.resource, None)
        run.statuses.pop(change.resource, None)
        return replace(change, disposition="applied")
    resource = run.desired.resources[change.resource]
    if change.kind == "graph" and change.operation == "create":
        return _create_graph(run, change, resource)
    if change.kind == "schema" and change.operation == "update":
        return _update_schema(run, change, resource)
    if change.kind in ("query", "policy"):
        problem = _store_payload(run, resource)
        if problem is not None:
            return run.fail(change, "resource_payload_write_error", problem)
    return run.done(change, resource)


def _create_graph(run: _Run, change: ResourceChange, resource: DeclaredResource) -> ResourceChange:
    id = str(change.graph_id)
    schema = run.desired.resources[f"schema.{id}"]
    try:
        intent = run.intent("graph_create", id)
        run.graphs.create(id, schema.data.decode(), run.actor)
    except OmnigraphError as error:
        return run.fail(change, "graph_create_failed", error.message)
    run.intents.append(intent.operation_id)
    return run.done(change, resource)


def _update_schema(run: _Run, change: ResourceChange, resource: DeclaredResource) -> ResourceChange:
    id, text = str(change.graph_id), resource.data.decode()
    try:
        plan = run.graphs.plan(id, text, str(resource.path))
        change = replace(change, migration=plan.to_json())
        if not plan.supported:
            reasons = "; ".join(step.reason or step.kind for step in plan.steps)
            run.blocked.add(id)
            run.findings.add("apply_unsupported_change", change.resource, reasons)
            return replace(change, disposition="blocked", reason=reasons)
        intent = run.intent("schema_apply", id)
        run.graphs.apply_schema(id, text, str(resource.path), run.actor)
    except OmnigraphError as error:
        return run.fail(change, "schema_apply_failed", error.message)
    run.intents.append(intent.operation_id)
    return run.done(change, resource)


def _store_payload(run: _Run, resource: DeclaredResource) -> str | None:
    """Keep the text of a query or policy under its digest; what is wrong, if anything."""
    objects = run.graphs.store.objects
    path = payload_path(resource.address, resource.digest)
    hit("cluster.before_payload")
    try:
        try:
            objects.put_if_absent(path, resource.data)
        except ObjectExists:
            if sha256(objects.get(path)) != resource.digest:
                objects.put(path, resource.data)  # damaged: restored
    except OmnigraphError as error:
        return error.message
    hit("cluster.after_payload")
    return None


def _delete(run: _Run, change: ResourceChange, ledger: Ledger) -> tuple[ResourceChange, Ledger]:
    """Delete a graph whose deletion was approved for exactly this state."""
    id = str(change.graph_id)
    if id in run.blocked:
        return replace(change, disposition="blocked", reason="a step is unfinished"), ledger
    approvals = read_approvals(run.graphs.store, run.findings)
    digest = run.desired.digest
    valid = [one for one in approvals if one.covers(change.resource, digest, change.before)]
    if not valid:
        stale = [a for a in approvals if a.resource == change.resource and a.consumed_at is None]
        if stale:
            message = "the approval was given for another state; approve again"
            run.findings.add("approval_stale", change.resource, message)
        message = f"deleting it loses data; approve it with `cluster approve {change.resource}`"
        run.findings.add("graph_delete_skipped", change.resource, message)
        return replace(change, disposition="deferred", reason="needs approval"), ledger
    try:
        intent = run.intent("graph_delete", id, valid[0].approval_id)
        run.graphs.delete(id)
    except OmnigraphError as error:
        return run.fail(change, "graph_delete_failed", error.message), ledger
    after = _write_next(run, without_graph(ledger, id))
    if after is None:  # the intent stays: the next command finishes the deletion
        run.blocked.add(id)
        return replace(change, disposition="blocked", reason="the ledger was not written"), ledger
    write_approval(run.graphs.store, consumed(valid[0], intent.operation_id))
    remove_intent(run.graphs.store, intent.operation_id, run.findings)
    return replace(change, disposition="applied"), after


def _write_next(run: _Run, ledger: Ledger) -> Ledger | None:
    """Write the next revision over the one that this command read or wrote last."""
    following = replace(ledger, revision=ledger.revision + 1)
    return write_ledger(run.graphs.store, following, run.findings)


def _differs(after: Ledger, before: Ledger) -> bool:
    return replace(after, tag=None, cas=None).content() != before.content()
