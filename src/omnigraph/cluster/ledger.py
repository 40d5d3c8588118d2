"""The ledger: what was applied, as one object that is replaced by compare-and-swap.

Owns the paths of a cluster's storage and the format of ``state.json``. It must never decide what
is applied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from omnigraph.cluster.diagnostics import Findings
from omnigraph.errors import ObjectChanged, ObjectExists, ObjectNotFound, OmnigraphError
from omnigraph.settings import StorageSettings
from omnigraph.storage.failpoints import hit
from omnigraph.storage.locations import Location, parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore

STATE: Final = "__cluster/state.json"
LOCK: Final = "__cluster/lock.json"
RECOVERIES: Final = "__cluster/recoveries"
APPROVALS: Final = "__cluster/approvals"
_KEYS: Final = frozenset(
    {
        "version",
        "state_revision",
        "applied_revision",
        "resource_statuses",
        "approval_records",
        "recovery_records",
        "observations",
    }
)


@dataclass(frozen=True, slots=True)
class ClusterStore:
    """The storage root of a cluster."""

    location: Location
    objects: ObjectStore

    @classmethod
    def at(cls, root: str | Path, storage: StorageSettings) -> ClusterStore:
        location = parse_location(root)
        return cls(location, open_objects(location, storage))

    def graph_uri(self, id: str) -> str:
        return self.location.child(graph_path(id)).uri


def graph_path(id: str) -> str:
    return f"graphs/{id}.omni"


def payload_path(address: str, digest: str) -> str:
    """Where the text of an applied query or policy is kept."""
    kind, _, name = address.partition(".")
    suffix = "gq" if kind == "query" else "yaml"
    return f"__cluster/resources/{kind}/{name.replace('.', '/')}/{digest}.{suffix}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The content of ``state.json``, and the tag of the bytes it was read from."""

    revision: int = 0
    config_digest: str | None = None
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    statuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    approvals: tuple[Mapping[str, Any], ...] = ()
    recoveries: tuple[Mapping[str, Any], ...] = ()
    observations: tuple[Mapping[str, Any], ...] = ()
    cas: str | None = None
    tag: str | None = None

    def digest(self, address: str) -> str | None:
        found = self.resources.get(address)
        return None if found is None else str(found["digest"])

    def content(self) -> bytes:
        body = {
            "version": 1,
            "state_revision": self.revision,
            "applied_revision": {
                "config_digest": self.config_digest,
                "resources": {key: dict(self.resources[key]) for key in sorted(self.resources)},
            },
            "resource_statuses": {key: dict(self.statuses[key]) for key in sorted(self.statuses)},
            "approval_records": [dict(one) for one in self.approvals],
            "recovery_records": [dict(one) for one in self.recoveries],
            "observations": [dict(one) for one in self.observations],
        }
        return json.dumps(body, indent=2, ensure_ascii=False).encode() + b"\n"


def read_ledger(store: ClusterStore, findings: Findings) -> Ledger | None:
    """The ledger; None where there is none, or where a finding says why it cannot be read."""
    try:
        data, tag = store.objects.get_tagged(STATE)
    except ObjectNotFound:
        return None
    except OmnigraphError as error:
        findings.add("state_read_error", STATE, error.message)
        return None
    try:
        body = json.loads(data)
        unknown = sorted(body.keys() - _KEYS)
        if body.get("version") != 1:
            message = f"the version is {body.get('version')!r}; this program reads 1"
            findings.add("unsupported_state_version", STATE, message)
            return None
        if unknown:
            raise ValueError(f"unknown keys: {', '.join(unknown)}")
        applied = body["applied_revision"]
        resources = applied["resources"]
        if not all(isinstance(one["digest"], str) for one in resources.values()):
            raise ValueError("a digest is not a text")
        return Ledger(
            int(body["state_revision"]),
            applied["config_digest"],
            resources,
            body["resource_statuses"],
            tuple(body["approval_records"]),
            tuple(body["recovery_records"]),
            tuple(body["observations"]),
            f"sha256:{hashlib.sha256(data).hexdigest()}",
            tag,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        findings.add("invalid_state_json", STATE, f"it is not a ledger: {error!r}")
        return None


def write_ledger(store: ClusterStore, ledger: Ledger, findings: Findings) -> Ledger | None:
    """Replace the ledger that was read by this one.

    Returns it with the tag that it has now. None, with a finding, if another command was faster or
    if it could not be written.
    """
    content = ledger.content()
    hit("cluster.before_state")
    try:
        if ledger.tag is None:
            store.objects.put_if_absent(STATE, content)
        else:
            store.objects.replace(STATE, content, ledger.tag)
        stored, tag = store.objects.get_tagged(STATE)
    except (ObjectChanged, ObjectExists):
        _report_overtaken(findings)
        return None
    except OmnigraphError as error:
        findings.add("state_write_error", STATE, error.message)
        return None
    if stored != content:
        _report_overtaken(findings)
        return None
    hit("cluster.after_state")
    return replace(ledger, tag=tag, cas=f"sha256:{hashlib.sha256(content).hexdigest()}")


def _report_overtaken(findings: Findings) -> None:
    message = "another command changed the ledger meanwhile; run the command again"
    findings.add("state_cas_mismatch", STATE, message)
