"""``graph.history``: commits, what they changed, the change feed, and histories of entities."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from omnigraph.errors import InvalidInput
from omnigraph.graph import deprecated
from omnigraph.model import arguments
from omnigraph.model.requests import ChangeFilter, CommitFilter, FeedPosition, PageSize

if TYPE_CHECKING:
    from omnigraph.catalog.rows import Commit
    from omnigraph.graph.backend import HistoryBackend
    from omnigraph.history.blame import Blame
    from omnigraph.history.entity import EntityHistory
    from omnigraph.history.feed import ChangesPage, FeedPage

FOLLOW_INTERVAL_S: Final = 1.0
"""Seconds between two polls of a follower that has caught up; a poll is one small request."""


class History:
    """The history of a graph, as ``graph.history``. Reads only."""

    def __init__(self, backend: HistoryBackend) -> None:
        self._backend = backend

    def commits(
        self,
        branch: str = "main",
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
        """The commits of a branch, newest first.

        Args:
            branch: The branch.
            limit: The most commits to return.
            after: Continue after this commit, the last one of an earlier page.
            actor: Only commits of this author.
            since: Only commits from this time on (ISO 8601).
            until: Only commits before this time (ISO 8601).
            types: Only commits that wrote to one of these types.
            message: Only commits whose message contains this text, in upper or lower case.
            where: Only commits for which this function returns true.

        Returns:
            The commits.

        Raises:
            BranchNotFound: There is no such branch.
            CommitNotFound: ``after`` is not a commit of the branch.

        Example:
            >>> [commit.message for commit in graph.history.commits(limit=2)]
            ['ties', 'people']
        """
        most = arguments.optional_whole("limit", limit)
        if most is not None and most < 0:
            raise InvalidInput(
                f"`limit` must be at least 0, not {most}", remedy="Pass 0 or more as `limit`."
            )
        found = self.log(
            branch,
            after=after,
            actor=actor,
            since=since,
            until=until,
            types=types,
            message=message,
            where=where,
        )
        return list(islice(found, most))

    def log(
        self,
        branch: str = "main",
        *,
        after: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        types: Iterable[str] = (),
        message: str | None = None,
        where: Callable[[Commit], bool] | None = None,
    ) -> Iterator[Commit]:
        """The commits of a branch, newest first, as a stream.

        Args:
            branch: The branch.
            after: Continue after this commit.
            actor: Only commits of this author.
            since: Only commits from this time on (ISO 8601).
            until: Only commits before this time (ISO 8601).
            types: Only commits that wrote to one of these types.
            message: Only commits whose message contains this text.
            where: Only commits for which this function returns true.

        Returns:
            An iterator. Commits are read as it advances.

        Raises:
            BranchNotFound: There is no such branch.
            CommitNotFound: ``after`` is not a commit of the branch.

        Example:
            >>> next(graph.history.log(actor="tester")).message
            'people'
        """
        arguments.optional_function("where", where)
        filter_ = CommitFilter(actor, since, until, arguments.texts("types", types), message)
        found = self._backend.log(
            arguments.text("branch", branch), filter_, arguments.optional_text("after", after)
        )
        return found if where is None else filter(where, found)

    def ancestry(self, branch: str = "main") -> Iterator[tuple[Commit, tuple[str, ...]]]:
        """Every commit that led to the head of a branch, merged ones included, newest first.

        Args:
            branch: The branch.

        Returns:
            An iterator over commits, each with the ids of its parents.

        Raises:
            BranchNotFound: There is no such branch.

        Example:
            >>> [len(parents) for _, parents in graph.history.ancestry()]
            [1, 1, 0]
        """
        return self._backend.ancestry(arguments.text("branch", branch))

    def commit(self, commit_id: str) -> Commit:
        """One commit by id, on whichever branch it is.

        Args:
            commit_id: Its id.

        Returns:
            The commit.

        Raises:
            CommitNotFound: There is no such commit.

        Example:
            >>> head = graph.history.commits(limit=1)[0]
            >>> graph.history.commit(head.commit_id).message
            'ties'
        """
        return self._backend.commit(arguments.text("commit_id", commit_id))

    def commit_changes(
        self,
        commit_id: str,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        limit: int | None = None,
        bytes_max: int | None = None,
        page_token: str | None = None,
    ) -> ChangesPage:
        """A page of what a commit changed, relative to its first parent.

        Args:
            commit_id: The commit.
            kinds: Only entities of these kinds, ``node`` or ``edge``.
            types: Only entities of these types.
            ops: Only these operations: ``insert``, ``update`` or ``delete``.
            limit: Changes per page, 1000 unless given.
            bytes_max: About how many bytes a page has, 4 MiB unless given.
            page_token: The ``next_page_token`` of the page before.

        Returns:
            The page; its ``next_page_token`` is None on the last one.

        Raises:
            CommitNotFound: There is no such commit.
            CursorRejected: ``page_token`` does not belong to this call.
            HistoryReclaimed: A cleanup removed the states of the commit.

        Example:
            >>> head = graph.history.commits(limit=1)[0]
            >>> page = graph.history.commit_changes(head.commit_id)
            >>> [str(change.op) for change in page.block.changes]
            ['insert', 'insert']
        """
        return self._backend.commit_changes(
            arguments.text("commit_id", commit_id),
            ChangeFilter.of(kinds, types, ops),
            PageSize(limit, bytes_max),
            arguments.optional_text("page_token", page_token),
        )

    def changes(
        self,
        branch: str = "main",
        *,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        limit: int | None = None,
        bytes_max: int | None = None,
        commits_max: int | None = None,
    ) -> FeedPage:
        """A page of the change feed: one block per commit, in the order they were made.

        Args:
            branch: The branch.
            start: Where the first poll begins: ``now`` (the default, which gives only a cursor),
                ``beginning`` or ``after:COMMIT``.
            cursor: Where a later poll begins: the ``cursor`` of the page before.
            page_token: The ``next_page_token`` of a page that ended inside a block.
            kinds: Only entities of these kinds, ``node`` or ``edge``.
            types: Only entities of these types.
            ops: Only these operations: ``insert``, ``update`` or ``delete``.
            limit: Changes per page, 1000 unless given.
            bytes_max: About how many bytes a page has, 4 MiB unless given.
            commits_max: Commits per poll, 128 unless given.

        Returns:
            The page, with the cursor of the next poll.

        Raises:
            BranchNotFound: There is no such branch.
            ChangeFeedGap: A cleanup removed states that the cursor still needs.
            CursorRejected: The cursor or the token does not belong to this feed.

        Example:
            >>> page = graph.history.changes(start="beginning")
            >>> [len(block.changes) for block in page.blocks]
            [3, 2]
        """
        return self._backend.changes(
            arguments.text("branch", branch),
            FeedPosition(start, cursor, page_token),
            ChangeFilter.of(kinds, types, ops),
            PageSize(limit, bytes_max),
            arguments.optional_whole("commits_max", commits_max),
        )

    def baseline(
        self,
        branch: str = "main",
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[bytes]:
        """The state of a branch as NDJSON, then one record with the cursor to continue from.

        Args:
            branch: The branch.
            kinds: Only entities of these kinds, ``node`` or ``edge``.
            types: Only entities of these types.
            ops: The ops of the feed that follows; the state itself is not filtered by them.

        Returns:
            An iterator over chunks of bytes.

        Raises:
            BranchNotFound: There is no such branch.

        Example:
            >>> *_, last = graph.history.baseline()
            >>> b"resume_cursor" in last
            True
        """
        return self._backend.baseline(
            arguments.text("branch", branch), ChangeFilter.of(kinds, types, ops)
        )

    def follow(
        self,
        branch: str = "main",
        *,
        start: str | None = None,
        cursor: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        interval_s: float = FOLLOW_INTERVAL_S,
        stop: threading.Event | None = None,
    ) -> Iterator[FeedPage]:
        """Pages of the change feed, as commits are made.

        Args:
            branch: The branch.
            start: Where to begin: ``now``, ``beginning`` or ``after:COMMIT``.
            cursor: Where to begin: the cursor of an earlier page.
            kinds: Only entities of these kinds, ``node`` or ``edge``.
            types: Only entities of these types.
            ops: Only these operations: ``insert``, ``update`` or ``delete``.
            interval_s: Seconds between two polls, once it has caught up.
            stop: Ends the iteration when it is set. Without it, the iteration does not end.

        Returns:
            An iterator over pages that have blocks, and a first page that may have none.

        Raises:
            BranchNotFound: There is no such branch.
            ChangeFeedGap: A cleanup removed states that the cursor still needs.
            CursorRejected: The cursor does not belong to this feed.

        Example:
            >>> pages = graph.history.follow(start="beginning")
            >>> len(next(pages).blocks)
            2
        """
        name = arguments.text("branch", branch)
        wait_s = arguments.number("interval_s", interval_s)
        if not wait_s > 0:
            raise InvalidInput(
                f"`interval_s` must be positive, not {wait_s}",
                remedy="Pass a positive number of seconds as `interval_s`.",
            )
        stopped = threading.Event()
        if stop is not None:
            stopped = arguments.instance("stop", stop, threading.Event)
        chosen = ChangeFilter.of(kinds, types, ops)
        return self._pages(name, FeedPosition(start, cursor), chosen, wait_s, stopped)

    def _pages(
        self,
        branch: str,
        position: FeedPosition,
        chosen: ChangeFilter,
        interval_s: float,
        stopped: threading.Event,
    ) -> Iterator[FeedPage]:
        while not stopped.is_set():
            page = self._backend.changes(branch, position, chosen, PageSize(), None)
            # The first page is passed on even if it is empty: it has the cursor.
            if page.blocks or position.cursor is None:
                yield page
            if page.next_page_token is not None:
                position = FeedPosition(page_token=page.next_page_token)
                continue
            position = FeedPosition(cursor=page.cursor)
            if page.caught_up:
                stopped.wait(interval_s)

    def entity(self, type: str, id: str, branch: str = "main") -> EntityHistory:
        """Every commit of a branch that changed an entity, newest first, with what it changed.

        Args:
            type: A type key such as ``node:Person``, or the name of a type.
            id: The id of the entity.
            branch: The branch.

        Returns:
            The history: iterate over it, or read it in pages.

        Raises:
            BranchNotFound: There is no such branch.
            TypeNotFound: There is no such type.

        Example:
            >>> [str(event.op) for event in graph.history.entity("Person", "ana")]
            ['insert']
        """
        return self._backend.entity(
            arguments.text("type", type), arguments.text("id", id), arguments.text("branch", branch)
        )

    def blame(self, type: str, id: str, branch: str = "main") -> list[Blame]:
        """For every property of an entity, the commit that set its current value.

        Args:
            type: A type key such as ``node:Person``, or the name of a type.
            id: The id of the entity.
            branch: The branch.

        Returns:
            One entry per property.

        Raises:
            BranchNotFound: There is no such branch.
            EntityNotFound: The entity does not exist on the branch.
            TypeNotFound: There is no such type.

        Example:
            >>> [entry.commit.message for entry in graph.history.blame("City", "Oslo")]
            ['people']
        """
        return self._backend.blame(
            arguments.text("type", type), arguments.text("id", id), arguments.text("branch", branch)
        )

    def __call__(self, type: str, id: str, branch: str = "main") -> EntityHistory:
        deprecated.warn_of_call("history", "entity")
        return self.entity(type, id, branch)
