"""Entity history: the revisions of an entity with the commits that made them.

Changes that a merge brought are shown with the commits of the merged branch, as the merge recorded
them, whether or not that branch still exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.rows import Commit
from omnigraph.errors import HistoryReclaimed, InvalidInput, ResourceLimit
from omnigraph.history.blame import MergedChange, merged_changes
from omnigraph.history.entity_revisions import EntityRevisions, Revision
from omnigraph.history.page_tokens import TokenScope
from omnigraph.model import arguments
from omnigraph.snapshots.entity_delta import Op

BATCH_EVENTS: Final = 32
BATCH_EVENTS_MAX: Final = 512
"""The sizes of the batches in which commits are read: the first event comes soon."""
PAGE_EVENTS_MAX: Final = 8_192
"""The largest page: client and server hold it in memory."""


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """One change of an entity: its commit, and the entity before and after."""

    commit: Commit
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    merged: tuple[MergedChange, ...] = ()
    """For a merge: the changes by commits of the merged branches, newest first."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"commit": self.commit.to_json(), "op": str(self.op)}
        for name, image in (("before", self.before), ("after", self.after)):
            if image is not None:
                body[name] = image
        if self.merged:
            body["merged"] = [change.to_json() for change in self.merged]
        return body


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of events. ``next_page_token`` is None on the last page."""

    events: list[EntityEvent]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class EntityHistory:
    """The commits of a branch that changed an entity, newest first. Iterating streams them."""

    revisions: EntityRevisions

    def __repr__(self) -> str:
        line = self.revisions
        return f"<EntityHistory of {line.owner.key} {line.id!r} on {line.branch.name}>"

    def __iter__(self) -> Iterator[EntityEvent]:
        walk, size = self.revisions.walk(), BATCH_EVENTS
        with deletion_checked(self.revisions.repository, self.revisions.branch):
            while True:
                batch, reclaimed = _taken(walk, size)
                yield from self._events(batch)
                if reclaimed is not None:
                    raise reclaimed
                if len(batch) < size:
                    return
                size = min(size * 2, BATCH_EVENTS_MAX)

    def page(self, limit: int, page_token: str | None = None) -> HistoryPage:
        """A page of at most ``limit`` events."""
        arguments.whole("limit", limit)
        arguments.optional_text("page_token", page_token)
        if limit < 1:
            raise InvalidInput(
                f"`limit` must be at least 1, not {limit}", remedy="Pass a limit of at least 1."
            )
        if limit > PAGE_EVENTS_MAX:
            raise ResourceLimit("entity_history_page_events", PAGE_EVENTS_MAX, limit)
        versions = self.revisions.track.versions
        until = None
        if page_token is not None:
            position = self._scope.decode("history", page_token)
            until = versions.index(position["before"])
        with deletion_checked(self.revisions.repository, self.revisions.branch):
            found, reclaimed = _taken(self.revisions.walk(until), limit + 1)
            if reclaimed is not None and not found:
                raise reclaimed
            token = None
            if len(found) > limit or reclaimed is not None:
                last = found[min(limit, len(found)) - 1]
                token = self._scope.encode("history", {"before": versions[last.at]})
            return HistoryPage(self._events(found[:limit]), token)

    def _events(self, revisions: list[Revision]) -> list[EntityEvent]:
        timeline, track = self.revisions.state.timeline, self.revisions.track
        positions = [
            timeline.commits.until(track.versions[revision.at]) - 1 for revision in revisions
        ]
        return [
            EntityEvent(
                commit,
                revision.op,
                None if revision.before is None else revision.before.image,
                None if revision.after is None else revision.after.image,
                merged_changes(self.revisions, commit, revision),
            )
            for commit, revision in zip(timeline.read_commits(positions), revisions, strict=True)
        ]

    @property
    def _scope(self) -> TokenScope:
        line = self.revisions
        return TokenScope(
            line.repository.graph_id,
            line.state.timeline.commit_ids[0],
            line.branch.incarnation,
            subject=f"{line.owner.incarnation}/{line.id}",
        )


def _taken(walk: Iterator[Revision], count: int) -> tuple[list[Revision], HistoryReclaimed | None]:
    """Up to ``count`` revisions; with the error if the rest was cleaned up."""
    found: list[Revision] = []
    try:
        for revision in islice(walk, count):
            found.append(revision)
    except HistoryReclaimed as error:
        return found, error
    return found, None
