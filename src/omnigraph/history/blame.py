"""Blame: the commits that set the values of an entity, on its branch or before a merge.

A merge records which commits of the merged branch did what (``catalog/history/attribution.py``). An
older merge without that record is followed on the merged branch, while it exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.history.attribution import AttributedChange, Attribution
from omnigraph.catalog.rows import Commit
from omnigraph.errors import EntityNotFound, HistoryReclaimed
from omnigraph.history.entity_revisions import EntityRevisions, Revision
from omnigraph.history.entity_versions import EntityVersion
from omnigraph.snapshots.entity_delta import Op
from omnigraph.storage.lance.errors import TableNotFound


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A commit of a merged branch that contributed to the change of an entity by a merge."""

    commit: Commit
    op: Op | None
    """None where the version was cleaned up before the merge."""
    properties: tuple[str, ...]
    """The properties that it set, among those that the merge changed."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"commit": self.commit.to_json()}
        if self.op is not None:
            body["op"] = str(self.op)
        return body | {"properties": list(self.properties)}


@dataclass(frozen=True, slots=True)
class ValueOrigins:
    """Finds the commits that set values of one entity."""

    revisions: EntityRevisions

    def before(self, wanted: set[str], end: int) -> tuple[dict[str, Commit], set[str]]:
        """The commits that set the values that these properties had before a position.

        The second result are the properties whose origin is lost, because versions were cleaned up.
        """
        found: dict[str, Commit] = {}
        lost: set[str] = set()
        missing = set(wanted)
        try:
            for revision in self.revisions.walk(end):
                if revision.after is None:
                    break
                known = self._set_by(revision, missing)
                found |= {name: commit for name, commit in known.items() if commit is not None}
                lost |= {name for name, commit in known.items() if commit is None}
                missing -= known.keys()
                if not missing or revision.op is Op.INSERT:
                    break
        except HistoryReclaimed:
            lost |= missing
        return found, lost

    def _set_by(self, revision: Revision, names: set[str]) -> Mapping[str, Commit | None]:
        """The properties that a revision set, with their commits; None: cleaned up."""
        commit = self.revisions.commit_of(revision)
        merge = None
        if commit.merged_parent is not None:
            merge = self.revisions.attribution(commit.commit_id)
        if revision.known_op is Op.UPDATE:  # only a merge recorded what it changed
            return {} if merge is None else self._recorded(merge, names)
        fresh = names if revision.op is Op.INSERT else names & revision.changed()
        if not fresh or commit.merged_parent is None:
            return dict.fromkeys(fresh, commit)
        assert revision.after is not None
        if merge is None:
            followed = self._followed(commit.merged_parent, fresh, revision.after)
            return dict.fromkeys(fresh, commit) | followed
        return {
            name: self._attributed(merge, name, revision, revision.after, commit) for name in fresh
        }

    def _attributed(
        self,
        merge: Attribution,
        name: str,
        revision: Revision,
        after: EntityVersion,
        commit: Commit,
    ) -> Commit | None:
        """The commit that set a value brought by a merge; None if it was cleaned up."""
        change = self._last_change(merge, name)
        is_recorded = change is not None and (
            change.properties is not None or change.op == Op.INSERT
        )
        if not is_recorded:
            # The merge may have taken the whole entity of the source, which had not changed this
            # property, because the target had deleted or changed it.
            try:
                if self._was_in_base(merge, name, after):
                    return self.before({name}, self._versions_at_base(merge))[0].get(name)
            except TableNotFound:
                if change is None or revision.op is Op.INSERT:
                    return None
        return commit if change is None else self._resolved(change, name) or commit

    def _recorded(self, merge: Attribution, names: set[str]) -> dict[str, Commit]:
        """The properties that a merge recorded by name, with their commits."""
        found = {}
        for name in names:
            change = self._last_change(merge, name)
            if change is not None and change.properties is not None:
                commit = self._resolved(change, name)
                if commit is not None:
                    found[name] = commit
        return found

    def _resolved(self, change: AttributedChange, name: str) -> Commit | None:
        """The commit of an attributed change; through merges, the original commit."""
        while True:
            merge = self.revisions.attribution(change.commit_id)
            inner = None if merge is None else self._last_change(merge, name)
            if inner is None or inner.commit_id == change.commit_id:
                return self.revisions.known_commit(change.commit_id)
            change = inner

    def _last_change(self, merge: Attribution, name: str) -> AttributedChange | None:
        """The change by the last of the merged commits that set a property."""
        changes = merge.changes_of(self.revisions.owner.incarnation, self.revisions.id)
        return next((change for change in reversed(changes) if change.may_set(name)), None)

    def _was_in_base(self, merge: Attribution, name: str, after: EntityVersion) -> bool:
        """Whether the merge base already had a value."""
        end = self._versions_at_base(merge)
        seen = self.revisions.find(end - 1) if end else None
        return seen is not None and seen.values.get(name) == after.values[name]

    def _versions_at_base(self, merge: Attribution) -> int:
        """The number of versions at the merge base."""
        line, before = self.revisions, merge.record.before
        version = None if before is None else line.state.timeline.version_of(before)
        return 0 if version is None else line.track.until(version)

    def _followed(
        self, commit_id: str, names: set[str], set_to: EntityVersion
    ) -> dict[str, Commit]:
        """The commits of values that a merge took from the merged branch, found there."""
        source = self.revisions.at_commit(commit_id)
        if source is None:
            return {}
        line, end = source
        try:
            seen = line.find(end - 1) if end else None
        except TableNotFound:
            return {}  # versions were cleaned up: the merge is the oldest known commit of the value
        if seen is None:
            return {}
        taken = {name for name in names if seen.values.get(name) == set_to.values[name]}
        return ValueOrigins(line).before(taken, end)[0]


def merged_changes(
    revisions: EntityRevisions, commit: Commit, revision: Revision
) -> tuple[MergedChange, ...]:
    """The changes by commits of merged branches to an entity that a merge changed."""
    if commit.merged_parent is None:
        return ()
    changed = (
        None if revision.known_op is Op.UPDATE or revision.op is Op.DELETE else revision.changed()
    )
    found: dict[str, MergedChange] = {}
    for change, made in _attributed_changes(revisions, commit.commit_id):
        if change.commit_id == commit.commit_id:
            continue  # a resolution of the merge itself
        names = changed if change.properties is None else set(change.properties)
        shown = names if changed is None or names is None else names & changed
        if revision.op is Op.UPDATE and changed is not None and not shown:
            continue  # it was undone again before the merge
        before = found.get(change.commit_id)
        properties = set(_named(revisions, shown or set()))
        if before is not None:
            properties |= set(before.properties)
        op = None if change.op is None else Op(change.op)
        found[change.commit_id] = MergedChange(made, op, tuple(sorted(properties)))
    newest = sorted(found.values(), key=lambda c: (c.commit.created_at_us, c.commit.commit_id))
    return tuple(reversed(newest))


def _attributed_changes(
    revisions: EntityRevisions, merge_id: str
) -> Iterator[tuple[AttributedChange, Commit]]:
    """All recorded changes of an entity by a merge, nested merges included."""
    merge = revisions.attribution(merge_id)
    if merge is None:
        return
    for change in merge.changes_of(revisions.owner.incarnation, revisions.id):
        made = revisions.known_commit(change.commit_id)
        if made is not None:
            yield change, made
        if change.commit_id != merge_id:
            yield from _attributed_changes(revisions, change.commit_id)


def _named(revisions: EntityRevisions, ids: set[str]) -> Iterator[str]:
    """The names of properties in the schema of the head."""
    for column in revisions.owner.columns():
        if (column.property_id or column.name) in ids:
            yield revisions.owner.shown_name(column.name)


@dataclass(frozen=True, slots=True)
class Blame:
    """A property (or an endpoint) of an entity: its value and the commit that set it."""

    property: str
    value: Any
    commit: Commit | None
    """None for a property that was added by a schema and never set, or if ``reclaimed``."""
    reclaimed: bool = False
    """Whether the versions that would show the commit were cleaned up."""

    def to_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.to_json()
        body = {"property": self.property, "value": self.value, "commit": commit}
        return body | ({"reclaimed": True} if self.reclaimed else {})


def blame(revisions: EntityRevisions) -> list[Blame]:
    """The commit that set the current value of each property of an entity.

    A value that a merge brought is attributed to the commit of the merged branch.
    """
    end = len(revisions.track)
    now = revisions.find(end - 1)
    owner = revisions.owner
    if now is None:
        raise EntityNotFound(
            f"there is no {owner.name} with id {revisions.id!r}",
            remedy="Check the id, or read its history.",
            details={"type_key": owner.key, "id": revisions.id},
        )
    commits, reclaimed = ValueOrigins(revisions).before(set(now.values), end)
    if reclaimed == set(now.values):
        raise HistoryReclaimed(
            f"the versions that set the values of {revisions.id!r} were cleaned up",
            remedy="Read a page of its history: the newest events are kept.",
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
