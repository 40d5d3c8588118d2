"""Three-way merge of snapshots, type by type: which rows of the target are replaced by which.

Entities that only the source touched since the base are taken by row id, without reading values.
Entities that the target touched, too, or that have a resolution, are decided by value. The result
names the origin of every row; staging and preview start from it. Nothing is checked or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.merge.conflicts import MergeConflict
from omnigraph.merge.entity_decisions import (
    SIDES,
    Composed,
    Copy,
    Decided,
    Decider,
    MergeRules,
    Undecided,
    rows_table,
)
from omnigraph.snapshots.entity_delta import Side, State, TypeDelta, type_delta
from omnigraph.storage.lance.lookup import locate
from omnigraph.storage.lance.row_delta import NEW, OLD

Decide = Callable[[Decider, "pa.Table"], Decided]
"""Decides entities given by their row ids, in process or on executors."""


@dataclass(slots=True)
class TypeMerge:
    """The merge of one type.

    ``copied`` holds, by the side that rows are copied from, tables of (id, row id in the target,
    row id on that side). Without a row on that side the entity is removed; without one in the
    target it is added.
    """

    key: str
    sides: Mapping[str, Side]  # "base", "source", "target"
    copied: dict[str, pa.Table]
    composed: list[Composed] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)

    @property
    def target(self) -> Side:
        return self.sides["target"]

    def pairs(self) -> Iterator[tuple[Side, pa.Table]]:
        """Everything copied, with the side it is copied from."""
        for name, pairs in self.copied.items():
            if pairs.num_rows:
                yield self.sides[name], pairs

    def __bool__(self) -> bool:
        decided = bool(self.composed) or any(pairs.num_rows for pairs in self.copied.values())
        return decided or bool(self.undecided)


class ThreeWayMerge:
    """A three-way merge of the states ``base``, ``source`` and ``target``."""

    def __init__(
        self,
        repository: Repository,
        states: Mapping[str, State],
        rules: MergeRules,
    ) -> None:
        self._repository = repository
        self._states = states
        self._rules = rules
        self.conflicts: list[MergeConflict] = []

    @cached_property
    def visited(self) -> list[str]:
        """The types with resolutions, and those that the source changed since the base, unless the
        target has the same version."""
        pins = {
            name: {pin.incarnation: pin for pin in state.snapshot.pins.values()}
            for name, state in self._states.items()
        }
        found = []
        for incarnation, pin in pins["source"].items():
            if self._rules.only is not None and pin.key not in self._rules.only:
                continue
            base, target = pins["base"].get(incarnation), pins["target"].get(incarnation)
            if target is None:
                continue  # the target dropped the type
            touched = base is None or base.ref != pin.ref
            shared = target.ref == pin.ref
            if touched and not shared:
                found.append(target.key)
        living = {pin.key for pin in pins["target"].values()}
        return sorted({*found, *(living & self._rules.resolutions.keys())})

    @cached_property
    def _work(self) -> list[_TypeMerger]:
        return [
            _TypeMerger(self._repository, self._states, self._rules, key) for key in self.visited
        ]

    @property
    def touched(self) -> int:
        """The number of entities that the source touched since the base."""
        return sum(work.theirs.num_rows for work in self._work)

    @property
    def theirs(self) -> tuple[TypeDelta, ...]:
        """The differences between base and source of the visited types."""
        return tuple(work.delta for work in self._work if work.delta is not None)

    def types(self, decide: Decide = Decider.decide) -> Iterator[TypeMerge]:
        """The merges of all types with changes, by type key."""
        for work in self._work:
            changes, conflicts = work.run(decide)
            self.conflicts += conflicts
            if changes:
                yield changes


class _TypeMerger:
    def __init__(
        self, repository: Repository, states: Mapping[str, State], rules: MergeRules, key: str
    ) -> None:
        self._key = key
        self._rules = rules
        self._resolved = rules.resolutions.get(key, {})
        incarnation = states["target"].snapshot.pin(key).incarnation
        base_key = _key_of(states["base"], incarnation)
        source_key = _key_of(states["source"], incarnation)
        ours = type_delta(repository, states["base"], states["target"], (base_key, key))
        found = {"base": ours.old, "target": ours.new}
        self._ours = ours.pairs
        self.delta: TypeDelta | None = None
        self.theirs = ours.pairs.slice(0, 0)
        if source_key is not None:  # otherwise the type is visited because of a resolution only
            keys = (base_key, source_key)
            theirs = type_delta(repository, states["base"], states["source"], keys)
            found["source"] = theirs.new
            self.delta = theirs
            self.theirs = theirs.pairs
        self._sides = {name: side for name, side in found.items() if side is not None}
        wanted = None if rules.only is None or source_key is None else rules.only[source_key]
        if wanted is not None:
            chosen = pc.is_in(self.theirs["id"], value_set=pa.array(sorted(wanted)))
            self.theirs = self.theirs.filter(chosen)

    def run(self, decide: Decide) -> tuple[TypeMerge, list[MergeConflict]]:
        special = pa.chunked_array(
            [*self._ours["id"].chunks, pa.array(list(self._resolved), pa.string())]
        ).combine_chunks()
        contested = pc.is_in(self.theirs["id"], value_set=special)
        taken = self.theirs.filter(pc.invert(contested))
        # An entity that the target did not touch has the same row id in base and target.
        merge = TypeMerge(self._key, self._sides, {"source": taken})
        ids = [id for id in self._resolved if not _has(self.theirs["id"], id)]
        rows = [self._rows(self.theirs.filter(contested)), self._looked_up(ids)]
        together = pa.concat_tables(rows)
        if not together.num_rows:
            return merge, []
        decided = decide(Decider(self._key, self._sides, self._rules), together)
        merge.composed, merge.undecided = decided.composed, decided.undecided
        for name, copies in decided.copies.items():
            extra = _pairs(copies, taken.schema)
            parts = [merge.copied[name], extra] if name in merge.copied else [extra]
            merge.copied[name] = pa.concat_tables(parts)
        return merge, decided.conflicts

    def _rows(self, theirs: pa.Table) -> pa.Table:
        """Row ids in base, source and target of the entities that source and target touched."""
        at = pc.index_in(theirs["id"], value_set=self._ours["id"].combine_chunks())
        found = self._ours[NEW].combine_chunks().take(at.combine_chunks())
        target = pc.if_else(pc.is_valid(at), found, theirs[OLD])
        return rows_table([theirs["id"], theirs[OLD], theirs[NEW], target])

    def _looked_up(self, ids: Sequence[str]) -> pa.Table:
        """The row ids of entities with a resolution that the source did not touch."""
        places: dict[str, dict[str, int]] = {name: {} for name in SIDES}
        for name, side in self._sides.items() if ids else ():
            found = locate(side.table, pa.array(ids, pa.string()))
            places[name] = dict(zip(found.ids.to_pylist(), found.row_ids.tolist(), strict=True))
        return rows_table([ids, *([places[name].get(id) for id in ids] for name in SIDES)])


def _pairs(copies: Sequence[Copy], schema: pa.Schema) -> pa.Table:
    return pa.table([list(column) for column in zip(*copies, strict=True)], schema=schema)


def _has(ids: pa.ChunkedArray, id: str) -> bool:
    return bool(pc.index(ids, id).as_py() >= 0)


def _key_of(state: State, incarnation: str) -> str | None:
    """The type key of a type incarnation in a state."""
    pins = state.snapshot.pins.values()
    return next((pin.key for pin in pins if pin.incarnation == incarnation), None)
