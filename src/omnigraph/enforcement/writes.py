"""Writing verbs under a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from omnigraph.enforcement.guard import AccessGuard
from omnigraph.model.requests import CommitOptions, LoadRequest, StateRef
from omnigraph.policy.access import AccessScope, PolicyAction

if TYPE_CHECKING:
    from omnigraph.ingest.load import LoadResult, Progress
    from omnigraph.local.branches import LocalBranches
    from omnigraph.local.writes import LocalWrites
    from omnigraph.mutation.batch import Batch
    from omnigraph.mutation.mutation import MutationResult


class GovernedWrites:
    """``WriteBackend`` for one actor."""

    def __init__(self, inner: LocalWrites, branches: LocalBranches, guard: AccessGuard) -> None:
        self._inner = inner
        self._branches = branches
        self._guard = guard

    def write(self, branch: str, commit: CommitOptions) -> AbstractContextManager[Batch]:
        return self._inner.write(branch, self._guard.commit(commit, branch))

    def mutate(
        self,
        query: str,
        name: str | None,
        params: Mapping[str, Any] | None,
        branch: str,
        commit: CommitOptions,
    ) -> MutationResult:
        allowed = self._guard.commit(commit, branch)
        return self._inner.mutate(query, name, params, branch, allowed)

    def load(
        self,
        request: LoadRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadResult:
        source, branch = request.from_, request.branch
        start = StateRef(branch)
        if source is not None and branch not in self._branches.names():
            origin = self._guard.branch_of(source)
            scope = AccessScope(origin, branch)
            self._guard.require(PolicyAction.BRANCH_CREATE, scope)
            start = StateRef(at=source)
        return self._inner.load(request, self._guard.commit(commit, branch, start), progress)
