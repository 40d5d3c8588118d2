"""Recovery of a whole graph: lists pending writes, resolves them, sets unreadable records aside.

Listing changes nothing. ``recover`` resolves the abandoned writes of every branch; a record that
cannot be read is reported, and set aside only on request.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.repository import Repository
from omnigraph.errors import Conflict, CorruptData, NotFound, OmnigraphError
from omnigraph.storage.paths import RECOVERY_PREFIX
from omnigraph.transaction.recovery.audit import read_audit
from omnigraph.transaction.recovery.decision import Verdict, decide
from omnigraph.transaction.recovery.pending import PendingRecord
from omnigraph.transaction.recovery.recover import Recovery, ResolvedWrite

log = logging.getLogger("omnigraph.recovery")

SET_ASIDE_PREFIX = f"{RECOVERY_PREFIX}_set_aside"
_OUTLOOKS = {
    Verdict.PUBLISHED: "it is published; only its record is left to remove",
    Verdict.FORWARD: "it will be rolled forward",
    Verdict.BACK: "it will be rolled back",
}


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """One recovery record and its outlook, for reports."""

    path: str
    operation_id: str
    branch: str | None
    kind: str | None
    actor: str | None
    created_at_us: int | None
    state: str
    outlook: str

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "operation_id": self.operation_id,
            "branch": self.branch,
            "kind": self.kind,
            "actor_id": self.actor,
            "created_at": self.created_at_us,
            "state": self.state,
            "outlook": self.outlook,
        }


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What ``recover`` resolved, set aside and could not resolve."""

    resolved: list[ResolvedWrite]
    unreadable: list[str]
    set_aside: list[str]
    unresolved: dict[str, OmnigraphError] = field(default_factory=dict)  # by branch


class GraphRecovery:
    """Inspects and runs recovery for all branches of a graph."""

    def __init__(self, repository: Repository, recovery: Recovery) -> None:
        self._repository = repository
        self._recovery = recovery

    def recover(self, *, set_aside: bool = False) -> RecoveryReport:
        """Resolve the abandoned records of every branch. One list call when there are none."""
        result = RecoveryReport([], [], [])
        waiting = self._recovery.pending.incarnations()
        live = self._live() if waiting else {}
        for incarnation in waiting:
            branch = live.get(incarnation)
            unreadable = self._recovery.pending.unreadable(incarnation)
            if unreadable and set_aside:
                for path in unreadable:
                    self._set_aside(branch, incarnation, path)
                    result.set_aside.append(path)
            elif unreadable:
                log.warning("unreadable recovery records: %s", ", ".join(unreadable))
                result.unreadable.extend(unreadable)
                continue
            if branch is None:
                result.resolved.extend(self._recovery.discard(incarnation))
                continue
            try:
                result.resolved.extend(self._recovery.resolve(branch))
            except (CorruptData, NotFound, Conflict) as problem:
                # Damage on one branch blocks writes to that branch only.
                log.warning(
                    "unfinished writes to %s could not be resolved: %s",
                    branch.name,
                    problem.message,
                )
                result.unresolved[branch.name] = problem
        return result

    def pending(self) -> list[PendingWrite]:
        """Every record with its state and outlook."""
        found = []
        live = self._live()
        for incarnation in self._recovery.pending.incarnations():
            branch = live.get(incarnation)
            problems = self._recovery.pending.unreadable(incarnation)
            found += [_unreadable(path, branch, p) for path, p in problems.items()]
            if not problems:
                found += [
                    self._describe(pending, branch)
                    for pending in self._recovery.pending.of_branch(incarnation)
                ]
        return found

    def finished(self) -> list[dict[str, Any]]:
        """Every finished recovery, newest first."""
        return [row.to_json() for row in read_audit(self._repository.tables)]

    def _live(self) -> dict[str, Branch]:
        branches = all_branches(self._repository.main.current()).values()
        return {branch.incarnation: branch for branch in branches}

    def _describe(self, pending: PendingRecord, branch: Branch | None) -> PendingWrite:
        record = pending.record
        if branch is None:
            state, outlook = "orphaned", "its branch is gone; it will be discarded"
        elif self._recovery.pending.cause_to_resolve(pending) is None:
            state, outlook = "in progress", "its owner is alive; nothing will be done to it"
        else:
            newest = self._repository.manifest(branch).current()
            try:
                decision = decide(self._repository.tables, record, newest, aborted=pending.aborted)
            except CorruptData as problem:
                state, outlook = "damaged", f"it cannot be resolved: {problem.message}"
            else:
                state, outlook = "abandoned", _OUTLOOKS[decision.verdict]
                outlook += ", by the next write to the branch or `omnigraph recover`"
        actor = None if record.commit is None else record.commit.actor
        return PendingWrite(
            pending.path,
            record.operation_id,
            record.branch,
            record.kind,
            actor,
            record.created_at_us,
            state,
            outlook,
        )

    def _set_aside(self, branch: Branch | None, incarnation: str, path: str) -> None:
        """Roll back the operation of an unreadable record, and keep the file for inspection."""
        operation_id = path.split("/")[-1].removesuffix(".json")
        self._recovery.set_aside(branch, incarnation, operation_id)
        self._repository.objects.rename(path, path.replace(RECOVERY_PREFIX, SET_ASIDE_PREFIX, 1))


def _unreadable(path: str, branch: Branch | None, problem: CorruptData) -> PendingWrite:
    operation_id = path.split("/")[-1].removesuffix(".json")
    outlook = f"{problem.message}; `omnigraph recover --set-aside` undoes it and keeps the file"
    name = None if branch is None else branch.name
    return PendingWrite(path, operation_id, name, None, None, None, "unreadable", outlook)
