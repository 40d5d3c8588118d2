"""Who set the values of an entity: along its branch, and through what was merged into it.

A merge recorded which commits of the merged branch did what (``manifest.attribution``). A merge
from before that is followed on the merged branch itself, as long as there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.history.attribution import Attribution, Deed
from omnigraph.catalog.rows import Commit
from omnigraph.errors import HistoryReclaimed
from omnigraph.history.entity_versions import Seen
from omnigraph.history.lifeline import Lifeline, Moved
from omnigraph.snapshots.entity_delta import Op
from omnigraph.storage.lance.errors import TableNotFound


@dataclass(frozen=True, slots=True)
class MergedChange:
    """A commit of a merged branch that had a part in what a merge did to an entity."""

    commit: Commit
    op: Op | None
    """None where it was not known any more when the branch was merged."""
    properties: tuple[str, ...]
    """Those that it set, of the ones that the merge changed."""

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"commit": self.commit.to_json()}
        if self.op is not None:
            body["op"] = str(self.op)
        return body | {"properties": list(self.properties)}


@dataclass(frozen=True, slots=True)
class Setters:
    """Finds the commits that set values of one entity."""

    lifeline: Lifeline

    def before(self, wanted: set[str], end: int) -> tuple[dict[str, Commit], set[str]]:
        """Which commits set the values that these properties have before a position.

        Also those of them of which it cannot be told any more, because states were cleaned up.
        """
        found: dict[str, Commit] = {}
        lost: set[str] = set()
        missing = set(wanted)
        try:
            for move in self.lifeline.moves(end):
                if move.after is None:
                    break
                told = self._set_by(move, missing)
                found |= {name: commit for name, commit in told.items() if commit is not None}
                lost |= {name for name, commit in told.items() if commit is None}
                missing -= told.keys()
                if not missing or move.op is Op.INSERT:
                    break
        except HistoryReclaimed:
            lost |= missing
        return found, lost

    def _set_by(self, move: Moved, names: set[str]) -> Mapping[str, Commit | None]:
        """Of some properties those that a change set, with who did; None: that was cleaned up."""
        commit = self.lifeline.commit_of(move)
        merge = None
        if commit.merged_parent is not None:
            merge = self.lifeline.attribution(commit.commit_id)
        if move.known_op is Op.UPDATE:  # nobody knows what it changed, unless it is a merge
            return {} if merge is None else self._recorded(merge, names)
        fresh = names if move.op is Op.INSERT else names & move.changed()
        if not fresh or commit.merged_parent is None:
            return dict.fromkeys(fresh, commit)
        assert move.after is not None
        if merge is None:
            followed = self._followed(commit.merged_parent, fresh, move.after)
            return dict.fromkeys(fresh, commit) | followed
        return {name: self._attributed(merge, name, move, move.after, commit) for name in fresh}

    # -- merges that recorded who did what ---------------------------------------------------------

    def _attributed(
        self, merge: Attribution, name: str, move: Moved, after: Seen, commit: Commit
    ) -> Commit | None:
        """Who set a value that a merge brought, if not the merge itself; None: cleaned up."""
        deed = self._deed(merge, name)
        is_told = deed is not None and (deed.properties is not None or deed.op == Op.INSERT)
        if not is_told:
            # Perhaps the source's entity was taken as a whole, and it had not changed this
            # property: the target had deleted or changed it.
            try:
                if self._was_older(merge, name, after):
                    return self.before({name}, self._beginning(merge))[0].get(name)
            except TableNotFound:
                if deed is None or move.op is Op.INSERT:
                    return None
        return commit if deed is None else self._resolved(deed, name) or commit

    def _recorded(self, merge: Attribution, names: set[str]) -> dict[str, Commit]:
        """Of some properties those of which a merge recorded by name that they were set."""
        found = {}
        for name in names:
            deed = self._deed(merge, name)
            if deed is not None and deed.properties is not None:
                commit = self._resolved(deed, name)
                if commit is not None:
                    found[name] = commit
        return found

    def _resolved(self, deed: Deed, name: str) -> Commit | None:
        """The commit of a deed or, where that is a merge in turn, of what it merged."""
        while True:
            merge = self.lifeline.attribution(deed.commit_id)
            inner = None if merge is None else self._deed(merge, name)
            if inner is None or inner.commit_id == deed.commit_id:
                return self.lifeline.known_commit(deed.commit_id)
            deed = inner

    def _deed(self, merge: Attribution, name: str) -> Deed | None:
        """The last of the merged commits that set a property."""
        deeds = merge.deeds(self.lifeline.owner.incarnation, self.lifeline.id)
        return next((deed for deed in reversed(deeds) if deed.may_set(name)), None)

    def _was_older(self, merge: Attribution, name: str, after: Seen) -> bool:
        """Whether a value was there already where the merged line began."""
        end = self._beginning(merge)
        seen = self.lifeline.find(end - 1) if end else None
        return seen is not None and seen.values.get(name) == after.values[name]

    def _beginning(self, merge: Attribution) -> int:
        """How many versions there were when this branch and the merged line were last one."""
        line, before = self.lifeline, merge.record.before
        version = None if before is None else line.state.timeline.version_of(before)
        return 0 if version is None else line.track.until(version)

    # -- merges that did not -----------------------------------------------------------------------

    def _followed(self, commit_id: str, names: set[str], set_to: Seen) -> dict[str, Commit]:
        """The setters of those values that a merge took from the branch that was merged."""
        source = self.lifeline.at_commit(commit_id)
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
        return Setters(line).before(taken, end)[0]


def merged_changes(lifeline: Lifeline, commit: Commit, move: Moved) -> tuple[MergedChange, ...]:
    """What commits of merged branches had done to an entity that a merge changed."""
    if commit.merged_parent is None:
        return ()
    changed = None if move.known_op is Op.UPDATE or move.op is Op.DELETE else move.changed()
    found: dict[str, MergedChange] = {}
    for deed, made in _deeds(lifeline, commit.commit_id):
        if deed.commit_id == commit.commit_id:
            continue  # what whoever merged decided
        names = changed if deed.properties is None else set(deed.properties)
        shown = names if changed is None or names is None else names & changed
        if move.op is Op.UPDATE and changed is not None and not shown:
            continue  # it was undone again before the merge
        before = found.get(deed.commit_id)
        properties = set(_named(lifeline, shown or set()))
        if before is not None:
            properties |= set(before.properties)
        op = None if deed.op is None else Op(deed.op)
        found[deed.commit_id] = MergedChange(made, op, tuple(sorted(properties)))
    newest = sorted(found.values(), key=lambda c: (c.commit.created_at_us, c.commit.commit_id))
    return tuple(reversed(newest))


def _deeds(lifeline: Lifeline, merge_id: str) -> Iterator[tuple[Deed, Commit]]:
    """All deeds that a merge recorded of an entity, and those of merges among them."""
    merge = lifeline.attribution(merge_id)
    if merge is None:
        return
    for deed in merge.deeds(lifeline.owner.incarnation, lifeline.id):
        made = lifeline.known_commit(deed.commit_id)
        if made is not None:
            yield deed, made
        if deed.commit_id != merge_id:
            yield from _deeds(lifeline, deed.commit_id)


def _named(lifeline: Lifeline, ids: set[str]) -> Iterator[str]:
    """Properties by the names that the head's schema has for them."""
    for column in lifeline.owner.columns():
        if (column.property_id or column.name) in ids:
            yield lifeline.owner.shown_name(column.name)
