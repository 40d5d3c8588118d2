"""What dead commands left behind: each intent is finished, dropped or reported.

The decision looks at the graph, never at how far the dead command says it got.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.cluster.desired import DesiredState
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.graphs import ClusterGraphs
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.records import (
    GraphIntent,
    consumed,
    now,
    read_approvals,
    read_intents,
    write_approval,
)
from omnigraph.errors import OmnigraphError


def sweep(
    graphs: ClusterGraphs, ledger: Ledger, desired: DesiredState, findings: Findings
) -> tuple[Ledger, list[str], set[str]]:
    """The ledger with finished steps, the intents that are settled, and graphs that are blocked.

    The settled intents are removed once the ledger is written.
    """
    settled: list[str] = []
    blocked: set[str] = set()
    for intent in read_intents(graphs.store, findings):
        before = ledger
        ledger, done = _settle(graphs, ledger, desired, intent, findings)
        if done:
            settled.append(intent.operation_id)
        else:
            blocked.add(intent.graph_id)
        if ledger is not before:
            message = f"{intent.kind} of {intent.graph_id} was finished by an earlier command"
            address = f"graph.{intent.graph_id}"
            findings.add("cluster_recovery_rolled_forward", address, message)
            record = {"operation_id": intent.operation_id, "kind": intent.kind, "at": now()}
            ledger = replace(ledger, recoveries=(*ledger.recoveries, record))
    return ledger, settled, blocked


def _settle(
    graphs: ClusterGraphs,
    ledger: Ledger,
    desired: DesiredState,
    intent: GraphIntent,
    findings: Findings,
) -> tuple[Ledger, bool]:
    id, digest = intent.graph_id, intent.desired_schema_digest
    address = f"graph.{id}"
    seen = graphs.observe(id, digest)
    if seen["error"] is not None:
        findings.add("graph_observation_error", address, seen["error"])
        return ledger, False
    if intent.kind == "graph_delete":
        if seen["exists"]:
            message = "an earlier command did not delete it completely; it is proposed again"
            findings.add("graph_delete_incomplete", address, message, "warning")
            return ledger, True
        _consume(graphs, intent, findings)
        return without_graph(ledger, id), True
    if not seen["exists"]:
        return ledger, True  # nothing happened, or nothing that is a graph
    reached = seen["schema_matches_desired"] or _is_equivalent(graphs, desired, id, digest)
    if intent.kind == "graph_create":
        if not reached:
            message = "the graph exists with another schema than the one it was created with"
            findings.add("graph_create_incomplete", address, message)
            return ledger, False
        if address in ledger.resources:
            return ledger, True
        return with_schema(ledger, id, str(digest)), True
    if reached:
        same = ledger.digest(f"schema.{id}") == digest
        return (ledger if same else with_schema(ledger, id, str(digest))), True
    if seen["schema_digest"] == ledger.digest(f"schema.{id}"):
        return ledger, True  # not applied; it is planned again
    message = "its schema is neither the applied nor the intended one"
    findings.add("conflicting_graph_manifest_observation", address, message)
    return ledger, False


def _is_equivalent(
    graphs: ClusterGraphs, desired: DesiredState, id: str, digest: str | None
) -> bool:
    """Whether the declared schema is the intended one, and needs no step."""
    resource = desired.resources.get(f"schema.{id}")
    if resource is None or resource.digest != digest:
        return False
    try:
        return not graphs.plan(id, resource.data.decode(), str(resource.path)).steps
    except OmnigraphError:
        return False


def _consume(graphs: ClusterGraphs, intent: GraphIntent, findings: Findings) -> None:
    for approval in read_approvals(graphs.store, findings):
        if approval.approval_id == intent.approval_id and approval.consumed_at is None:
            write_approval(graphs.store, consumed(approval, intent.operation_id))


def with_schema(ledger: Ledger, id: str, digest: str) -> Ledger:
    """The ledger with a graph whose schema was applied; its own digest is derived later."""
    resources = dict(ledger.resources)
    resources.setdefault(f"graph.{id}", {"digest": ""})
    resources[f"schema.{id}"] = {"digest": digest}
    return replace(ledger, resources=resources)


def without_graph(ledger: Ledger, id: str) -> Ledger:
    """The ledger without a graph and everything in it."""

    def is_of_graph(address: str) -> bool:
        exact = (f"graph.{id}", f"schema.{id}")
        return address in exact or address.startswith(f"query.{id}.")

    return replace(
        ledger,
        resources={a: one for a, one in ledger.resources.items() if not is_of_graph(a)},
        statuses={a: one for a, one in ledger.statuses.items() if not is_of_graph(a)},
    )
