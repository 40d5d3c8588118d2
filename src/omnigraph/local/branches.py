"""Branches and tags: rows of the registry of branches, which is part of main's manifest."""

from __future__ import annotations

from omnigraph.catalog.branches.changes import create_branch, protect_branch
from omnigraph.catalog.branches.registry import Branch, all_branches, is_protected
from omnigraph.catalog.branches.tag_changes import create_tag, delete_tag
from omnigraph.catalog.branches.tags import Tag, all_tags
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.local.context import GraphContext
from omnigraph.transaction.branch_deletion import delete_branch


class LocalBranches:
    """Create, list, protect and delete branches."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository

    def names(self) -> list[str]:
        return list(all_branches(self._repository.main.current()))

    def create(
        self, name: str, from_: str, actor: str | None, idempotency_key: str | None
    ) -> Branch:
        key = request_key(idempotency_key, "branch create", name, from_)
        with self._context.writing(from_):
            by = self._context.transaction.actor_of(actor)
            return create_branch(self._repository, name, from_, by, key)

    def delete(self, name: str, *, force: bool, idempotency_key: str | None) -> None:
        key = request_key(idempotency_key, "branch delete", name, str(force))
        with self._context.writing():
            recovery = self._context.transaction.recovery
            delete_branch(self._repository, recovery, name, force=force, key=key)

    def protect(self, name: str, *, protected: bool, merges_only: bool) -> None:
        with self._context.writing():
            protect_branch(self._repository, name, protected=protected, merges_only=merges_only)

    def is_protected(self, name: str) -> bool:
        return is_protected(self._repository.main.current(), self._repository.branch(name))


class LocalTags:
    """Create, list and delete tags."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository

    def all(self) -> list[Tag]:
        return list(all_tags(self._repository.main.current()).values())

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
        key = request_key(idempotency_key, "tag create", name, target, str(force), repr(message))
        with self._context.writing(target):
            by = self._context.transaction.actor_of(actor)
            return create_tag(
                self._repository, name, target, force=force, actor=by, message=message, key=key
            )

    def delete(self, name: str, idempotency_key: str | None) -> Tag:
        key = request_key(idempotency_key, "tag delete", name)
        with self._context.writing():
            return delete_tag(self._repository, name, key)


def request_key(key: str | None, *request: str) -> RequestKey | None:
    """The key of a request that changes the registry, with the digest of what it asks for."""
    check_text("idempotency key", key)
    return None if key is None else RequestKey(key, "\0".join(request))
