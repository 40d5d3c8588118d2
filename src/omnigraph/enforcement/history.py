"""Questions about the past under a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.enforcement.guard import AccessGuard
from omnigraph.model.requests import ChangeFilter, CommitFilter, FeedPosition, PageSize, StateRef
from omnigraph.policy.access import AccessScope, PolicyAction

if TYPE_CHECKING:
    from omnigraph.catalog.rows import Commit
    from omnigraph.history.blame import Blame
    from omnigraph.history.entity import EntityHistory
    from omnigraph.history.feed import ChangesPage, FeedPage
    from omnigraph.local.history import LocalHistory


class GovernedHistory:
    """``HistoryBackend`` for one actor."""

    def __init__(self, inner: LocalHistory, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def log(self, branch: str, filter: CommitFilter, after: str | None) -> Iterator[Commit]:
        self._guard.require(PolicyAction.READ, AccessScope(branch))
        return self._inner.log(branch, filter, after)

    def ancestry(self, branch: str) -> Iterator[tuple[Commit, tuple[str, ...]]]:
        self._guard.require(PolicyAction.READ, AccessScope(branch))
        return self._inner.ancestry(branch)

    def commit(self, commit_id: str) -> Commit:
        found = self._inner.commit(commit_id)
        self._guard.require(PolicyAction.READ, AccessScope(found.branch))
        return found

    def commit_changes(
        self, commit_id: str, filter: ChangeFilter, size: PageSize, page_token: str | None
    ) -> ChangesPage:
        branch = self._inner.commit(commit_id).branch
        self._guard.require(PolicyAction.READ, AccessScope(branch))
        state = StateRef(at=commit_id)
        self._guard.types(PolicyAction.READ, branch, state, filter.types or None)
        return self._inner.commit_changes(commit_id, filter, size, page_token)

    def changes(
        self,
        branch: str,
        position: FeedPosition,
        filter: ChangeFilter,
        size: PageSize,
        commits_max: int | None,
    ) -> FeedPage:
        name = branch.strip()
        self._guard.state(PolicyAction.READ, StateRef(name), filter.types or None)
        return self._inner.changes(name, position, filter, size, commits_max)

    def baseline(self, branch: str, filter: ChangeFilter) -> Iterator[bytes]:
        name = branch.strip()
        self._guard.state(PolicyAction.EXPORT, StateRef(name), filter.types or None)
        return self._inner.baseline(name, filter)

    def entity(self, type: str, id: str, branch: str) -> EntityHistory:
        self._guard.state(PolicyAction.READ, StateRef(branch), [type])
        return self._inner.entity(type, id, branch)

    def blame(self, type: str, id: str, branch: str) -> list[Blame]:
        self._guard.state(PolicyAction.READ, StateRef(branch), [type])
        return self._inner.blame(type, id, branch)
