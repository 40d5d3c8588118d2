"""What a merge keeps of the merged branch's history: its commits, and who did what to which entity.

The merged line of commits begins where the branch left what the merge base descends from. What each
of its commits touched is found as pairs of row ids, at the cost of what was touched. Values are
compared only for entities that several commits touched, and for all of them in small merges. The
result does not depend on what the merge decided, except for values that whoever merged gave.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.ancestry import Ancestry, distances
from omnigraph.catalog.history.attribution import (
    Deed,
    Deeds,
    Listed,
    MergeRecord,
    digest_of,
    write_listed,
)
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.merge.content import TypeMerge
from omnigraph.merge.contested import Composed
from omnigraph.prepare.committer import cached_schema
from omnigraph.snapshots.commit_range import WINDOW_COMMITS, Step, Window
from omnigraph.snapshots.entity_delta import Op, TypeDelta, paired_types, touched_types, type_delta
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.row_delta import NEW, OLD, gather
from omnigraph.storage.lance.row_versions import WRITTEN

COMPARED_MAX: Final = 256
"""Merges of so many entities compare the values of all that were updated, so that later it can be
told which properties a commit set even where no older state is left. Larger ones do not pay for
that where one commit touched an entity: it set whatever the merge changed."""


@dataclass(frozen=True, slots=True)
class MergedLine:
    """The commits of a branch that a merge brings into another one."""

    repository: Repository
    source: Branch
    state: ManifestState
    ancestry: Ancestry
    base: str
    target_head: str

    def rows(
        self, merge_id: str, types: Sequence[TypeMerge], theirs: Sequence[TypeDelta]
    ) -> tuple[Row, ...]:
        """The history rows for the target; stores first what they refer to.

        ``theirs`` is what differs between the base and the source, ``types`` what is merged of it.
        """
        record, listed = self._attribution(merge_id, types, theirs)
        if listed:
            write_listed(self.repository.objects, record, listed)
        return (*self._merged_rows(), record.to_row())

    def _merged_rows(self) -> Iterator[Row]:
        """Commits that lead to the source and not yet to the target, and what their merges left."""
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
    ) -> tuple[MergeRecord, Listed | None]:
        ids = self.state.timeline.commit_ids
        known = distances(self.ancestry.parents, self.base)
        first = len(ids)
        while first > 0 and ids[first - 1] not in known:
            first -= 1
        before = ids[first - 1] if first else None
        if before == self.base and first == len(ids) - 1:
            touched = {d.side.pin.incarnation: _Touched([ids[first]], [d]) for d in theirs}
        else:
            touched = self._touched(max(first, 1))
        compares = sum(delta.pairs.num_rows for delta in theirs) <= COMPARED_MAX
        usual: dict[str, Deeds] = {}
        found: dict[str, dict[str, Deeds]] = {}
        for lifetime, of_type in touched.items():
            most, found[lifetime] = of_type.deeds(compares=compares)
            if most is not None:
                usual[lifetime] = most
        deltas = {delta.side.pin.incarnation: delta for delta in theirs}
        for merge in types:
            lifetime = merge.target.pin.incarnation
            unreadable = touched[lifetime].unreadable if lifetime in touched else []
            listed = found.setdefault(lifetime, {})
            for id, deeds in _last_writers(merge, unreadable):
                listed.setdefault(id, deeds)
            for id, taken in _inserted_twice(merge, deltas.get(lifetime)):
                deeds = listed.get(id, usual.get(lifetime, ()))
                listed[id] = tuple(_restricted(deed, taken) for deed in deeds)
            for id, given in _given(merge):
                own = Deed(merge_id, str(Op.UPDATE), given)
                listed[id] = (*listed.get(id, usual.get(lifetime, ())), own)
        digests = {
            lifetime: {digest_of(id): deeds for id, deeds in entities.items()}
            for lifetime, entities in found.items()
            if entities
        }
        record = MergeRecord(merge_id, before, usual, has_listed=bool(digests))
        return record, Listed.of(digests) if digests else None

    def _touched(self, first: int) -> dict[str, _Touched]:
        """What the commits from a position on touched, by lifetime of the type."""
        touched: dict[str, _Touched] = {}
        for step in self._steps(first):
            before, after = step.before.snapshot, step.after.snapshot
            for keys in touched_types(before, after, paired_types(before, after)):
                pin = after.pins[keys[1]] if keys[1] is not None else before.pins[keys[0] or ""]
                of_type = touched.setdefault(pin.incarnation, _Touched())
                try:
                    delta = type_delta(self.repository, step.before, step.after, keys)
                except TableNotFound:  # cleaned up
                    of_type.unreadable.append((pin.ref.version, step.commit.commit_id))
                else:
                    of_type.commits.append(step.commit.commit_id)
                    of_type.deltas.append(delta)
        return touched

    def _steps(self, first: int) -> Iterator[Step]:
        timeline = self.state.timeline
        end = len(timeline.commits)
        for start in range(first, end, WINDOW_COMMITS):
            last = min(start + WINDOW_COMMITS, end) - 1
            window = Window.read(self.source, timeline, self._schema, start, last)
            yield from (window.step(position) for position in range(start, last + 1))

    def _schema(self, snapshot: SnapshotPins) -> AcceptedSchema:
        return cached_schema(self.state, snapshot.schema_hash)


@dataclass
class _Touched:
    """What commits touched of one type, oldest first."""

    commits: list[str] = field(default_factory=list)
    deltas: list[TypeDelta] = field(default_factory=list)
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    """Commits whose states were cleaned up, with the versions of the table that they made."""

    def deeds(self, *, compares: bool) -> tuple[Deeds | None, dict[str, Deeds]]:
        """What was done to most entities, and to each of the others."""
        touched = pa.chunked_array(
            [chunk for delta in self.deltas for chunk in delta.pairs["id"].chunks], pa.string()
        )
        counts = pc.value_counts(touched)
        often = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        groups: dict[Deeds, pa.ChunkedArray] = {}  # of entities that one commit touched
        done: dict[str, list[Deed]] = {}
        for commit_id, delta in zip(self.commits, self.deltas, strict=True):
            pairs = delta.pairs
            had, has = pc.is_valid(pairs[OLD]), pc.is_valid(pairs[NEW])
            again = pc.is_in(pairs["id"], value_set=often)
            for op, chosen in (
                (Op.INSERT, pc.invert(had)),
                (Op.DELETE, pc.invert(has)),
                (Op.UPDATE, pc.and_(had, has)),
            ):
                compared = op is Op.UPDATE and compares
                deed = Deed(commit_id, str(op))
                if not compared:
                    once = pairs["id"].filter(pc.and_not(chosen, again))
                    if len(once):
                        groups[(deed,)] = once
                    chosen = pc.and_(chosen, again)
                rest = pairs.filter(chosen)
                if op is not Op.UPDATE:
                    for id in rest["id"].to_pylist():
                        done.setdefault(id, []).append(deed)
                    continue
                for id in rest["id"].to_pylist():
                    done.setdefault(id, [])  # rewritten; whether it was changed is seen next
                for id, properties in _changed(delta, rest):
                    done.setdefault(id, []).append(replace(deed, properties=properties))
        return self._divided(groups, {id: tuple(deeds) for id, deeds in done.items()})

    def _divided(
        self, groups: Mapping[Deeds, pa.ChunkedArray], others: Mapping[str, Deeds]
    ) -> tuple[Deeds | None, dict[str, Deeds]]:
        """The most frequent deeds, and all entities with other ones.

        Where some commits could not be read nothing is usual: entities may be missing here.
        """
        sizes = Counter(others.values())
        sizes.update({deeds: len(ids) for deeds, ids in groups.items()})
        usual = None
        if sizes and not self.unreadable:
            usual = sizes.most_common(1)[0][0]
        listed = {id: deeds for id, deeds in others.items() if deeds != usual}
        for deeds, ids in groups.items():
            if deeds != usual:
                listed |= dict.fromkeys(ids.to_pylist(), deeds)
        return usual, listed


def _last_writers(
    merge: TypeMerge, commits: Sequence[tuple[int, str]]
) -> Iterator[tuple[str, Deeds]]:
    """Who wrote the rows that a merge takes last, of commits given by the versions they made."""
    pairs = merge.copied.get("source")
    if pairs is None or not commits:
        return
    come = pairs.filter(pc.is_valid(pairs[NEW]))
    rows = gather(merge.sides["source"].table, come[NEW].combine_chunks(), [WRITTEN])
    versions = [version for version, _ in commits]
    for id, version in zip(come["id"].to_pylist(), rows[WRITTEN].to_pylist(), strict=True):
        at = bisect_left(versions, version)
        if at < len(commits):
            yield id, (Deed(commits[at][1], None),)


def _changed(delta: TypeDelta, pairs: pa.Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The properties of updated entities that have other values afterwards, by identity."""
    if not pairs.num_rows:
        return
    assert delta.new is not None
    names = {column.name: column.property_id or column.name for column in delta.new.owner.columns()}
    for rows in TypeDelta(delta.old, delta.new, pairs).changes():
        assert rows.before is not None
        assert rows.after is not None
        same = delta.same_by_column(rows.before, rows.after)
        for at, id in enumerate(rows.ids):
            yield id, tuple(sorted(names[name] for name, found in same.items() if not found[at]))


def _inserted_twice(
    merge: TypeMerge, theirs: TypeDelta | None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Entities that both sides inserted, and which of their properties come from the source."""
    if theirs is None or not theirs.pairs[OLD].null_count:
        return
    inserted = theirs.pairs["id"].filter(pc.is_null(theirs.pairs[OLD])).combine_chunks()
    pairs = merge.copied.get("source")
    if pairs is not None:
        contested = pc.and_(pc.is_valid(pairs[OLD]), pc.is_valid(pairs[NEW]))
        both = pairs.filter(pc.and_(contested, pc.is_in(pairs["id"], value_set=inserted)))
        yield from _changed(TypeDelta(merge.target, merge.sides["source"], both), both)
    if merge.composed:
        known, owner = set(inserted.to_pylist()), merge.target.owner
        for item in merge.composed:
            if item.target_row is not None and item.id in known:
                yield item.id, _identities(owner, _columns_from(owner, item, "source"))


def _columns_from(owner: NodeType | EdgeType, item: Composed, side: str) -> set[str]:
    """Which columns of an entity that was put together have the value of one side."""
    found = {name for name, taken in item.taken.items() if taken == side}
    if item.start == side:
        every = {column.name for column in owner.columns()} - {"id"}
        found |= every - item.taken.keys() - item.values.keys()
    return found


def _identities(owner: NodeType | EdgeType, names: Iterable[str]) -> tuple[str, ...]:
    properties = owner.properties
    return tuple(sorted(properties[n].property_id if n in properties else n for n in names))


def _restricted(deed: Deed, properties: tuple[str, ...]) -> Deed:
    """An insertion of which only some properties came into the target."""
    is_whole = deed.op == Op.INSERT and deed.properties is None
    return replace(deed, properties=properties) if is_whole else deed


def _given(merge: TypeMerge) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Entities that got values from whoever merged, and which; None: those that changed."""
    owner = merge.target.owner
    for item in merge.composed:
        names = {*item.values, *_columns_from(owner, item, "base")}
        if names:
            yield item.id, _identities(owner, names)
    if "base" in merge.copied:
        yield from ((id, None) for id in merge.copied["base"]["id"].to_pylist())
