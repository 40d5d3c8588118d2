"""The change feed: every commit of a branch in turn, from any place, as often as it is asked for.

A poll follows the first parents of a branch up to the head that it found when it began. Its last
page ends with a cursor, which always stands between two commits; a page that ends inside a commit
has a page token instead. What a reader has seen is known to the reader alone.
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
from omnigraph.history.changes import Block, CommitReader, Packer, Place
from omnigraph.history.filters import filter_digest, require_known_types
from omnigraph.history.tokens import Scope, rejected
from omnigraph.snapshots.commit_range import WINDOW_COMMITS, Schemas, Step, Window
from omnigraph.snapshots.diff import DiffFilter, EntityChange
from omnigraph.snapshots.export import export

POLL_COMMITS: Final = 128
POLL_COMMITS_MAX: Final = 512
"""Even commits without changes cost something to look at."""
_AFTER: Final = "after:"


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Some blocks. ``cursor`` stands after them; None when the page ends inside a block."""

    blocks: list[Block]
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
    """Some changes of one commit, and where the next page begins (None: there is none)."""

    block: Block
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
class Position:
    """Where to go on; at most one may be given, and none means ``start=now``."""

    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        names = ("start", "cursor", "page_token")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidInput(
                f"{' and '.join(given)} both say where to begin", remedy="Keep one of them."
            )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The commits a poll is about, by position, and where inside the first one it goes on."""

    first: int
    last: int
    cut: int
    after: Place | None = None


@dataclass
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
        position: Position,
        packer: Packer | None = None,
        commits_max: int = POLL_COMMITS,
    ) -> FeedPage:
        """One page from a position on."""
        stretch = self._stretch(position, commits_max)
        packer = packer or Packer()
        blocks: list[Block] = []
        done = stretch.first - 1
        after = stretch.after
        for at, step in self._steps(stretch):
            reader = CommitReader(self.repository, step, self.filter)
            try:
                changes, whole = _fill(reader, packer, after)
            except (ChangesRefused, ChangeFeedGap) as problem:
                if done >= stretch.first:
                    break  # what could be read is delivered; the next poll meets the problem
                raise self._with_cursor(problem, done) from problem
            if not whole and not changes:
                break  # the page was full before this commit
            blocks.append(Block(step.commit, changes))
            if not whole:
                return FeedPage(blocks, next_page_token=self._page_token(stretch, at, changes[-1]))
            done, after = at, None
        return FeedPage(blocks, cursor=self.cursor(done), caught_up=done == stretch.cut)

    def baseline(self) -> Iterator[bytes]:
        """The whole state of the branch, then one record that says how to go on from it."""
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
        """The place after a commit."""
        return self._token_after(self.state.timeline.commit_ids[position])

    # -- where to begin and where to end -----------------------------------------------------------

    def _stretch(self, position: Position, commits_max: int) -> _Stretch:
        if commits_max < 1:
            raise InvalidInput(f"{commits_max} commits are no poll", remedy="Ask for more.")
        if commits_max > POLL_COMMITS_MAX:
            raise ResourceLimit("change_feed_commits_per_poll", POLL_COMMITS_MAX, commits_max)
        if position.page_token is not None:
            return self._continued(position.page_token)
        cut = len(self.state.timeline.commit_ids) - 1
        done = self._start(position, cut)
        return _Stretch(done + 1, min(done + commits_max, cut), cut)

    def _start(self, position: Position, head: int) -> int:
        """The position of the last commit that the caller has seen."""
        if position.cursor is not None:
            return self._place(self._scope.decode("cursor", position.cursor).get("after"))
        start = "now" if position.start is None else position.start
        if start == "now":
            return head
        if start == "beginning":
            return 0
        if start.startswith(_AFTER):
            return self._place(start.removeprefix(_AFTER))
        raise InvalidInput(
            f"{start!r} is not a place to start",
            remedy="Use now, beginning or after:COMMIT.",
        )

    def _continued(self, token: str) -> _Stretch:
        told = self._scope.decode("page", token)
        first, last, cut = (self._place(told.get(name)) for name in ("at", "last", "cut"))
        kind, type_id, id = told["after"]
        return _Stretch(first, last, cut, Place(kind, type_id, id))

    def _place(self, commit_id: Any) -> int:
        found = self.state.timeline.places.get(commit_id)
        if found is None:
            raise rejected(f"branch {self.branch.name!r} has no commit {commit_id!r}")
        return found

    def _steps(self, stretch: _Stretch) -> Iterator[tuple[int, Step]]:
        for start in range(stretch.first, stretch.last + 1, WINDOW_COMMITS):
            last = min(start + WINDOW_COMMITS - 1, stretch.last)
            window = Window.read(self.branch, self.state.timeline, self.schemas, start, last)
            for at in range(start, last + 1):
                yield at, window.step(at)

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def _scope(self) -> Scope:
        return Scope(
            self.repository.graph_id,
            self.state.timeline.commit_ids[0],
            self.branch.incarnation,
            filter_digest(self.filter),
        )

    def _token_after(self, commit_id: str) -> str:
        return self._scope.encode("cursor", {"after": commit_id})

    def _page_token(self, stretch: _Stretch, at: int, last: EntityChange) -> str:
        ids = self.state.timeline.commit_ids
        place = {"at": ids[at], "last": ids[stretch.last], "cut": ids[stretch.cut]}
        return self._scope.encode("page", {**place, "after": list(Place.of(last))})

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
    """What a commit of any branch changed, relative to its first parent."""
    branch, commit = locate_commit(repository, commit_id)
    if commit.parent is None:
        raise ChangesRefused("parentless_commit", commit_id)
    state = repository.manifest(branch).current()
    require_known_types(state, filter)
    timeline = state.timeline
    scope = Scope(
        repository.graph_id,
        timeline.commit_ids[0],
        branch="",
        filter=filter_digest(filter),
        subject=commit_id,
    )
    after = None
    if page_token is not None:
        after = Place(*scope.decode("commit", page_token)["after"])
    at = timeline.places[commit_id]
    step = Window.read(branch, timeline, schemas, at, at).step(at)
    changes, whole = _fill(CommitReader(repository, step, filter), packer, after)
    token = None if whole else scope.encode("commit", {"after": list(Place.of(changes[-1]))})
    return ChangesPage(Block(commit, changes), token)


def _fill(
    reader: CommitReader, packer: Packer, after: Place | None
) -> tuple[list[EntityChange], bool]:
    """What fits of a commit's changes, and whether that is all of them."""
    taken: list[EntityChange] = []
    for change in reader.changes(after):
        if not packer.takes(change):
            return taken, False
        taken.append(change)
    return taken, True
