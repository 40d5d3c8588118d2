"""The history operations: log, changes of commits, the change feed, histories of entities."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked_items
from omnigraph.catalog.references import describe_commit
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import TypeNotFound
from omnigraph.history.blame import Blame, blame
from omnigraph.history.commit_changes import PAGE_BYTES, PAGE_CHANGES, Packer
from omnigraph.history.entity import EntityHistory
from omnigraph.history.entity_revisions import EntityRevisions
from omnigraph.history.feed import (
    POLL_COMMITS,
    ChangesPage,
    Feed,
    FeedPage,
    commit_changes,
)
from omnigraph.history.log import log, reachable
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.local.context import GraphContext
from omnigraph.model.requests import ChangeFilter, CommitFilter, FeedPosition, PageSize
from omnigraph.snapshots.diff import DiffFilter


class LocalHistory:
    """The log, the change feed, entity histories and blame."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository
        self._reader = context.reader

    def log(self, branch: str, filter: CommitFilter, after: str | None) -> Iterator[Commit]:
        with self._context.reading(branch) as found:
            commits = log(self._repository.manifest(found).current(), filter, after)
        return deletion_checked_items(self._repository, found, commits)

    def ancestry(self, branch: str) -> Iterator[tuple[Commit, tuple[str, ...]]]:
        found = self._repository.branch(branch)
        return deletion_checked_items(self._repository, found, reachable(self._repository, found))

    def commit(self, commit_id: str) -> Commit:
        return describe_commit(self._repository, commit_id)

    def commit_changes(
        self, commit_id: str, filter: ChangeFilter, size: PageSize, page_token: str | None
    ) -> ChangesPage:
        return commit_changes(
            self._repository,
            self._reader.schema,
            commit_id,
            _diff_filter(filter),
            _packer(size),
            page_token,
        )

    def changes(
        self,
        branch: str,
        position: FeedPosition,
        filter: ChangeFilter,
        size: PageSize,
        commits_max: int | None,
    ) -> FeedPage:
        most = POLL_COMMITS if commits_max is None else commits_max
        with self._context.checking_deletion(branch.strip()):
            return self._feed(branch, filter).poll(position, _packer(size), most)

    def baseline(self, branch: str, filter: ChangeFilter) -> Iterator[bytes]:
        with self._context.checking_deletion(branch.strip()):
            feed = self._feed(branch, filter)
        return deletion_checked_items(self._repository, feed.branch, feed.baseline())

    def _feed(self, branch: str, filter: ChangeFilter) -> Feed:
        found = self._repository.branch(branch.strip())
        return Feed(self._repository, self._reader.schema, found, _diff_filter(filter))

    def entity(self, type: str, id: str, branch: str) -> EntityHistory:
        return EntityHistory(self._revisions(type, id, branch))

    def blame(self, type: str, id: str, branch: str) -> list[Blame]:
        with self._context.checking_deletion(branch):
            return blame(self._revisions(type, id, branch))

    def _revisions(self, type: str, id: str, branch: str) -> EntityRevisions:
        with self._context.reading(branch) as found:
            state = self._repository.manifest(found).current()
            schema = self._reader.schema(SnapshotPins.of(found, state))
        owner = _type(schema, type)
        return EntityRevisions(self._repository, found, state, self._reader.schema, owner, id)


def _diff_filter(filter: ChangeFilter) -> DiffFilter:
    return DiffFilter(frozenset(filter.kinds), frozenset(filter.types), frozenset(filter.ops))


def _packer(size: PageSize) -> Packer:
    return Packer(
        PAGE_CHANGES if size.limit is None else size.limit,
        PAGE_BYTES if size.bytes_max is None else size.bytes_max,
    )


def _type(schema: AcceptedSchema, given: str) -> NodeType | EdgeType:
    if ":" in given:
        return schema.type(given)
    found = schema.nodes.get(given) or schema.edges.get(given)
    if found is None:
        raise TypeNotFound(
            f"the branch has no type {given!r}",
            remedy="Use a name or type key of `omnigraph snapshot`.",
            details={"type_name": given},
        )
    return found
