"""The commands of a cluster: each reads files and the ledger, and answers with one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnigraph.cluster.apply import apply_plan
from omnigraph.cluster.config import CONFIG_FILE, read_config
from omnigraph.cluster.desired import DesiredState, read_desired, sha256
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.graphs import ClusterGraphs
from omnigraph.cluster.ledger import (
    LOCK,
    STATE,
    ClusterStore,
    Ledger,
    payload_path,
    read_ledger,
    write_ledger,
)
from omnigraph.cluster.lock import force_unlock, locked, read_lock
from omnigraph.cluster.plan import ResourceChange, blast_radius, plan_changes
from omnigraph.cluster.records import new_approval, read_approvals, read_intents, write_approval
from omnigraph.errors import InvalidInput, ObjectNotFound, OmnigraphError
from omnigraph.settings import Settings


@dataclass(frozen=True, slots=True)
class Cluster:
    """A configuration folder, and the storage it points to."""

    folder: Path
    settings: Settings

    def validate(self) -> dict[str, Any]:
        """Parse and check everything; needs neither storage nor secrets."""
        findings = Findings()
        desired = read_desired(self.folder, findings)
        body = self._body(findings)
        if desired is not None:
            body |= {
                "resource_digests": desired.digests(),
                "resources": [one.to_json() for _, one in sorted(desired.resources.items())],
                "dependencies": _dependencies(desired),
            }
        return body

    def plan(self) -> dict[str, Any]:
        """What an apply would do; changes nothing."""
        findings = Findings()
        desired = read_desired(self.folder, findings)
        if desired is None:
            return self._body(findings) | {"changes": []}
        store = self._store(desired.config.storage)
        with locked(store, "plan", findings, enabled=desired.config.locks) as lock:
            if lock is None:
                return self._body(findings) | {"changes": []}
            ledger = read_ledger(store, findings)
            if not findings.ok:
                return self._body(findings) | {"changes": []}
            known = ledger or Ledger()
            graphs = ClusterGraphs(store, self.settings)
            changes = [
                _previewed(graphs, desired, one, findings) for one in _planned(desired, known)
            ]
            approvals = read_approvals(store, findings)
            required = [
                {
                    "resource": one.resource,
                    "reason": "deleting a graph loses its data",
                    "satisfied": any(
                        a.covers(one.resource, desired.digest, one.before) for a in approvals
                    ),
                }
                for one in changes
                if one.needs_approval
            ]
            observations = _observations(store, ledger, findings, acquired=lock)
        return self._body(findings) | {
            "desired_revision": {"config_digest": desired.digest},
            "resource_digests": desired.digests(),
            "dependencies": _dependencies(desired),
            "state_observations": observations,
            "changes": [one.to_json() for one in changes],
            "blast_radius": blast_radius(desired, changes),
            "approvals_required": required,
        }

    def apply(self, actor: str | None) -> dict[str, Any]:
        """Make the applied state the declared one."""
        findings = Findings()
        desired = read_desired(self.folder, findings)
        if desired is None:
            return self._body(findings) | {"converged": False}
        store = self._store(desired.config.storage)
        with locked(store, "apply", findings, enabled=desired.config.locks) as lock:
            if lock is None:
                return self._body(findings) | {"converged": False}
            ledger = read_ledger(store, findings)
            if ledger is None or not findings.ok:
                if findings.ok:
                    message = "there is no ledger yet; run `omnigraph cluster import`"
                    findings.add("state_missing", STATE, message)
                return self._body(findings) | {"converged": False}
            graphs = ClusterGraphs(store, self.settings)
            outcome = apply_plan(graphs, desired, ledger, findings, actor)
            observations = _observations(store, outcome.ledger, findings, acquired=lock)
        body = self._body(findings) | {
            "desired_revision": {"config_digest": desired.digest},
            "state_observations": observations,
            "changes": [one.to_json() for one in outcome.changes],
            "applied_count": outcome.count("applied") + outcome.count("derived"),
            "deferred_count": outcome.count("deferred"),
            "converged": outcome.converged,
            "state_written": outcome.state_written,
            "resource_statuses": _plain(outcome.ledger.statuses),
        }
        return body if actor is None else {**body, "actor": actor}

    def approve(self, address: str, actor: str | None) -> dict[str, Any]:
        """Consent to a change that loses data, as it is planned now."""
        if actor is None:
            raise InvalidInput("an approval needs an actor", remedy="Name yourself with --as.")
        findings = Findings()
        desired = read_desired(self.folder, findings)
        if desired is None:
            return self._body(findings)
        store = self._store(desired.config.storage)
        with locked(store, "approve", findings, enabled=desired.config.locks) as lock:
            ledger = None if lock is None else read_ledger(store, findings)
            if ledger is None:
                if findings.ok:
                    findings.add("state_missing", STATE, "there is no ledger yet")
                return self._body(findings)
            planned = [one for one in _planned(desired, ledger) if one.resource == address]
            if not planned or not planned[0].needs_approval:
                message = "no planned change of it needs an approval"
                findings.add("approval_not_required", address, message)
                return self._body(findings)
            reason = "deleting a graph loses its data"
            made = new_approval(address, reason, desired.digest, planned[0].before, actor)
            try:
                write_approval(store, made)
            except OmnigraphError as error:
                findings.add("approval_write_error", address, error.message)
                return self._body(findings)
        return self._body(findings) | {
            "approval_id": made.approval_id,
            "resource": address,
            "operation": made.operation,
            "approved_by": actor,
        }

    def status(self) -> dict[str, Any]:
        """The ledger, the lock and the catalog, without a look at the graphs."""
        findings = Findings()
        store = self._configured(findings)
        if store is None:
            return self._body(findings)
        ledger = read_ledger(store, findings)
        if ledger is None and findings.ok:
            message = "there is no ledger yet; run `omnigraph cluster import`"
            findings.add("state_missing", STATE, message, "warning")
        known = ledger or Ledger()
        for address, problem in damaged_payloads(store, known):
            findings.add(problem, address, "the stored text is missing or damaged")
        for intent in read_intents(store, findings):
            message = f"{intent.kind} was begun at {intent.started_at} and is not finished"
            findings.add("cluster_recovery_pending", f"graph.{intent.graph_id}", message)
        return self._body(findings) | {
            "state_observations": _observations(store, ledger, findings),
            "resource_digests": {a: known.digest(a) for a in sorted(known.resources)},
            "resource_statuses": _plain(known.statuses),
            "observations": _plain_list(known.observations),
        }

    def refresh(self) -> dict[str, Any]:
        """Look at every graph and note what is there."""
        return self._observe("refresh")

    def import_state(self) -> dict[str, Any]:
        """Begin a ledger with what is there already."""
        return self._observe("import")

    def force_unlock(self, lock_id: str) -> dict[str, Any]:
        """Remove the lock of this exact id."""
        findings = Findings()
        store = self._configured(findings)
        if store is None:
            return self._body(findings) | {"lock_removed": False}
        removed = force_unlock(store, lock_id, findings)
        observations = _observations(store, read_ledger(store, findings), findings)
        return self._body(findings) | {
            "state_observations": observations,
            "lock_removed": removed,
        }

    def _observe(self, operation: str) -> dict[str, Any]:
        findings = Findings()
        desired = read_desired(self.folder, findings)
        if desired is None:
            return self._body(findings) | {"operation": operation}
        store = self._store(desired.config.storage)
        with locked(store, operation, findings, enabled=desired.config.locks) as lock:
            ledger = None if lock is None else read_ledger(store, findings)
            if findings.ok and operation == "import" and ledger is not None:
                findings.add("state_already_exists", STATE, "there is a ledger; use refresh")
            if findings.ok and operation == "refresh" and ledger is None:
                findings.add("state_missing", STATE, "there is no ledger; use import")
            if findings.ok:
                observed = self._observed(store, desired, ledger or Ledger(), findings)
                write_ledger(store, observed, findings)
        fresh = read_ledger(store, Findings())
        known = fresh or Ledger()
        return self._body(findings) | {
            "operation": operation,
            "state_observations": _observations(store, fresh, findings),
            "resource_digests": {a: known.digest(a) for a in sorted(known.resources)},
            "resource_statuses": _plain(known.statuses),
            "observations": _plain_list(known.observations),
        }

    def _observed(
        self, store: ClusterStore, desired: DesiredState, ledger: Ledger, findings: Findings
    ) -> Ledger:
        """The ledger with what every declared graph is like; what is gone is planned again."""
        graphs = ClusterGraphs(store, self.settings)
        resources = dict(ledger.resources)
        statuses = dict(ledger.statuses)
        seen = []
        for graph in desired.config.graphs:
            schema, owner = f"schema.{graph.id}", f"graph.{graph.id}"
            one = graphs.observe(graph.id, desired.resources[schema].digest)
            seen.append(one)
            if one["error"] is not None:
                findings.add("graph_observation_error", owner, one["error"])
            elif not one["exists"]:
                resources.pop(schema, None)
                resources.pop(owner, None)
            else:
                resources.setdefault(owner, {"digest": ""})
                if ledger.digest(schema) not in (None, one["schema_digest"]):
                    statuses[schema] = {"status": "drifted"}
                resources[schema] = {"digest": one["schema_digest"]}
        for address, _ in damaged_payloads(store, replace(ledger, resources=resources)):
            resources.pop(address, None)
        return replace(
            ledger,
            revision=ledger.revision + 1,
            resources=resources,
            statuses=statuses,
            observations=tuple(seen),
        )

    def _configured(self, findings: Findings) -> ClusterStore | None:
        config = read_config(self.folder, findings)
        return None if config is None or not findings.ok else self._store(config.storage)

    def _store(self, storage: str | None) -> ClusterStore:
        return ClusterStore.at(storage or self.folder, self.settings.storage)

    def _body(self, findings: Findings) -> dict[str, Any]:
        return {
            "ok": findings.ok,
            "config_dir": str(self.folder),
            "config_file": str(self.folder / CONFIG_FILE),
            "diagnostics": findings.to_json(),
        }


def damaged_payloads(store: ClusterStore, ledger: Ledger) -> list[tuple[str, str]]:
    """Applied queries and policies whose stored text is not what was applied, with the code."""
    found = []
    for address in sorted(ledger.resources):
        digest = ledger.digest(address)
        if address.partition(".")[0] not in ("query", "policy") or digest is None:
            continue
        try:
            if sha256(store.objects.get(payload_path(address, digest))) != digest:
                found.append((address, "catalog_payload_digest_mismatch"))
        except ObjectNotFound:
            found.append((address, "catalog_payload_missing"))
        except OmnigraphError:
            found.append((address, "catalog_payload_read_error"))
    return found


def _planned(desired: DesiredState, ledger: Ledger) -> list[ResourceChange]:
    planned = plan_changes(desired, ledger)
    doomed = {change.graph_id for change in planned if change.needs_approval}
    return [
        change
        for change in planned
        if change.needs_approval or not (change.operation == "delete" and change.graph_id in doomed)
    ]


def _previewed(
    graphs: ClusterGraphs, desired: DesiredState, change: ResourceChange, findings: Findings
) -> ResourceChange:
    """A change of a schema with the steps of its migration."""
    if change.kind != "schema" or change.operation != "update":
        return change
    resource = desired.resources[change.resource]
    try:
        found = graphs.plan(str(change.graph_id), resource.data.decode(), str(resource.path))
    except OmnigraphError as error:
        findings.add("schema_preview_unavailable", change.resource, error.message, "warning")
        return change
    if found.supported:
        return replace(change, migration=found.to_json())
    reasons = "; ".join(step.reason or step.kind for step in found.steps)
    findings.add("apply_unsupported_change", change.resource, reasons)
    return replace(change, disposition="blocked", reason=reasons, migration=found.to_json())


def _observations(
    store: ClusterStore, ledger: Ledger | None, findings: Findings, acquired: str | None = None
) -> dict[str, Any]:
    known = ledger or Ledger()
    body: dict[str, Any] = {
        "state_path": STATE,
        "lock_path": LOCK,
        "state_found": ledger is not None,
        "state_revision": known.revision,
        "resource_count": len(known.resources),
        "lock_acquired": bool(acquired),
    }
    if known.config_digest is not None:
        body["applied_config_digest"] = known.config_digest
    if known.cas is not None:
        body["state_cas"] = known.cas
    if acquired:
        return {**body, "locked": True, "acquired_lock_id": acquired}
    held = read_lock(store, findings)
    return {**body, "locked": held is not None, **({} if held is None else held.to_json())}


def _dependencies(desired: DesiredState) -> list[dict[str, str]]:
    return [{"from": source, "to": target} for source, target in desired.dependencies]


def _plain(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: dict(given[key]) for key in sorted(given)}


def _plain_list(given: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    return [dict(one) for one in given]
