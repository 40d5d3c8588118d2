"""The changes of the commits of a branch to the entities of one type.

A commit is compared with the state before it, at a cost proportional to the rows that it touched.
Values of updated entities are compared column by column. Consecutive small commits are read
together: one scan reads the rows that they wrote, another the rows that they replaced. The values
before a commit are those after the previous commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.history.attribution import AttributedChange
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.snapshots.commit_range import CommitTransition
from omnigraph.snapshots.entity_delta import BATCH_ROWS, Mask, Op, Side, TypeDelta, type_delta
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.row_delta import (
    NEW,
    OLD,
    common_ancestor,
    fresh_fragments,
    gather,
    removed_rows,
)
from omnigraph.storage.lance.row_versions import WRITTEN
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable

CommitChange = tuple[AttributedChange, pa.Array]
"""One change of a commit, and the ids of the entities that it changed."""


@dataclass(frozen=True, slots=True)
class TypeStep:
    """One commit, and its type key before and after (None where the type does not exist)."""

    transition: CommitTransition
    keys: tuple[str | None, str | None]

    @property
    def commit_id(self) -> str:
        return self.transition.commit.commit_id

    @property
    def pins(self) -> tuple[TablePin | None, TablePin | None]:
        old, new = self.transition.before.snapshot.pins, self.transition.after.snapshot.pins
        return (
            None if self.keys[0] is None else old[self.keys[0]],
            None if self.keys[1] is None else new[self.keys[1]],
        )

    @property
    def pin(self) -> TablePin:
        """The newer pin, or the only one."""
        found = self.pins[1] or self.pins[0]
        assert found is not None
        return found

    def changes(self, repository: Repository) -> Iterator[CommitChange]:
        """The changes of the commit. Raises ``TableNotFound`` if a state was cleaned up."""
        return changes_of(self.commit_id, _difference(repository, self, self))


def _difference(repository: Repository, first: TypeStep, last: TypeStep) -> TypeDelta:
    """The difference between the state before ``first`` and the state after ``last``."""
    states = first.transition.before, last.transition.after
    return type_delta(repository, *states, (first.keys[0], last.keys[1]))


def changes_of(commit_id: str, delta: TypeDelta) -> Iterator[CommitChange]:
    """The changes of one commit. Updates are grouped by the properties that they changed; a group
    without properties has the rows that were rewritten with the same values."""
    pairs = delta.pairs
    had, has = pc.is_valid(pairs[OLD]), pc.is_valid(pairs[NEW])
    for op, chosen in ((Op.INSERT, pc.invert(had)), (Op.DELETE, pc.invert(has))):
        yield AttributedChange(commit_id, str(op)), pairs["id"].filter(chosen).combine_chunks()
    for properties, ids in changed_properties(delta, pairs.filter(pc.and_(had, has))):
        yield AttributedChange(commit_id, str(Op.UPDATE), properties), ids


def changed_properties(
    delta: TypeDelta, pairs: pa.Table
) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    """Updated entities, grouped by the properties (by identity) whose values differ. A group
    without properties has the entities with equal values."""
    if pairs.num_rows:
        assert delta.new is not None
        for ids, same in TypeDelta(delta.old, delta.new, pairs).compared_columns():
            yield from _by_properties(delta.new, ids, same)


def _by_properties(
    side: Side, ids: pa.Array, same: Mapping[str, Mask]
) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    """The ids of entities, grouped by the properties whose values differ."""
    names = {column.name: column.property_id or column.name for column in side.owner.columns()}
    columns = sorted(same, key=names.__getitem__)
    changed = np.stack([~same[name] for name in columns], axis=1)
    patterns, which = np.unique(changed, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        properties = tuple(names[columns[at]] for at in np.flatnonzero(pattern))
        yield properties, ids.filter(pa.array(which.reshape(-1) == number))


def changes_together(
    repository: Repository, steps: Sequence[TypeStep], known: TypeDelta | None
) -> list[CommitChange] | None:
    """The changes of several small commits, oldest first; None if they must be read one by one.

    ``known`` may be the difference between the states before and after all of them. Raises
    ``TableNotFound`` if a state was cleaned up.
    """
    if len(steps) < 2 or not _is_line(repository, steps):
        return None
    commits = [_SmallCommit.of(repository, step) for step in steps]
    fragments = [fragment for commit in commits for fragment in commit.fragments]
    rows_max = sum(commit.rows_max for commit in commits)
    if not fragments or len(set(fragments)) < len(fragments) or rows_max > BATCH_ROWS:
        return None
    ends = commits[0].old.ref, commits[-1].new.ref
    if known is None or known.old is None or (known.old.pin.ref, known.side.pin.ref) != ends:
        known = _difference(repository, steps[0], steps[-1])
    return list(_Line(repository, commits, known).changes())


def _is_line(repository: Repository, steps: Sequence[TypeStep]) -> bool:
    """Whether the commits wrote consecutive versions of one physical branch, with one schema and
    without blobs, which are read from one version at a time."""
    first = steps[0].pin
    schemas = {
        state.snapshot.schema_hash: state.schema
        for step in steps
        for state in (step.transition.before, step.transition.after)
    }
    if len(schemas) > 1:
        return False
    for step in steps:
        old, new = step.pins
        if old is None or new is None or old.ref.path != new.ref.path:
            return False
        if new.ref.dataset_path != first.ref.dataset_path:
            return False
        if common_ancestor(repository.tables, old.ref, new.ref) != old.ref:
            return False
    (schema,) = schemas.values()
    return not any(column.type.is_blob for column in schema.type(first.key).columns())


@dataclass(frozen=True, slots=True)
class _SmallCommit:
    """A commit with the table before and after it, and the fragments that it wrote."""

    commit_id: str
    old: PinnedTable
    new: PinnedTable
    fragments: list[int]

    @classmethod
    def of(cls, repository: Repository, step: TypeStep) -> _SmallCommit:
        old, new = (repository.tables.open(pin.ref) for pin in step.pins if pin is not None)
        return cls(step.commit_id, old, new, fresh_fragments(new, old))

    @property
    def rows_max(self) -> int:
        return sum(self.new.fragments[fragment].physical_rows for fragment in self.fragments)


class _Line:
    """Small commits of consecutive versions, and the difference that they make together."""

    def __init__(
        self, repository: Repository, commits: Sequence[_SmallCommit], whole: TypeDelta
    ) -> None:
        assert whole.old is not None
        assert whole.new is not None
        self._repository = repository
        self._commits = commits
        self._whole = whole
        self._side = whole.new
        names = whole.new.columns
        written, self._bounds = _written(commits, names)
        wanted = pc.is_in(whole.pairs["id"], value_set=written["id"].combine_chunks())
        pairs = whole.pairs.filter(pc.and_(wanted, pc.is_valid(whole.pairs[OLD])))
        found = gather(whole.old.table, pairs[OLD].combine_chunks(), names)
        self._found = found.num_rows
        self._rows = pa.concat_tables([found.select(names), written.select(names)])
        self._ids = self._rows["id"].to_pylist()

    def changes(self) -> Iterator[CommitChange]:
        """The changes of each commit, oldest first."""
        latest = {id: at for at, id in enumerate(self._ids[: self._found])}
        inserted: list[list[str]] = []
        deleted: list[list[str]] = []
        befores: list[int] = []
        afters: list[int] = []
        updates = [0]
        for commit, (start, stop) in zip(self._commits, pairwise(self._bounds), strict=True):
            now = {self._ids[at]: at for at in range(self._found + start, self._found + stop)}
            inserted.append([id for id in now if id not in latest])
            deleted.append(self._deleted(commit, now.keys(), len(inserted[-1])))
            again = [id for id in now if id in latest]
            befores += [latest[id] for id in again]
            afters += [now[id] for id in again]
            updates.append(len(afters))
            latest |= now
            for id in deleted[-1]:
                latest.pop(id, None)
        before, after = (self._rows.take(pa.array(at, pa.int64())) for at in (befores, afters))
        same, ids = self._whole.same_by_column(before, after), after["id"].combine_chunks()
        for at, commit in enumerate(self._commits):
            for op, of_op in ((Op.INSERT, inserted[at]), (Op.DELETE, deleted[at])):
                yield AttributedChange(commit.commit_id, str(op)), pa.array(of_op, pa.string())
            part = slice(updates[at], updates[at + 1])
            if part.start < part.stop:
                masks = {name: mask[part] for name, mask in same.items()}
                for properties, found in _by_properties(self._side, ids[part], masks):
                    yield AttributedChange(commit.commit_id, str(Op.UPDATE), properties), found

    def _deleted(self, commit: _SmallCommit, written: Set[str], inserted: int) -> list[str]:
        """The ids that a commit deleted. Nothing is read if the row counts show that it deleted
        none."""
        if commit.old.rows + inserted == commit.new.rows:
            return []
        gone = removed_rows(self._repository.tables, commit.old.ref, commit.new.ref)
        return [id for ids, _ in gone for id in ids.to_pylist() if id not in written]


def _written(commits: Sequence[_SmallCommit], columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The rows that consecutive commits wrote, oldest first, and the offset of each commit."""
    *older, newest = commits
    rows = newest.new.scan(
        [*columns, WRITTEN],
        with_row_address=True,
        fragment_ids=newest.fragments,
        older=[(commit.new, commit.fragments) for commit in older],
        batch_rows=sum(commit.rows_max for commit in commits),
    )
    numbers = {fragment: at for at, commit in enumerate(commits) for fragment in commit.fragments}
    by = np.array([numbers[address >> FRAGMENT_SHIFT] for address in rows[ADDRESS].to_pylist()])
    # A fragment that a commit wrote may hold older rows, too.
    fresh = rows[WRITTEN].to_numpy() > np.array([c.old.ref.version for c in commits])[by]
    order = np.argsort(by, kind="stable")
    order = order[fresh[order]]
    return rows.take(order), np.searchsorted(by[order], range(len(commits) + 1)).tolist()
