"""The looking-back half of a graph handle: every question about its past, as methods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from omnigraph.catalog.branches.deleted import deletion_noticed, noticing_deletion
from omnigraph.catalog.references import describe_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.engine.engine import Reader
from omnigraph.errors import InvalidInput, TypeNotFound
from omnigraph.history.changes import PAGE_BYTES, PAGE_CHANGES, Packer
from omnigraph.history.entity import Blame, EntityHistory, blame
from omnigraph.history.feed import (
    POLL_COMMITS,
    ChangesPage,
    Feed,
    FeedPage,
    Position,
    commit_changes,
)
from omnigraph.history.lifeline import Lifeline
from omnigraph.history.log import LogFilter, log, reachable
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.snapshots.diff import DiffFilter

FOLLOW_INTERVAL_S: Final = 1.0
"""How long a follower that has caught up waits before it looks again: one small request."""


class HistoryMethods:
    """Mixed into ``Graph``."""

    _repository: Repository
    _reader: Reader

    # -- commits -----------------------------------------------------------------------------------

    def commits(
        self,
        branch: str = MAIN,
        *,
        limit: int | None = None,
        after: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        types: Iterable[str] = (),
        message: str | None = None,
        where: Callable[[Commit], bool] | None = None,
    ) -> list[Commit]:
        """The commits of a branch, newest first; ``after`` goes on after a page's last commit.

        Filters: who made it, when (ISO 8601), types it wrote to, a part of its message.
        """
        if limit is not None and limit < 0:
            raise InvalidInput(f"`limit` is {limit}", remedy="`limit` must be at least 0.")
        chosen = LogFilter(actor, since, until, frozenset(types), message, where)
        return list(islice(self.log(branch, filter=chosen, after=after), limit))

    def log(
        self,
        branch: str = MAIN,
        *,
        filter: LogFilter = LogFilter(),  # noqa: B008 - immutable
        after: str | None = None,
    ) -> Iterator[Commit]:
        """The same as a stream: commits are read as they are asked for."""
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            commits = log(self._repository.manifest(found).current(), filter, after)
        return noticing_deletion(self._repository, found, commits)

    def ancestry(self, branch: str = MAIN) -> Iterator[tuple[Commit, tuple[str, ...]]]:
        """Every commit that led to a branch, merged ones included, newest first, with parents."""
        found = self._repository.branch(branch)
        return noticing_deletion(self._repository, found, reachable(self._repository, found))

    def commit(self, commit_id: str) -> Commit:
        """One commit by id, from whichever branch made it, or got it with a merge."""
        return describe_commit(self._repository, commit_id)

    # -- changes -----------------------------------------------------------------------------------

    def commit_changes(
        self,
        commit_id: str,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        limit: int = PAGE_CHANGES,
        bytes_max: int = PAGE_BYTES,
        page_token: str | None = None,
    ) -> ChangesPage:
        """A page of what a commit changed, relative to its first parent."""
        chosen = _filter(kinds, types, ops)
        packer = Packer(limit, bytes_max)
        return commit_changes(
            self._repository, self._reader.schema, commit_id, chosen, packer, page_token
        )

    def changes(
        self,
        branch: str = MAIN,
        *,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        limit: int = PAGE_CHANGES,
        bytes_max: int = PAGE_BYTES,
        commits_max: int = POLL_COMMITS,
    ) -> FeedPage:
        """A page of the change feed: one block per commit, in the order they were made.

        ``start`` is ``now`` (the default: only a cursor), ``beginning`` or ``after:COMMIT``; later
        polls give back the ``cursor``, or the ``next_page_token`` of a page that ended inside a
        block.
        """
        position = Position(start, cursor, page_token)
        with deletion_noticed(self._repository, branch.strip()):
            feed = self._feed(branch, _filter(kinds, types, ops))
            return feed.poll(position, Packer(limit, bytes_max), commits_max)

    def baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[bytes]:
        """The state of a branch as NDJSON, and a last record with the cursor to go on from.

        ``ops`` only counts for the cursor.
        """
        chosen = _filter(kinds, types, ops)
        with deletion_noticed(self._repository, branch.strip()):
            feed = self._feed(branch, chosen)
        return noticing_deletion(self._repository, feed.branch, feed.baseline())

    def follow(
        self,
        branch: str = MAIN,
        *,
        start: str | None = None,
        cursor: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        interval_s: float = FOLLOW_INTERVAL_S,
        stop: threading.Event | None = None,
    ) -> Iterator[FeedPage]:
        """Pages of the change feed as they come, until ``stop`` is set; never ends by itself."""
        if not interval_s > 0:
            raise InvalidInput(f"{interval_s} seconds is no interval", remedy="Wait longer.")
        chosen = _filter(kinds, types, ops)
        stopped = stop or threading.Event()
        position = Position(start, cursor)
        while not stopped.is_set():
            with deletion_noticed(self._repository, branch.strip()):
                page = self._feed(branch, chosen).poll(position)
            if page.blocks:
                yield page
            elif position.cursor is None:
                yield page  # says from where on it follows
            if page.next_page_token is not None:
                position = Position(page_token=page.next_page_token)
                continue
            position = Position(cursor=page.cursor)
            if page.caught_up:
                stopped.wait(interval_s)

    def _feed(self, branch: str, chosen: DiffFilter) -> Feed:
        found = self._repository.branch(branch.strip())
        return Feed(self._repository, self._reader.schema, found, chosen)

    # -- entities ----------------------------------------------------------------------------------

    def history(self, type: str, id: str, branch: str = MAIN) -> EntityHistory:
        """Every commit of a branch that changed an entity, newest first, with images.

        ``type`` is a type key such as ``node:Person``, or the name of a type.
        """
        return EntityHistory(self._lifeline(type, id, branch))

    def blame(self, type: str, id: str, branch: str = MAIN) -> list[Blame]:
        """For every property of an entity, the commit that set its current value."""
        with deletion_noticed(self._repository, branch):
            return blame(self._lifeline(type, id, branch))

    def _lifeline(self, type: str, id: str, branch: str) -> Lifeline:
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            state = self._repository.manifest(found).current()
            schema = self._reader.schema(SnapshotPins.of(found, state))
        owner = _type(schema, type)
        return Lifeline(self._repository, found, state, self._reader.schema, owner, id)


def _filter(kinds: Iterable[str], types: Iterable[str], ops: Iterable[str]) -> DiffFilter:
    return DiffFilter(frozenset(kinds), frozenset(types), frozenset(ops))


def _type(schema: AcceptedSchema, given: str) -> NodeType | EdgeType:
    if ":" in given:
        return schema.type(given)
    found = schema.nodes.get(given) or schema.edges.get(given)
    if found is None:
        raise TypeNotFound(f"there is no type {given!r}", details={"type_name": given})
    return found
