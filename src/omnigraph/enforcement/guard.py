"""The one place where an actor's call on a graph is allowed or refused.

Owns which state and which types a question is about. The answer is the policy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Forbidden
from omnigraph.model.requests import CommitOptions, StateRef
from omnigraph.policy.access import EVERYWHERE, AccessScope, PolicyAction
from omnigraph.policy.decision import PolicyDecision, PolicyEvaluator, denied

if TYPE_CHECKING:
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.lang.schema import AcceptedSchema


@dataclass(frozen=True, slots=True)
class States:
    """What a guard needs to know of a graph: which state a reference names, and its schema."""

    snapshot: Callable[[StateRef], SnapshotPins]
    schema: Callable[[StateRef], AcceptedSchema]


@dataclass(frozen=True, slots=True)
class AccessGuard:
    """Asks the policy on behalf of one actor."""

    evaluator: PolicyEvaluator
    actor: str | None
    states: States

    def require(self, action: PolicyAction, scope: AccessScope = EVERYWHERE) -> PolicyDecision:
        """Raise ``Forbidden`` unless the actor may do this."""
        return self.evaluator.require(self.actor, action, scope)

    def branch_of(self, ref: str) -> str:
        """The branch of the state that a reference names."""
        return self.states.snapshot(StateRef(at=ref)).branch.name

    def state(
        self, action: PolicyAction, state: StateRef, types: Iterable[str] | None = ()
    ) -> StateRef:
        """Require an action on a state and some of its types; None means all types.

        Returns the state under a name that cannot be moved to another branch meanwhile.
        """
        if state.at is None:
            branch = "main" if state.branch is None else state.branch
            self.require(action, AccessScope(branch))
            fixed = state
        else:
            found = self.states.snapshot(state)
            branch = found.branch.name
            self.require(action, AccessScope(branch))
            fixed = replace(state, at=found.commit_id)
        if types is None or self.evaluator.bundle.has_type_rules:
            self.types(action, branch, fixed, types)
        return fixed

    def types(
        self, action: PolicyAction, branch: str, state: StateRef, types: Iterable[str] | None
    ) -> None:
        """Require an action on types; None means all types of the state."""
        if not self.evaluator.bundle.has_type_rules:
            return
        names = _names(self.states.schema(state)) if types is None else types
        for name in sorted({name.rpartition(":")[2] for name in names}):
            self.require(action, AccessScope(branch, type=name))

    def denied_types(self, action: PolicyAction, state: StateRef) -> frozenset[str]:
        """The types of a state that the actor may not touch."""
        if not self.evaluator.bundle.has_type_rules:
            return frozenset()
        branch = "main" if state.branch is None else state.branch
        names = _names(self.states.schema(state))
        return self.evaluator.denied_types(self.actor, action, branch, names)

    def commit(
        self, commit: CommitOptions, branch: str, schema_of: StateRef | None = None
    ) -> CommitOptions:
        """Require a change of a branch; the commit is recorded as the actor's.

        Types that the actor may not change are refused when the write is prepared.
        """
        self.require(PolicyAction.CHANGE, AccessScope(branch))
        if self.evaluator.bundle.has_type_rules:
            names = _names(self.states.schema(schema_of or StateRef(branch)))
            closed = self.evaluator.denied_types(self.actor, PolicyAction.CHANGE, branch, names)
            commit = replace(commit, denied_types=closed)
        return self.recorded(commit)

    def recorded(self, commit: CommitOptions) -> CommitOptions:
        """The options with the actor of this guard."""
        self.author(commit.actor)
        return replace(commit, actor=self.actor)

    def author(self, claimed: str | None) -> str | None:
        """The actor of this guard; a call cannot claim another one."""
        if claimed is not None and claimed != self.actor:
            raise Forbidden(
                f"a write of actor '{self.actor}' cannot be recorded as '{claimed}'",
                remedy="Leave the actor out: it is the one the graph was opened with.",
                details={"actor": self.actor, "claimed": claimed},
            )
        return self.actor

    def merge(self, source: str, target: str, *, delete_source: bool) -> None:
        """Require a merge; one that needs approvals goes through a review."""
        scope = AccessScope(source, target)
        decision = self.require(PolicyAction.BRANCH_MERGE, scope)
        if delete_source:
            self.require(PolicyAction.BRANCH_DELETE, AccessScope(target_branch=source))
        needed = self.evaluator.required_approvals(target)
        if needed:
            missing = "; ".join(f"{one.approvals} of group '{one.approvers}'" for one in needed)
            message = f"a merge into branch '{target}' needs approvals: {missing}"
            raise denied(replace(decision, allowed=False, rule=needed[0].id, message=message))


def _names(schema: Any) -> list[str]:
    return [*schema.nodes, *schema.edges]
