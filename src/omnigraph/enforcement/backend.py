"""A backend under a policy: one wrapper per capability, each call asked for before it goes on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.enforcement.guard import AccessGuard, States
from omnigraph.enforcement.history import GovernedHistory
from omnigraph.enforcement.maintenance import GovernedBulk, GovernedMaintenance
from omnigraph.enforcement.reads import GovernedReads
from omnigraph.enforcement.versions import (
    GovernedBranches,
    GovernedMerges,
    GovernedSchemas,
    GovernedTags,
)
from omnigraph.enforcement.writes import GovernedWrites
from omnigraph.policy.decision import PolicyEvaluator

if TYPE_CHECKING:
    from omnigraph.local.backend import LocalBackend


class GovernedBackend:
    """A backend whose calls are those of one actor, as far as a policy allows them."""

    def __init__(self, inner: LocalBackend, evaluator: PolicyEvaluator, actor: str | None) -> None:
        self.inner = inner
        self._evaluator = evaluator
        self._actor = actor
        guard = AccessGuard(evaluator, actor, States(inner.reads.snapshot, inner.reads.schema))
        self.reads = GovernedReads(inner.reads, guard)
        self.writes = GovernedWrites(inner.writes, inner.branches, guard)
        self.merges = GovernedMerges(inner.merges, guard)
        self.schemas = GovernedSchemas(inner.schemas, guard)
        self.branches = GovernedBranches(inner.branches, guard)
        self.tags = GovernedTags(inner.tags, guard)
        self.history = GovernedHistory(inner.history, guard)
        self.maintenance = GovernedMaintenance(inner.maintenance, guard)
        self.bulk = GovernedBulk(inner.bulk, guard)

    @cached_property
    def uri(self) -> str:
        """Where the graph is."""
        return self.inner.uri

    def __reduce__(self) -> tuple[Any, ...]:
        return GovernedBackend, (self.inner, self._evaluator, self._actor)
