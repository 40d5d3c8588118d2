"""The history of an entity, and who set its values: lifelines with the commits that made them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from omnigraph.argument_types import checked_methods
from omnigraph.errors import EntityNotFound, InvalidInput, ResourceLimit
from omnigraph.history.lifeline import Lifeline, Moved
from omnigraph.history.sightings import Seen
from omnigraph.history.tokens import Scope
from omnigraph.manifest.rows import Commit
from omnigraph.read.delta import Op
from omnigraph.storage.lance_errors import TableNotFound

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

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"commit": self.commit.to_json(), "op": str(self.op)}
        for name, image in (("before", self.before), ("after", self.after)):
            if image is not None:
                body[name] = image
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

    def __iter__(self) -> Iterator[EntityEvent]:
        moves, size = self.lifeline.moves(), BATCH_EVENTS
        while batch := list(islice(moves, size)):
            yield from self._events(batch)
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
        found = list(islice(self.lifeline.moves(until), limit + 1))
        token = None
        if len(found) > limit:
            token = self._scope.encode("history", {"before": versions[found[limit - 1].at]})
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


@dataclass(frozen=True, slots=True)
class Blame:
    """A property (or an end of an edge) of an entity: its value and the commit that set it."""

    property: str
    value: Any
    commit: Commit | None
    """None for a property that came with a schema and was never set."""

    def to_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.to_json()
        return {"property": self.property, "value": self.value, "commit": commit}


def blame(lifeline: Lifeline) -> list[Blame]:
    """For every property of an entity as it is now, the commit that set its current value.

    A value that came with a merge was set by a commit of the merged branch, if that still exists.
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
    commits = _setters(lifeline, set(now.values), end)
    shown = {**now.image["properties"], **now.image.get("endpoints", {})}
    ends = {"src": "from", "dst": "to"}
    return [
        Blame(name, shown[name], commits.get(column.property_id or column.name))
        for column in owner.columns()
        if (name := ends.get(column.name, column.name)) in shown
    ]


def _setters(lifeline: Lifeline, wanted: set[str], end: int) -> dict[str, Commit]:
    """Which commits set the values that these properties have before a position."""
    found: dict[str, Commit] = {}
    missing = set(wanted)
    timeline, versions = lifeline.state.timeline, lifeline.track.versions
    for move in lifeline.moves(end):
        fresh = missing if move.op is Op.INSERT else missing & move.changed()
        if fresh and move.after is not None:
            at = timeline.commits.until(versions[move.at]) - 1
            (commit,) = timeline.read_commits([at])
            found |= dict.fromkeys(fresh, commit)
            if commit.merged_parent is not None:
                found |= _merged(lifeline, commit.merged_parent, fresh, move.after)
        missing -= fresh
        if not missing or move.op is not Op.UPDATE:
            break
    return found


def _merged(lifeline: Lifeline, commit_id: str, names: set[str], set_to: Seen) -> dict[str, Commit]:
    """The setters of those values that a merge took from the branch that was merged."""
    source = lifeline.at_commit(commit_id)
    if source is None:
        return {}
    line, end = source
    try:
        seen = line.find(end - 1) if end else None
    except TableNotFound:
        return {}  # cleaned up: the merge is the oldest commit that is known to have it
    if seen is None:
        return {}
    taken = {name for name in names if seen.values.get(name) == set_to.values[name]}
    return _setters(line, taken, end)
