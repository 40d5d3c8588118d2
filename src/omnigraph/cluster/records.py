"""Records beside the ledger: intents of steps in flight, and approvals of what loses data.

An intent is written before its step and removed after the ledger was written, so that the next
command knows what a dead one was doing. Approvals are kept after use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.ledger import APPROVALS, RECOVERIES, ClusterStore
from omnigraph.errors import OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit

StepKind = Literal["graph_create", "schema_apply", "graph_delete"]


@dataclass(frozen=True, slots=True)
class GraphIntent:
    """A step on a graph that is about to happen."""

    operation_id: str
    started_at: str
    actor: str | None
    kind: StepKind
    graph_id: str
    graph_uri: str
    desired_schema_digest: str | None
    state_cas_base: str | None
    approval_id: str | None = None
    schema_version: int = 1


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's consent to one change, bound to what it was given for."""

    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str
    consumed_at: str | None = None
    consumed_by_operation: str | None = None
    schema_version: int = 1

    def covers(self, resource: str, config_digest: str, before: str | None) -> bool:
        """Whether it consents to deleting this resource as it is now."""
        return (
            self.resource == resource
            and self.consumed_at is None
            and self.bound_config_digest == config_digest
            and self.bound_before_digest == before
        )


_Record = TypeVar("_Record", GraphIntent, Approval)


def now() -> str:
    return datetime.now(UTC).isoformat()


def write_intent(store: ClusterStore, intent: GraphIntent) -> None:
    hit("cluster.before_intent")
    store.objects.put(f"{RECOVERIES}/{intent.operation_id}.json", _content(intent))
    hit("cluster.after_intent")


def remove_intent(store: ClusterStore, operation_id: str, findings: Findings) -> None:
    path = f"{RECOVERIES}/{operation_id}.json"
    try:
        store.objects.delete(path)
    except OmnigraphError as error:
        findings.add("recovery_sidecar_cleanup_failed", path, error.message)


def read_intents(store: ClusterStore, findings: Findings) -> list[GraphIntent]:
    return _read_all(store, RECOVERIES, GraphIntent, findings, "recovery_sidecar_read_error")


def write_approval(store: ClusterStore, approval: Approval) -> None:
    store.objects.put(f"{APPROVALS}/{approval.approval_id}.json", _content(approval))


def read_approvals(store: ClusterStore, findings: Findings) -> list[Approval]:
    return _read_all(store, APPROVALS, Approval, findings, "approval_stale")


def new_approval(
    resource: str, reason: str, config_digest: str, before: str | None, by: str
) -> Approval:
    return Approval(new_ulid(), resource, "delete", reason, config_digest, before, None, by, now())


def consumed(approval: Approval, operation_id: str) -> Approval:
    return replace(approval, consumed_at=now(), consumed_by_operation=operation_id)


def _content(record: GraphIntent | Approval) -> bytes:
    known = {key: value for key, value in asdict(record).items() if value is not None}
    return json.dumps(known, indent=2, ensure_ascii=False).encode() + b"\n"


def _read_all(
    store: ClusterStore, folder: str, kind: type[_Record], findings: Findings, code: str
) -> list[_Record]:
    found = []
    for info in store.objects.list(folder):
        try:
            found.append(kind(**_known(kind, json.loads(store.objects.get(info.path)))))
        except (OmnigraphError, ValueError, TypeError) as error:
            findings.add(code, info.path, f"it cannot be read: {error}")
    return found


def _known(kind: type[_Record], body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record: those that it may lack are null."""
    missing = {"actor", "desired_schema_digest", "state_cas_base", "bound_before_digest"}
    missing.add("bound_after_digest")
    names = {one.name for one in fields(kind)}
    return {**dict.fromkeys(names & missing), **{k: body[k] for k in body if k in names}}
