"""Branches, tags, merges and schemas under a policy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.enforcement.guard import AccessGuard
from omnigraph.model.requests import (
    CommitOptions,
    MergeDecisions,
    MergeRequest,
    RestoreRequest,
    SchemaRequest,
    StateRef,
)
from omnigraph.policy.access import AccessScope, PolicyAction

if TYPE_CHECKING:
    from omnigraph.catalog.branches.registry import Branch
    from omnigraph.catalog.branches.tags import Tag
    from omnigraph.catalog.rows import Commit
    from omnigraph.evolution.apply import SchemaResult
    from omnigraph.lang.schema import SchemaPlan
    from omnigraph.local.branches import LocalBranches, LocalTags
    from omnigraph.local.merges import LocalMerges
    from omnigraph.local.schemas import LocalSchemas
    from omnigraph.merge.merge import MergeResult


class GovernedBranches:
    """``BranchBackend`` for one actor."""

    def __init__(self, inner: LocalBranches, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def names(self) -> list[str]:
        self._guard.require(PolicyAction.READ)
        return self._inner.names()

    def create(
        self, name: str, from_: str, actor: str | None, idempotency_key: str | None
    ) -> Branch:
        scope = AccessScope(self._guard.branch_of(from_), name)
        self._guard.require(PolicyAction.BRANCH_CREATE, scope)
        return self._inner.create(name, from_, self._guard.author(actor), idempotency_key)

    def delete(self, name: str, *, force: bool, idempotency_key: str | None) -> None:
        self._guard.require(PolicyAction.BRANCH_DELETE, AccessScope(target_branch=name))
        self._inner.delete(name, force=force, idempotency_key=idempotency_key)

    def protect(self, name: str, *, protected: bool, merges_only: bool) -> None:
        self._guard.require(PolicyAction.ADMIN)
        self._inner.protect(name, protected=protected, merges_only=merges_only)

    def is_protected(self, name: str) -> bool:
        self._guard.require(PolicyAction.READ)
        return self._inner.is_protected(name)


class GovernedTags:
    """``TagBackend`` for one actor. A tag is a change of the branch that holds its commit."""

    def __init__(self, inner: LocalTags, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def all(self) -> list[Tag]:
        self._guard.require(PolicyAction.READ)
        return self._inner.all()

    def create(
        self,
        name: str,
        target: str,
        *,
        force: bool,
        actor: str | None,
        message: str | None,
        idempotency_key: str | None,
    ) -> Tag:
        self._require_change(target)
        if force and self._exists(name):
            self._require_change(f"tag:{name}")
        author = self._guard.author(actor)
        return self._inner.create(
            name,
            target,
            force=force,
            actor=author,
            message=message,
            idempotency_key=idempotency_key,
        )

    def delete(self, name: str, idempotency_key: str | None) -> Tag:
        if self._exists(name):
            self._require_change(f"tag:{name}")
        else:  # an error, or a request that is repeated
            self._guard.require(PolicyAction.CHANGE)
        return self._inner.delete(name, idempotency_key)

    def _exists(self, name: str) -> bool:
        return any(tag.name == name for tag in self._inner.all())

    def _require_change(self, ref: str) -> None:
        branch = self._guard.branch_of(ref)
        self._guard.require(PolicyAction.CHANGE, AccessScope(branch))


class GovernedMerges:
    """``MergeBackend`` for one actor."""

    def __init__(self, inner: LocalMerges, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def merge(self, request: MergeRequest, commit: CommitOptions) -> MergeResult:
        source, target = request.source, request.target
        if request.dry_run:
            for branch in (source, target):
                self._guard.state(PolicyAction.READ, StateRef(branch), None)
        else:
            self._guard.merge(source, target, delete_source=request.delete_branch)
        return self._inner.merge(request, self._guard.recorded(commit))

    def revert(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None:
        allowed = self._guard.commit(commit, branch)
        return self._inner.revert(commit_id, branch, decisions, allowed)

    def cherry_pick(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None:
        picked = self._guard.state(PolicyAction.READ, StateRef(at=commit_id))
        allowed = self._guard.commit(commit, branch)
        return self._inner.cherry_pick(str(picked.at), branch, decisions, allowed)

    def restore(self, request: RestoreRequest, commit: CommitOptions) -> Commit | None:
        state = self._guard.state(PolicyAction.READ, StateRef(at=request.target), request.only)
        allowed = self._guard.commit(commit, request.branch)
        return self._inner.restore(replace(request, target=str(state.at)), allowed)

    def reset(self, target: str, branch: str, commit: CommitOptions) -> Commit | None:
        state = self._guard.state(PolicyAction.READ, StateRef(at=target))
        allowed = self._guard.commit(commit, branch)
        if allowed.denied_types:  # a reset replaces every type
            self._guard.types(PolicyAction.CHANGE, branch, StateRef(branch), None)
        return self._inner.reset(str(state.at), branch, allowed)


class GovernedSchemas:
    """``SchemaBackend`` for one actor."""

    def __init__(self, inner: LocalSchemas, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def plan(self, request: SchemaRequest) -> SchemaPlan:
        self._guard.require(PolicyAction.READ, AccessScope(request.branch))
        return self._inner.plan(request)

    def apply(self, request: SchemaRequest, commit: CommitOptions) -> SchemaResult:
        scope = AccessScope(target_branch=request.branch)
        self._guard.require(PolicyAction.SCHEMA_APPLY, scope)
        return self._inner.apply(request, self._guard.recorded(commit))
