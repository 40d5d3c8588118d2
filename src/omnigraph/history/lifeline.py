"""One entity through the published versions of its type, from the newest backwards.

A stored row says which version wrote it last. So the walk goes from one change of the entity to the
one before it, over whatever happened to others in between: the version just before a change holds
the entity as it was, if it existed. Where an entity was absent, only versions that removed
something are looked at. Where a branch was reset, versions do not descend from each other.
Rows that were written alone are read many steps at a time.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

from omnigraph.catalog.branches.deleted import skipped_if_deleted
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.history.attribution import Attribution, read_attribution
from omnigraph.catalog.history.timeline import Track
from omnigraph.catalog.references import locate_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, Kind, TablePin, ref_at
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CommitNotFound, HistoryReclaimed
from omnigraph.history.entity_versions import Seen, read_whole, search
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.snapshots.commit_range import Schemas
from omnigraph.snapshots.entity_delta import Op
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.fingerprints import may_hold
from omnigraph.storage.lance.row_delta import common_ancestor, touched_fragments
from omnigraph.storage.lance.row_versions import only_writer
from omnigraph.storage.lance.tables import PinnedTable, TableRef

PINS_READ: Final = 64
PINS_READ_MAX: Final = 4_096
"""Published versions whose rows are fetched together while looking for a removal: ever more."""
READ_WHOLE_MAX: Final = 1_024
"""Rows that are read quicker than Lance plans a search among them."""
AHEAD_FIRST: Final = 4
AHEAD_MAX: Final = 64
"""Steps back that are read together, when where they lead can be told beforehand: ever more."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One change: the position of the version that made it, and the entity on both sides."""

    at: int
    before: Seen | None
    after: Seen | None
    known_op: Op | None = None
    """Given where the state before was cleaned up, and a merge recorded what happened."""

    @property
    def op(self) -> Op:
        if self.known_op is not None:
            return self.known_op
        if self.before is None:
            return Op.INSERT
        return Op.DELETE if self.after is None else Op.UPDATE

    def changed(self) -> set[str]:
        """The properties whose values are not the same on both sides, by identity."""
        before = {} if self.before is None else self.before.values
        after = {} if self.after is None else self.after.values
        return {name for name, value in after.items() if before.get(name, _NULL) != value}


_NULL: Final = json.dumps(None)


@dataclass
class Lifeline:
    """An entity of a type (as the head's schema has it) on a branch."""

    repository: Repository
    branch: Branch
    state: ManifestState
    schemas: Schemas
    owner: NodeType | EdgeType
    id: str
    _pins: dict[int, TablePin] = field(default_factory=dict)
    _ahead: dict[int, Seen | None] = field(default_factory=dict)
    _ahead_size: int = AHEAD_FIRST
    _attributions: dict[str, Attribution | None] = field(default_factory=dict)

    def moves(self, until: int | None = None) -> Iterator[Moved]:
        """Every change, newest first; ``until`` begins before the version at a position."""
        try:
            yield from self._moves(until)
        except TableNotFound as error:
            raise HistoryReclaimed(
                f"the older history of {self.id!r} was cleaned up",
                remedy="Ask for a page of the newest events: they can be read.",
            ) from error

    def _moves(self, until: int | None) -> Iterator[Moved]:
        at = len(self.track) - 1 if until is None else until - 1
        seen = self.find(at) if at >= 0 else None
        while at >= 0:
            if seen is None:
                at, seen = self._last_seen(at)
                if seen is not None:
                    yield Moved(at + 1, seen, None)
                continue
            start = self._run_start(at)
            made = self._first_since(seen.written, start, at)
            try:
                earlier = self._earlier(made, start)
            except TableNotFound:
                op = self._recorded_op(made)
                if op is not None:
                    yield Moved(made, None, seen, op)
                raise
            move = Moved(made, earlier, seen)
            if earlier is None or move.changed():
                yield move
            at, seen = made - 1, earlier

    def find(self, at: int) -> Seen | None:
        """The entity at a position, looked up by id."""
        return search(self._owner(at), self._table(at), self.id)

    def at_commit(self, commit_id: str) -> tuple[Lifeline, int] | None:
        """The same entity on the branch that made a commit, and how many versions it had then.

        None when that commit, or the type there, no longer exists.
        """
        try:
            branch, commit = locate_commit(self.repository, commit_id)
        except (CommitNotFound, HistoryReclaimed):
            return None
        with skipped_if_deleted(self.repository, branch):
            state = self.repository.manifest(branch).current()
            types = self.schemas(SnapshotPins.of(branch, state)).types()
            for owner in types:
                if owner.incarnation == self.owner.incarnation:
                    line = Lifeline(self.repository, branch, state, self.schemas, owner, self.id)
                    return line, line.track.until(commit.manifest_version or 0)
        return None

    def commit_of(self, move: Moved) -> Commit:
        """The commit that made a change."""
        return self._commit_at(self.track.versions[move.at])

    def attribution(self, merge_id: str) -> Attribution | None:
        """What a merge, of this branch or of one that was merged into it, left."""
        if merge_id not in self._attributions:
            found = read_attribution(self.state.timeline, self.repository.objects, merge_id)
            self._attributions[merge_id] = found
        return self._attributions[merge_id]

    def known_commit(self, commit_id: str) -> Commit | None:
        """A commit of this branch, or one that was merged into it."""
        found = history.find_commit(self.state, commit_id)
        return history.find_merged(self.state, commit_id) if found is None else found

    # -- from one change to the one before ---------------------------------------------------------

    def _earlier(self, made: int, start: int) -> Seen | None:
        """The entity just before the version at a position, which wrote it.

        A row that was replaced then is missing from where it was.
        """
        if made == 0:
            return None
        if made == start:
            return self.find(made - 1)
        at = made - 1
        touched = self._touched(at)
        if not touched:
            return None
        if self._size(at, touched) > READ_WHOLE_MAX:
            return search(self._owner(at), self._table(at), self.id, touched)
        if at not in self._ahead:
            steps = self._coming(at, touched)
            parts = [(self._table(step), ids) for step, ids in steps.items()]
            seen = read_whole(self._owner(at), parts, self.id)
            self._ahead = dict(zip(steps, seen, strict=True))
        return self._ahead[at]

    def _coming(self, at: int, touched: Sequence[int]) -> dict[int, Sequence[int]]:
        """Positions that the walk comes to from here on, with the fragments to look into.

        The lone row of a fragment is taken for the entity's, so that what wrote it is known before
        it is read. A wrong guess reads in vain, no more: the walk follows what it has seen.
        """
        steps, known = {at: touched}, set(touched)
        size, self._ahead_size = self._ahead_size, min(2 * self._ahead_size, AHEAD_MAX)
        owner, dataset = self._owner(at), self.ref(at).dataset_path
        if any(column.type.is_blob for column in owner.columns()):
            return steps  # whose values are read by row id, from one version
        while len(steps) < size:
            found = self._guessed(at, touched)
            if found is None:
                break
            at, touched = found
            same = self.ref(at).dataset_path == dataset and self._owner(at) == owner
            if not same or known.intersection(touched) or self._size(at, touched) > READ_WHOLE_MAX:
                break
            steps[at] = touched
            known.update(touched)
        return steps

    def _guessed(self, at: int, fragment_ids: Sequence[int]) -> tuple[int, list[int]] | None:
        """The step before, if the entity is the only one in the fragments of this step."""
        if self._size(at, fragment_ids) != 1:
            return None
        written = only_writer(self._table(at).fragments[fragment_ids[0]])
        start = self._run_start(at)
        made = start if written is None else self._first_since(written, start, at)
        if made == start:
            return None
        try:
            touched = self._touched(made - 1)
        except TableNotFound:
            return None  # cleaned up; the walk may end before it gets there
        return (made - 1, touched) if touched else None

    def _touched(self, at: int) -> list[int]:
        """The fragments at a position from which a row may be missing at the next."""
        return touched_fragments(self._table(at), self._table(at + 1))

    def _size(self, at: int, fragment_ids: Sequence[int]) -> int:
        fragments = self._table(at).fragments
        return sum(fragments[fragment_id].physical_rows for fragment_id in fragment_ids)

    def _last_seen(self, at: int) -> tuple[int, Seen | None]:
        """The newest older position at which the entity existed; -1 when it never did."""
        while at > 0:
            if self._pin(at).delete_epoch == 0:
                break  # nothing was ever removed until here
            pin = self._pin(at)
            removing = pin.delete_epoch > self._pin(at - 1).delete_epoch
            seen = self.find(at - 1) if removing and may_hold(pin.removed, self.id) else None
            if seen is not None:
                return at - 1, seen
            at -= 1
        return -1, None

    def _pin(self, at: int) -> TablePin:
        if at not in self._pins:
            size = min(max(PINS_READ, len(self._pins)), PINS_READ_MAX)
            positions = range(max(0, at - size), at + 1)
            rows = [self.track.rows[position] for position in positions]
            found = self.state.timeline.read_pins(rows)
            self._pins |= {p: found[row] for p, row in zip(positions, rows, strict=True)}
        return self._pins[at]

    # -- the versions of the type ------------------------------------------------------------------

    @cached_property
    def track(self) -> Track:
        """The published versions of this lifetime of the type, under whatever name it had."""
        names = {
            item["name"]
            for row in self.state.rows(Kind.SCHEMA)
            for item in row.metadata[f"{self.owner.kind}s"]
            if item["incarnation"] == self.owner.incarnation
        }
        tracks = [self.state.timeline.types.get(f"{self.owner.kind}:{name}") for name in names]
        found = [track for track in tracks if track is not None]
        where = f"{self.state.pins[self.owner.key].ref.path}@"
        if len(found) == 1 and all(name.startswith(where) for name in found[0].names):
            return found[0]
        return Track().extended(
            place
            for track in found
            for place in zip(track.versions, track.rows, track.names, strict=True)
            if place[2].startswith(where)
        )

    def ref(self, at: int) -> TableRef:
        return ref_at(self.track.names[at])

    def _table(self, at: int) -> PinnedTable:
        return self.repository.tables.open(self.ref(at))

    @cached_property
    def _breaks(self) -> list[int]:
        """Positions of versions that do not descend from the one published before them."""
        tables = self.repository.tables
        copies = [name.rpartition(":")[0] for name in self.track.names]
        return [0] + [
            at
            for at, (before, here) in enumerate(pairwise(copies), start=1)
            if before != here
            and common_ancestor(tables, self.ref(at - 1), self.ref(at)) != self.ref(at - 1)
        ]

    def _first_since(self, version: int, start: int, end: int) -> int:
        """The first of some positions, all of one descent, that is not older than a version."""
        return bisect_left(range(end), version, lo=start, key=lambda at: self.ref(at).version)

    def _run_start(self, at: int) -> int:
        return self._breaks[bisect_right(self._breaks, at) - 1]

    def _owner(self, at: int) -> NodeType | EdgeType:
        """The type as the schema had it at a position."""
        if self._one_schema:
            return self.owner
        version = self.track.versions[at]
        commit = self._commit_at(version)
        hash = commit.schema_hash or ""
        snapshot = SnapshotPins(self.branch, version, commit.commit_id, hash, {})
        types = self.schemas(snapshot).types()
        return next(owner for owner in types if owner.incarnation == self.owner.incarnation)

    def _commit_at(self, version: int) -> Commit:
        timeline = self.state.timeline
        return timeline.read_commits([timeline.commits.until(version) - 1])[0]

    def _recorded_op(self, made: int) -> Op | None:
        """What the version at a position did, as a merge recorded it; None if none did."""
        commit = self._commit_at(self.track.versions[made])
        merge = self.attribution(commit.commit_id)
        deeds = () if merge is None else merge.deeds(self.owner.incarnation, self.id)
        if not deeds:
            return None
        inserts = (deed.op == Op.INSERT and deed.properties is None for deed in deeds)
        return Op.INSERT if any(inserts) else Op.UPDATE

    @cached_property
    def _one_schema(self) -> bool:
        return sum(1 for _ in self.state.rows(Kind.SCHEMA)) == 1
