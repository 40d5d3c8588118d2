"""The change feed: the commits of a branch in order, from any position, repeatable.

A poll follows the first parents of a branch up to the head at its start. Its last page ends with a
cursor, which is always a position between two commits; a page that ends inside a commit has a page
token instead. Readers keep their own cursors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.references import locate_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import ChangeFeedGap, ChangesRefused, InvalidInput, ResourceLimit
from omnigraph.history.commit_changes import ChangeBlock, ChangePosition, CommitReader, Packer
from omnigraph.history.filters import filter_digest, require_known_types
from omnigraph.history.page_tokens import TokenScope, rejected
from omnigraph.model.requests import FeedPosition
from omnigraph.snapshots.commit_range import WINDOW_COMMITS, CommitTransition, CommitWindow, Schemas
from omnigraph.snapshots.diff import DiffFilter, EntityChange
from omnigraph.snapshots.export import export

POLL_COMMITS: Final = 128
POLL_COMMITS_MAX: Final = 512
"""The most commits of one poll: commits without matching changes cost reads, too."""
_AFTER: Final = "after:"


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A page of the feed.

    ``cursor`` is the position after this page; None if the page ends inside a commit (use
    ``next_page_token`` then).
    """

    blocks: list[ChangeBlock]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"blocks": [block.to_json() for block in self.blocks]}
        for name in ("next_page_token", "cursor", "caught_up"):
            value = getattr(self, name)
            if value is not None:
                body[name] = value
        return body


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """A page of the changes of one commit. ``next_page_token`` is None on the last page."""

    block: ChangeBlock
    next_page_token: str | None = None

    @property
    def changes(self) -> list[EntityChange]:
        return self.block.changes

    def to_json(self) -> dict[str, Any]:
        body = self.block.to_json()
        if self.next_page_token is not None:
            body["next_page_token"] = self.next_page_token
        return body


@dataclass(frozen=True, slots=True)
class _PollRange:
    """The commits of a poll, by position, and the position inside the first one."""

    first: int
    last: int
    cut: int
    after: ChangePosition | None = None


@dataclass(slots=True)
class Feed:
    """The change feed of one branch under one filter."""

    repository: Repository
    schemas: Schemas
    branch: Branch
    filter: DiffFilter
    state: ManifestState = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.repository.manifest(self.branch).current()
        require_known_types(self.state, self.filter)

    def poll(
        self,
        position: FeedPosition,
        packer: Packer | None = None,
        commits_max: int = POLL_COMMITS,
    ) -> FeedPage:
        """The page that starts at a position."""
        poll_range = self._poll_range(position, commits_max)
        packer = packer or Packer()
        blocks: list[ChangeBlock] = []
        done = poll_range.first - 1
        after = poll_range.after
        for at, step in self._steps(poll_range):
            reader = CommitReader(self.repository, step, self.filter)
            try:
                changes, whole = _fill(reader, packer, after)
            except (ChangesRefused, ChangeFeedGap) as problem:
                if done >= poll_range.first:
                    break  # return what was read; the next poll raises the error
                raise self._with_cursor(problem, done) from problem
            if not whole and not changes:
                break  # the page was full before this commit
            blocks.append(ChangeBlock(step.commit, changes))
            if not whole:
                return FeedPage(
                    blocks, next_page_token=self._page_token(poll_range, at, changes[-1])
                )
            done, after = at, None
        return FeedPage(blocks, cursor=self.cursor(done), caught_up=done == poll_range.cut)

    def baseline(self) -> Iterator[bytes]:
        """An export of the branch, followed by one record with the cursor to resume from."""
        snapshot = SnapshotPins.of(self.branch, self.state)
        schema = self.schemas(snapshot)
        kinds, types = self.filter.kinds, self.filter.types
        chosen = [
            owner.name
            for owner in schema.types()
            if (not kinds or owner.kind in kinds) and (not types or owner.name in types)
        ]
        yield from export(self.repository, snapshot, schema, chosen)
        last = {
            "snapshot_commit_id": snapshot.commit_id,
            "resume_cursor": self._token_after(snapshot.commit_id),
        }
        yield (json.dumps({"baseline": last}) + "\n").encode()

    def cursor(self, position: int) -> str:
        """The cursor after a commit."""
        return self._token_after(self.state.timeline.commit_ids[position])

    def _poll_range(self, position: FeedPosition, commits_max: int) -> _PollRange:
        if commits_max < 1:
            raise InvalidInput(
                f"`commits_max` must be at least 1, not {commits_max}",
                remedy="Pass a limit of at least 1.",
            )
        if commits_max > POLL_COMMITS_MAX:
            raise ResourceLimit("change_feed_commits_per_poll", POLL_COMMITS_MAX, commits_max)
        if position.page_token is not None:
            return self._continued(position.page_token)
        cut = len(self.state.timeline.commit_ids) - 1
        done = self._start(position, cut)
        return _PollRange(done + 1, min(done + commits_max, cut), cut)

    def _start(self, position: FeedPosition, head: int) -> int:
        """The position of the last commit that the reader has seen."""
        if position.cursor is not None:
            return self._commit_position(self._scope.decode("cursor", position.cursor).get("after"))
        start = "now" if position.start is None else position.start
        if start == "now":
            return head
        if start == "beginning":
            return 0
        if start.startswith(_AFTER):
            return self._commit_position(start.removeprefix(_AFTER))
        raise InvalidInput(
            f"{start!r} is not a position in the feed",
            remedy="Use now, beginning or after:COMMIT_ID.",
        )

    def _continued(self, token: str) -> _PollRange:
        position = self._scope.decode("page", token)
        first, last, cut = (
            self._commit_position(position.get(name)) for name in ("at", "last", "cut")
        )
        kind, type_id, id = position["after"]
        return _PollRange(first, last, cut, ChangePosition(kind, type_id, id))

    def _commit_position(self, commit_id: Any) -> int:
        found = self.state.timeline.positions.get(commit_id)
        if found is None:
            raise rejected(f"branch {self.branch.name!r} has no commit {commit_id!r}")
        return found

    def _steps(self, poll_range: _PollRange) -> Iterator[tuple[int, CommitTransition]]:
        for start in range(poll_range.first, poll_range.last + 1, WINDOW_COMMITS):
            last = min(start + WINDOW_COMMITS - 1, poll_range.last)
            window = CommitWindow.read(self.branch, self.state.timeline, self.schemas, start, last)
            for at in range(start, last + 1):
                yield at, window.transition(at)

    @property
    def _scope(self) -> TokenScope:
        return TokenScope(
            self.repository.graph_id,
            self.state.timeline.commit_ids[0],
            self.branch.incarnation,
            filter_digest(self.filter),
        )

    def _token_after(self, commit_id: str) -> str:
        return self._scope.encode("cursor", {"after": commit_id})

    def _page_token(self, poll_range: _PollRange, at: int, last: EntityChange) -> str:
        ids = self.state.timeline.commit_ids
        place = {"at": ids[at], "last": ids[poll_range.last], "cut": ids[poll_range.cut]}
        return self._scope.encode("page", {**place, "after": list(ChangePosition.of(last))})

    def _with_cursor(
        self, problem: ChangesRefused | ChangeFeedGap, done: int
    ) -> ChangesRefused | ChangeFeedGap:
        if isinstance(problem, ChangesRefused):
            return problem
        return ChangeFeedGap(problem.details["first_unreadable_commit_id"], self.cursor(done))


def commit_changes(
    repository: Repository,
    schemas: Schemas,
    commit_id: str,
    filter: DiffFilter,
    packer: Packer,
    page_token: str | None = None,
) -> ChangesPage:
    """The changes of a commit of any branch, relative to its first parent."""
    branch, commit = locate_commit(repository, commit_id)
    if commit.parent is None:
        raise ChangesRefused("parentless_commit", commit_id)
    state = repository.manifest(branch).current()
    require_known_types(state, filter)
    timeline = state.timeline
    scope = TokenScope(
        repository.graph_id,
        timeline.commit_ids[0],
        branch="",
        filter=filter_digest(filter),
        subject=commit_id,
    )
    after = None
    if page_token is not None:
        after = ChangePosition(*scope.decode("commit", page_token)["after"])
    at = timeline.positions[commit_id]
    step = CommitWindow.read(branch, timeline, schemas, at, at).transition(at)
    changes, whole = _fill(CommitReader(repository, step, filter), packer, after)
    token = (
        None if whole else scope.encode("commit", {"after": list(ChangePosition.of(changes[-1]))})
    )
    return ChangesPage(ChangeBlock(commit, changes), token)


def _fill(
    reader: CommitReader, packer: Packer, after: ChangePosition | None
) -> tuple[list[EntityChange], bool]:
    """The changes of a commit that fit into the page, and whether these are all."""
    taken: list[EntityChange] = []
    for change in reader.changes(after):
        if not packer.takes(change):
            return taken, False
        taken.append(change)
    return taken, True
