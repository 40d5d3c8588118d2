"""What a cluster command has to say: codes, severities, and the places they are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

Severity = Literal["error", "warning"]

WARNINGS: Final = frozenset(
    {
        "external_blob_ingress_default_deny",
        "query_dir_empty",
        "query_typecheck_skipped",
        "state_lock_disabled",
        "state_lock_taken_over",
        "apply_dependency_blocked",
        "apply_unsupported_change",
        "approval_stale",
        "cluster_recovery_pending",
        "cluster_recovery_rolled_forward",
        "graph_create_skipped",
        "graph_delete_skipped",
        "schema_apply_skipped",
        "recovery_sidecar_read_error",
        "recovery_sidecar_cleanup_failed",
    }
)
"""Codes that do not make a command fail; every other code is an error."""


@dataclass(frozen=True, slots=True)
class ClusterDiagnostic:
    """One finding."""

    code: str
    path: str
    message: str
    severity: Severity

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": self.severity,
            "path": self.path,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of one command, in the order they were made."""

    items: list[ClusterDiagnostic] = field(default_factory=list)

    def add(self, code: str, path: str, message: str, severity: Severity | None = None) -> None:
        chosen: Severity = severity or ("warning" if code in WARNINGS else "error")
        self.items.append(ClusterDiagnostic(code, path, message, chosen))

    @property
    def ok(self) -> bool:
        return all(item.severity != "error" for item in self.items)

    def codes(self) -> list[str]:
        return [item.code for item in self.items]

    def to_json(self) -> list[dict[str, Any]]:
        return [item.to_json() for item in self.items]
