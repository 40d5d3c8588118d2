"""The history of an entity, and who set its values: lifelines with the commits that made them.

What a merge brought is shown with the commits of the merged branch, as the merge recorded them;
whether that branch still exists makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.rows import Commit
from omnigraph.errors import EntityNotFound, HistoryReclaimed, InvalidInput, ResourceLimit
from omnigraph.history.lifeline import Lifeline, Moved
from omnigraph.history.setters import MergedChange, Setters, merged_changes
from omnigraph.history.tokens import Scope
from omnigraph.model.arguments import checked_methods
from omnigraph.snapshots.entity_delta import Op

BATCH_EVENTS: Final = 32
BATCH_EVENTS_MAX: Final = 512
"""Commits are looked up in batches that grow: the first event comes soon, many come quickly."""
PAGE_EVENTS_MAX: Final = 8_192
"""A page is held in memory by both ends of a wire."""


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """One change of an entity: the commit that made it and what it made of the entity."""

    commit: Commit
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    merged: tuple[MergedChange, ...] = ()
    """For a merge: what commits of merged branches had done to the entity, newest first."""

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
    """Some events, and where the next page begins (None: there is none)."""

    events: list[EntityEvent]
    next_page_token: str | None


@checked_methods
@dataclass(frozen=True, slots=True)
class EntityHistory:
    """Every commit of a branch that changed an entity, newest first. Iterating streams."""

    lifeline: Lifeline

    def __repr__(self) -> str:
        line = self.lifeline
        return f"<EntityHistory of {line.owner.key} {line.id!r} on {line.branch.name}>"

    def __iter__(self) -> Iterator[EntityEvent]:
        moves, size = self.lifeline.moves(), BATCH_EVENTS
        with deletion_noticed(self.lifeline.repository, self.lifeline.branch):
            while True:
                batch, reclaimed = _taken(moves, size)
                yield from self._events(batch)
                if reclaimed is not None:
                    raise reclaimed
                if len(batch) < size:
                    return
                size = min(size * 2, BATCH_EVENTS_MAX)

    def page(self, limit: int, page_token: str | None = None) -> HistoryPage:
        """A limited number of events, and a token for what comes after them."""
        if limit < 1:
            raise InvalidInput(f"a page of {limit} events is no page", remedy="Ask for more.")
        if limit > PAGE_EVENTS_MAX:
            raise ResourceLimit("entity_history_page_events", PAGE_EVENTS_MAX, limit)
        versions = self.lifeline.track.versions
        until = None
        if page_token is not None:
            told = self._scope.decode("history", page_token)
            until = versions.index(told["before"])
        with deletion_noticed(self.lifeline.repository, self.lifeline.branch):
            found, reclaimed = _taken(self.lifeline.moves(until), limit + 1)
            if reclaimed is not None and not found:
                raise reclaimed
            token = None
            if len(found) > limit or reclaimed is not None:
                last = found[min(limit, len(found)) - 1]
                token = self._scope.encode("history", {"before": versions[last.at]})
            return HistoryPage(self._events(found[:limit]), token)

    def _events(self, moves: list[Moved]) -> list[EntityEvent]:
        timeline, track = self.lifeline.state.timeline, self.lifeline.track
        positions = [timeline.commits.until(track.versions[move.at]) - 1 for move in moves]
        return [
            EntityEvent(
                commit,
                move.op,
                None if move.before is None else move.before.image,
                None if move.after is None else move.after.image,
                merged_changes(self.lifeline, commit, move),
            )
            for commit, move in zip(timeline.read_commits(positions), moves, strict=True)
        ]

    @property
    def _scope(self) -> Scope:
        line = self.lifeline
        return Scope(
            line.repository.graph_id,
            line.state.timeline.commit_ids[0],
            line.branch.incarnation,
            subject=f"{line.owner.incarnation}/{line.id}",
        )


def _taken(moves: Iterator[Moved], count: int) -> tuple[list[Moved], HistoryReclaimed | None]:
    """So many moves, or those until history was cleaned up, with the error that says so."""
    found: list[Moved] = []
    try:
        for move in islice(moves, count):
            found.append(move)
    except HistoryReclaimed as error:
        return found, error
    return found, None


@dataclass(frozen=True, slots=True)
class Blame:
    """A property (or an end of an edge) of an entity: its value and the commit that set it."""

    property: str
    value: Any
    commit: Commit | None
    """None for a property that came with a schema and was never set, or if it is ``reclaimed``."""
    reclaimed: bool = False
    """Whether the states that would show who set it were cleaned up."""

    def to_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.to_json()
        body = {"property": self.property, "value": self.value, "commit": commit}
        return body | ({"reclaimed": True} if self.reclaimed else {})


def blame(lifeline: Lifeline) -> list[Blame]:
    """For every property of an entity as it is now, the commit that set its current value.

    A value that came with a merge was set by a commit of the merged branch.
    """
    end = len(lifeline.track)
    now = lifeline.find(end - 1)
    owner = lifeline.owner
    if now is None:
        raise EntityNotFound(
            f"there is no {owner.name} with id {lifeline.id!r}",
            remedy="Look at its history, or blame an older state.",
            details={"type_key": owner.key, "id": lifeline.id},
        )
    setters = Setters(lifeline)
    commits, reclaimed = setters.before(set(now.values), end)
    if reclaimed == set(now.values):
        raise HistoryReclaimed(
            f"who set the values of {lifeline.id!r} was cleaned up",
            remedy="Look at its newest events with a page of its history.",
        )
    shown = {**now.image["properties"], **now.image.get("endpoints", {})}
    names = {
        owner.shown_name(column.name): column.property_id or column.name
        for column in owner.columns()
    }
    return [
        Blame(name, shown[name], commits.get(id), id in reclaimed)
        for name, id in names.items()
        if name in shown
    ]
