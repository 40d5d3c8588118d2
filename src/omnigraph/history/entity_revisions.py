"""The revisions of one entity: a walk back through the published versions of its type.

A stored row names the version that wrote it last. So the walk jumps from one revision to the
previous one: the version just before a revision holds the entity as it was, if it existed. While
the entity is absent, only versions that removed rows are searched. After a reset of the branch,
versions do not descend from each other. Revisions in fragments of their own are prefetched.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

from omnigraph.catalog.branches.concurrent_deletion import skip_if_deleted
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.history.attribution import Attribution, read_attribution
from omnigraph.catalog.history.timeline import Track
from omnigraph.catalog.references import locate_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, RowKind, TablePin, parse_version_key
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CommitNotFound, HistoryReclaimed
from omnigraph.history.entity_versions import EntityVersion, read_versions, search
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
"""The sizes of the batches of table pins that are read while searching for a deletion."""
READ_WHOLE_MAX: Final = 1_024
"""Up to this many rows are read completely, which is faster than a filter."""
PREFETCH_FIRST: Final = 4
PREFETCH_MAX: Final = 64
"""The sizes of the batches of revisions that are prefetched if their versions can be predicted."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of the entity: the position of its version, and the entity on both sides."""

    at: int
    before: EntityVersion | None
    after: EntityVersion | None
    known_op: Op | None = None
    """Set where the version before was cleaned up and a merge recorded the operation."""

    @property
    def op(self) -> Op:
        if self.known_op is not None:
            return self.known_op
        if self.before is None:
            return Op.INSERT
        return Op.DELETE if self.after is None else Op.UPDATE

    def changed(self) -> set[str]:
        """The identities of the properties whose values differ."""
        before = {} if self.before is None else self.before.values
        after = {} if self.after is None else self.after.values
        return {name for name, value in after.items() if before.get(name, _NULL) != value}


_NULL: Final = json.dumps(None)


@dataclass
class EntityRevisions:
    """The revisions of one entity on a branch. ``owner``: its type in the schema of the head."""

    repository: Repository
    branch: Branch
    state: ManifestState
    schemas: Schemas
    owner: NodeType | EdgeType
    id: str
    _pins: dict[int, TablePin] = field(default_factory=dict)
    _prefetched: dict[int, EntityVersion | None] = field(default_factory=dict)
    _prefetch_size: int = PREFETCH_FIRST
    _attributions: dict[str, Attribution | None] = field(default_factory=dict)

    def walk(self, until: int | None = None) -> Iterator[Revision]:
        """Every revision, newest first; ``until``: only those before a position."""
        try:
            yield from self._walk(until)
        except TableNotFound as error:
            raise HistoryReclaimed(
                f"the older history of {self.id!r} was cleaned up",
                remedy="Read a page of its history: the newest events are kept.",
            ) from error

    def _walk(self, until: int | None) -> Iterator[Revision]:
        at = len(self.track) - 1 if until is None else until - 1
        seen = self.find(at) if at >= 0 else None
        while at >= 0:
            if seen is None:
                at, seen = self._last_seen(at)
                if seen is not None:
                    yield Revision(at + 1, seen, None)
                continue
            start = self._run_start(at)
            made = self._first_since(seen.written, start, at)
            try:
                earlier = self._earlier(made, start)
            except TableNotFound:
                op = self._recorded_op(made)
                if op is not None:
                    yield Revision(made, None, seen, op)
                raise
            revision = Revision(made, earlier, seen)
            if earlier is None or revision.changed():
                yield revision
            at, seen = made - 1, earlier

    def find(self, at: int) -> EntityVersion | None:
        """The entity at a position, looked up by id."""
        return search(self._owner(at), self._table(at), self.id)

    def at_commit(self, commit_id: str) -> tuple[EntityRevisions, int] | None:
        """The revisions on the branch that made a commit, and the number of versions at that time.

        None when that commit, or the type there, no longer exists.
        """
        try:
            branch, commit = locate_commit(self.repository, commit_id)
        except (CommitNotFound, HistoryReclaimed):
            return None
        with skip_if_deleted(self.repository, branch):
            state = self.repository.manifest(branch).current()
            types = self.schemas(SnapshotPins.of(branch, state)).types()
            for owner in types:
                if owner.incarnation == self.owner.incarnation:
                    line = EntityRevisions(
                        self.repository, branch, state, self.schemas, owner, self.id
                    )
                    return line, line.track.until(commit.manifest_version or 0)
        return None

    def commit_of(self, revision: Revision) -> Commit:
        """The commit that made a revision."""
        return self._commit_at(self.track.versions[revision.at])

    def attribution(self, merge_id: str) -> Attribution | None:
        """The attribution that a merge recorded, on this branch or on a merged one."""
        if merge_id not in self._attributions:
            found = read_attribution(self.state.timeline, self.repository.objects, merge_id)
            self._attributions[merge_id] = found
        return self._attributions[merge_id]

    def known_commit(self, commit_id: str) -> Commit | None:
        """A commit of this branch, or one that was merged into it."""
        found = history.find_commit(self.state, commit_id)
        return history.find_merged(self.state, commit_id) if found is None else found

    def _earlier(self, made: int, start: int) -> EntityVersion | None:
        """The entity as it was before the version at position ``made``, which wrote its row.

        Only fragments that lost a row in that version can contain the earlier row.
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
        if at not in self._prefetched:
            steps = self._predicted(at, touched)
            parts = [(self._table(step), ids) for step, ids in steps.items()]
            seen = read_versions(self._owner(at), parts, self.id)
            self._prefetched = dict(zip(steps, seen, strict=True))
        return self._prefetched[at]

    def _predicted(self, at: int, touched: Sequence[int]) -> dict[int, Sequence[int]]:
        """The positions to prefetch from here on, with the fragments to read.

        The only row of a fragment is assumed to be the entity's, which tells the version that wrote
        it before it is read. A wrong guess costs a read and nothing else.
        """
        steps, known = {at: touched}, set(touched)
        size, self._prefetch_size = self._prefetch_size, min(2 * self._prefetch_size, PREFETCH_MAX)
        owner, dataset = self._owner(at), self.ref(at).dataset_path
        if any(column.type.is_blob for column in owner.columns()):
            return steps  # blobs are read by row id, from one version
        while len(steps) < size:
            found = self._predicted_step(at, touched)
            if found is None:
                break
            at, touched = found
            same = self.ref(at).dataset_path == dataset and self._owner(at) == owner
            if not same or known.intersection(touched) or self._size(at, touched) > READ_WHOLE_MAX:
                break
            steps[at] = touched
            known.update(touched)
        return steps

    def _predicted_step(self, at: int, fragment_ids: Sequence[int]) -> tuple[int, list[int]] | None:
        """The previous step, if the fragments of this step hold a single row."""
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
            return None  # cleaned up; the caller may stop before
        return (made - 1, touched) if touched else None

    def _touched(self, at: int) -> list[int]:
        """The fragments at a position that may have lost a row in the next version."""
        return touched_fragments(self._table(at), self._table(at + 1))

    def _size(self, at: int, fragment_ids: Sequence[int]) -> int:
        fragments = self._table(at).fragments
        return sum(fragments[fragment_id].physical_rows for fragment_id in fragment_ids)

    def _last_seen(self, at: int) -> tuple[int, EntityVersion | None]:
        """The newest earlier position at which the entity existed; -1 if it never did."""
        while at > 0:
            if self._pin(at).delete_epoch == 0:
                break  # nothing was removed up to here
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

    @cached_property
    def track(self) -> Track:
        """The published versions of this incarnation of the type, under all its names."""
        names = {
            item["name"]
            for row in self.state.rows(RowKind.SCHEMA)
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
        return parse_version_key(self.track.names[at])

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
        """The first position in a range, all of one lineage, whose version is not older."""
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
        """The operation of the version at a position, as a merge recorded it; None if not."""
        commit = self._commit_at(self.track.versions[made])
        merge = self.attribution(commit.commit_id)
        changes = () if merge is None else merge.changes_of(self.owner.incarnation, self.id)
        if not changes:
            return None
        inserts = (change.op == Op.INSERT and change.properties is None for change in changes)
        return Op.INSERT if any(inserts) else Op.UPDATE

    @cached_property
    def _one_schema(self) -> bool:
        return sum(1 for _ in self.state.rows(RowKind.SCHEMA)) == 1
