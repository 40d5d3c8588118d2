"""The history that a merge records: the merged commits, and which of them changed which entity.

The merged commits are those that the source has beyond the ancestors of the merge base. The
properties that each of them set are recorded, because older states may be removed later. The result
does not depend on the decisions of the merge, except for values that a resolution set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.ancestry import Ancestry, distances
from omnigraph.catalog.history.attribution import (
    AttributedChange,
    AttributedChanges,
    AttributionList,
    MergeRecord,
    digest_of,
    write_attribution,
)
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row
from omnigraph.catalog.schemas import cached_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.merge.commit_changes import (
    CommitChange,
    TypeStep,
    changed_properties,
    changes_of,
    changes_together,
)
from omnigraph.merge.entity_decisions import Composed
from omnigraph.merge.type_merges import TypeMerge
from omnigraph.snapshots.commit_range import WINDOW_COMMITS, CommitTransition, CommitWindow
from omnigraph.snapshots.entity_delta import Op, TypeDelta, paired_types, touched_types
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.row_delta import NEW, OLD, gather
from omnigraph.storage.lance.row_versions import WRITTEN


@dataclass(frozen=True, slots=True)
class MergedHistory:
    """The commits of the source that a merge adds to the history of the target."""

    repository: Repository
    source: Branch
    state: ManifestState
    ancestry: Ancestry
    base: str
    target_head: str

    def rows(
        self, merge_id: str, types: Sequence[TypeMerge], theirs: Sequence[TypeDelta]
    ) -> tuple[Row, ...]:
        """The history rows for the target; first stores the object that they refer to.

        ``theirs`` are the differences between base and source, ``types`` the merged changes.
        """
        record, listed = self._attribution(merge_id, types, theirs)
        if listed:
            write_attribution(self.repository.objects, record, listed)
        return (*self._merged_rows(), record.to_row())

    def _merged_rows(self) -> Iterator[Row]:
        """Rows of the commits that only the source has, and of their merges."""
        parents = self.ancestry.parents
        known = distances(parents, self.target_head)
        for id in sorted(distances(parents, self.state.head.commit_id)):
            commit = self.ancestry.commits.get(id)
            if id in known or commit is None:
                continue
            yield commit.to_merged_row()
            if commit.merged_parent is not None:
                carrier = self.repository.manifest(self.ancestry.carriers[id])
                merge = carrier.current().timeline.find_merge(id)
                if merge is not None:
                    yield merge

    def _attribution(
        self, merge_id: str, types: Sequence[TypeMerge], theirs: Sequence[TypeDelta]
    ) -> tuple[MergeRecord, AttributionList | None]:
        ids = self.state.timeline.commit_ids
        known = distances(self.ancestry.parents, self.base)
        first = len(ids)
        while first > 0 and ids[first - 1] not in known:
            first -= 1
        before = ids[first - 1] if first else None
        deltas = {delta.side.pin.incarnation: delta for delta in theirs}
        if before == self.base and first == len(ids) - 1:
            touched = {
                incarnation: _Touched(list(changes_of(ids[first], delta)))
                for incarnation, delta in deltas.items()
            }
        else:
            touched = self._touched(max(first, 1), deltas)
        usual: dict[str, AttributedChanges] = {}
        found: dict[str, dict[str, AttributedChanges]] = {}
        for incarnation, of_type in touched.items():
            most, found[incarnation] = of_type.changes()
            if most is not None:
                usual[incarnation] = most
        for merge in types:
            incarnation = merge.target.pin.incarnation
            unreadable = touched[incarnation].unreadable if incarnation in touched else []
            listed = found.setdefault(incarnation, {})
            for id, changes in _last_writers(merge, unreadable):
                listed.setdefault(id, changes)
            for id, taken in (*_inserted_twice(merge, deltas.get(incarnation)), *_composed(merge)):
                changes = listed.get(id, usual.get(incarnation, ()))
                restricted = (_restricted(change, taken) for change in changes)
                listed[id] = tuple(change for change in restricted if change.properties != ())
            for id, given in _given(merge):
                own = AttributedChange(merge_id, str(Op.UPDATE), given)
                listed[id] = (*listed.get(id, usual.get(incarnation, ())), own)
        digests = {
            incarnation: {digest_of(id): changes for id, changes in entities.items()}
            for incarnation, entities in found.items()
            if entities
        }
        record = MergeRecord(merge_id, before, usual, has_listed=bool(digests))
        return record, AttributionList.of(digests) if digests else None

    def _touched(self, first: int, theirs: Mapping[str, TypeDelta]) -> dict[str, _Touched]:
        """The changes of the commits from a position on, by type incarnation."""
        touched: dict[str, _Touched] = {}
        for transitions in self._windows(first):
            by_type: dict[str, list[TypeStep]] = {}
            for transition in transitions:
                before, after = transition.before.snapshot, transition.after.snapshot
                for keys in touched_types(before, after, paired_types(before, after)):
                    step = TypeStep(transition, keys)
                    by_type.setdefault(step.pin.incarnation, []).append(step)
            for incarnation, steps in by_type.items():
                of_type = touched.setdefault(incarnation, _Touched())
                of_type.add(self.repository, steps, theirs.get(incarnation))
        return touched

    def _windows(self, first: int) -> Iterator[list[CommitTransition]]:
        timeline = self.state.timeline
        end = len(timeline.commits)
        for start in range(first, end, WINDOW_COMMITS):
            last = min(start + WINDOW_COMMITS, end) - 1
            commits = [
                self.ancestry.commits[id] for id in timeline.commit_ids[start - 1 : last + 1]
            ]
            window = CommitWindow.of(self.source, timeline, self._schema, start, commits)
            yield [window.transition(position) for position in range(start, last + 1)]

    def _schema(self, snapshot: SnapshotPins) -> AcceptedSchema:
        return cached_schema(self.state, snapshot.schema_hash)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The changes of commits to one type, oldest first."""

    done: list[CommitChange] = field(default_factory=list)
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    """Commits whose states were cleaned up, with the table versions that they made."""

    def add(
        self, repository: Repository, steps: Sequence[TypeStep], theirs: TypeDelta | None
    ) -> None:
        """Add the changes of the following commits."""
        with suppress(TableNotFound):
            together = changes_together(repository, steps, theirs)
            if together is not None:
                self.done.extend(together)
                return
        for step in steps:
            try:
                done = list(step.changes(repository))
            except TableNotFound:  # cleaned up
                self.unreadable.append((step.pin.ref.version, step.commit_id))
            else:
                self.done.extend(done)

    def changes(self) -> tuple[AttributedChanges | None, dict[str, AttributedChanges]]:
        """The most frequent changes, and the changes of all other entities by id."""
        counts = pc.value_counts(pa.chunked_array([ids for _, ids in self.done], pa.string()))
        often = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        groups: dict[AttributedChanges, list[pa.Array]] = {}  # ids touched by a single commit
        done: dict[str, list[AttributedChange]] = {id: [] for id in often.to_pylist()}
        for change, ids in self.done:
            again = pc.is_in(ids, value_set=often)
            once = ids.filter(pc.invert(again))
            if len(once):
                groups.setdefault((change,) if change.properties != () else (), []).append(once)
            if change.properties != ():
                for id in ids.filter(again).to_pylist():
                    done[id].append(change)
        return self._divided(groups, {id: tuple(changes) for id, changes in done.items()})

    def _divided(
        self,
        groups: Mapping[AttributedChanges, Sequence[pa.Array]],
        others: Mapping[str, AttributedChanges],
    ) -> tuple[AttributedChanges | None, dict[str, AttributedChanges]]:
        """The most frequent changes, and all entities with others.

        The first is None if some commits are unreadable: their entities are not known.
        """
        sizes = Counter(others.values())
        sizes.update({changes: sum(map(len, parts)) for changes, parts in groups.items()})
        usual = None
        if sizes and not self.unreadable:
            usual = sizes.most_common(1)[0][0]
        listed = {id: changes for id, changes in others.items() if changes != usual}
        for changes, parts in groups.items():
            if changes != usual:
                listed |= {id: changes for ids in parts for id in ids.to_pylist()}
        return usual, listed


def _last_writers(
    merge: TypeMerge, commits: Sequence[tuple[int, str]]
) -> Iterator[tuple[str, AttributedChanges]]:
    """The commits that last wrote the merged rows, out of commits given by their versions."""
    pairs = merge.copied.get("source")
    if pairs is None or not commits:
        return
    come = pairs.filter(pc.is_valid(pairs[NEW]))
    rows = gather(merge.sides["source"].table, come[NEW].combine_chunks(), [WRITTEN])
    versions = [version for version, _ in commits]
    for id, version in zip(come["id"].to_pylist(), rows[WRITTEN].to_pylist(), strict=True):
        at = bisect_left(versions, version)
        if at < len(commits):
            yield id, (AttributedChange(commits[at][1], None),)


def _inserted_twice(
    merge: TypeMerge, theirs: TypeDelta | None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Entities that both sides inserted and the merge takes from the source, with the properties
    that differ from the target's."""
    if theirs is None or not theirs.pairs[OLD].null_count:
        return
    inserted = theirs.pairs["id"].filter(pc.is_null(theirs.pairs[OLD])).combine_chunks()
    pairs = merge.copied.get("source")
    if pairs is not None:
        contested = pc.and_(pc.is_valid(pairs[OLD]), pc.is_valid(pairs[NEW]))
        both = pairs.filter(pc.and_(contested, pc.is_in(pairs["id"], value_set=inserted)))
        delta = TypeDelta(merge.target, merge.sides["source"], both)
        for properties, ids in changed_properties(delta, both):
            if properties:
                yield from ((id, properties) for id in ids.to_pylist())


def _composed(merge: TypeMerge) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Entities composed from both sides, with the properties that come from the source. The values
    of the other properties were not set by a merged commit."""
    owner = merge.target.owner
    for item in merge.composed:
        if item.target_row is not None:
            yield item.id, _identities(owner, _columns_from(owner, item, "source"))


def _columns_from(owner: NodeType | EdgeType, item: Composed, side: str) -> set[str]:
    """The columns of a composed entity that have the value of one side."""
    found = {name for name, taken in item.taken.items() if taken == side}
    if item.start == side:
        every = {column.name for column in owner.columns()} - {"id"}
        found |= every - item.taken.keys() - item.values.keys()
    return found


def _identities(owner: NodeType | EdgeType, names: Iterable[str]) -> tuple[str, ...]:
    properties = owner.properties
    return tuple(sorted(properties[n].property_id if n in properties else n for n in names))


def _restricted(change: AttributedChange, taken: tuple[str, ...]) -> AttributedChange:
    """A change, restricted to the properties that the merge took."""
    if change.op == Op.DELETE:
        return change
    kept = taken if change.properties is None else set(change.properties) & set(taken)
    return replace(change, properties=tuple(sorted(kept)))


def _given(merge: TypeMerge) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Entities with values that a resolution set, and these properties; None stands for all."""
    owner = merge.target.owner
    for item in merge.composed:
        names = {*item.values, *_columns_from(owner, item, "base")}
        if names:
            yield item.id, _identities(owner, names)
    if "base" in merge.copied:
        yield from ((id, None) for id in merge.copied["base"]["id"].to_pylist())
