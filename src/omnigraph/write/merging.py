"""The content of a three-way merge: which entities of the target become what.

For each type, the entities that the source touched since the base are taken as they are, by row id
and without reading anything else, unless the target touched them too (or somebody resolved them):
those are decided one by one. The result says where every row comes from; staging and previewing
both start from it. Nothing is checked or written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from omnigraph.manifest.repository import Repository
from omnigraph.read.delta import Side, State, type_delta
from omnigraph.read.equality import compared_images
from omnigraph.storage.delta import NEW, OLD, gather
from omnigraph.storage.staging import locate
from omnigraph.write.conflicts import MergeConflict, clash_conflict
from omnigraph.write.resolutions import Resolution, Resolutions
from omnigraph.write.three_way import Clash, Decision, Keep, Level, Mix, Strategy, Take, decide

if TYPE_CHECKING:
    import pyarrow as pa

DECIDE_ROWS: Final = 4_096
"""Entities decided at a time: their three images are held as Python values."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How a merge decides: about what as a whole, and for whom where both sides differ."""

    level: Level = "entity"
    strategy: Strategy | None = None
    by_type: Mapping[str, Strategy] = field(default_factory=dict)
    resolutions: Resolutions = field(default_factory=dict)
    only: Mapping[str, frozenset[str] | None] | None = None
    """Type keys, and ids of each (None: all), outside of which nothing happens."""

    def strategy_for(self, key: str) -> Strategy | None:
        return self.by_type.get(key, self.strategy)


@dataclass(frozen=True, slots=True)
class Composed:
    """An entity put together: a row of one side with values of another, or given ones."""

    id: str
    target_row: int | None
    start: str  # the side whose row it starts from
    start_row: int
    source_row: int | None = None
    from_source: frozenset[str] = frozenset()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class TypeMerge:
    """What happens to one type of the target.

    ``copied`` holds, per side rows are copied from, pairs of (id, row in the target, row there): a
    null on the right removes the entity, one on the left adds it.
    """

    key: str
    sides: Mapping[str, Side]  # "base", "source", "target"
    copied: dict[str, pa.Table]
    composed: list[Composed] = field(default_factory=list)

    @property
    def target(self) -> Side:
        return self.sides["target"]

    def pairs(self) -> Iterator[tuple[Side, pa.Table]]:
        """Everything copied, with the side it is copied from."""
        for name, pairs in self.copied.items():
            if pairs.num_rows:
                yield self.sides[name], pairs

    def __bool__(self) -> bool:
        return bool(self.composed) or any(pairs.num_rows for pairs in self.copied.values())


class Merging:
    """One three-way merge of snapshots."""

    def __init__(
        self,
        repository: Repository,
        states: Mapping[str, State],  # "base", "source", "target"
        rules: MergeRules,
    ) -> None:
        self._repository = repository
        self._states = states
        self._rules = rules
        self.conflicts: list[MergeConflict] = []

    @cached_property
    def visited(self) -> list[str]:
        """The types that the source touched since the base and does not share with the target."""
        pins = {
            name: {pin.incarnation: pin for pin in state.snapshot.pins.values()}
            for name, state in self._states.items()
        }
        found = []
        for lifetime, pin in pins["source"].items():
            if self._rules.only is not None and pin.key not in self._rules.only:
                continue
            base, target = pins["base"].get(lifetime), pins["target"].get(lifetime)
            if target is None:
                continue  # the target dropped the type
            touched = base is None or base.ref != pin.ref
            shared = target.ref == pin.ref
            if (touched and not shared) or self._rules.resolutions.get(target.key):
                found.append(target.key)
        return sorted(found)

    def types(self) -> Iterator[TypeMerge]:
        """The changes of every type that has any, in the order of type keys."""
        for key in self.visited:
            merged = _TypeMerging(self._repository, self._states, self._rules, key)
            changes = merged.run()
            self.conflicts += merged.conflicts
            if changes:
                yield changes


class _TypeMerging:
    def __init__(
        self, repository: Repository, states: Mapping[str, State], rules: MergeRules, key: str
    ) -> None:
        self._rules = rules
        self._key = key
        self._resolved = rules.resolutions.get(key, {})
        lifetime = states["target"].snapshot.pin(key).incarnation
        base_key = _key_of(states["base"], lifetime)
        source_key = _key_of(states["source"], lifetime)
        assert source_key is not None, "only types of the source are visited"
        self._source_key = source_key
        theirs = (base_key, source_key)
        self._theirs = type_delta(repository, states["base"], states["source"], theirs)
        self._ours = type_delta(repository, states["base"], states["target"], (base_key, key))
        self._sides: dict[str, Side | None] = {
            "base": self._theirs.old,
            "source": self._theirs.new,
            "target": self._ours.new,
        }
        self.conflicts: list[MergeConflict] = []

    def run(self) -> TypeMerge:
        import pyarrow as pa
        import pyarrow.compute as pc

        theirs, ours = self._theirs.pairs, self._ours.pairs
        wanted = None if self._rules.only is None else self._rules.only[self._source_key]
        if wanted is not None:
            theirs = theirs.filter(pc.is_in(theirs["id"], value_set=pa.array(sorted(wanted))))
        special = pa.chunked_array(
            [*ours["id"].chunks, pa.array(list(self._resolved), pa.string())]
        ).combine_chunks()
        contested = pc.is_in(theirs["id"], value_set=special)
        taken = theirs.filter(pc.invert(contested))
        # What the target did not touch is, in the target, still the row of the base.
        merge = TypeMerge(
            self._key,
            {name: side for name, side in self._sides.items() if side is not None},
            {"source": taken},
        )
        copies: dict[str, list[tuple[str, int | None, int | None]]] = {"source": [], "base": []}
        for start in range(0, theirs.num_rows, DECIDE_ROWS):
            part = theirs.slice(start, DECIDE_ROWS).filter(contested.slice(start, DECIDE_ROWS))
            self._decide(self._rows(part), merge, copies)
        ids = [id for id in self._resolved if not _has(theirs["id"], id)]
        self._decide(self._looked_up(ids), merge, copies)
        for name, found in copies.items():
            if found:
                extra = _pairs(found, taken.schema)
                parts = [merge.copied[name], extra] if name in merge.copied else [extra]
                merge.copied[name] = pa.concat_tables(parts)
        return merge

    def _rows(self, theirs: pa.Table) -> list[_Rows]:
        """The rows of contested entities on all three sides."""
        import pyarrow.compute as pc

        ours = self._ours.pairs
        at = pc.index_in(theirs["id"], value_set=ours["id"].combine_chunks()).to_pylist()
        target_rows = ours[NEW].to_pylist() if any(place is not None for place in at) else []
        return [
            _Rows(id, base, source, base if place is None else target_rows[place])
            for id, base, source, place in zip(
                theirs["id"].to_pylist(),
                theirs[OLD].to_pylist(),
                theirs[NEW].to_pylist(),
                at,
                strict=True,
            )
        ]

    def _looked_up(self, ids: Sequence[str]) -> list[_Rows]:
        """The rows of resolved entities that the source did not touch."""
        import pyarrow as pa

        places: dict[str, dict[str, int]] = {}
        for name, side in self._sides.items():
            if side is None or not ids:
                places[name] = {}
                continue
            found = locate(side.table, pa.array(ids, pa.string()))
            places[name] = dict(zip(found.ids.to_pylist(), found.row_ids.tolist(), strict=True))
        return [
            _Rows(id, *(places[name].get(id) for name in ("base", "source", "target")))
            for id in ids
        ]

    def _decide(
        self,
        rows: list[_Rows],
        merge: TypeMerge,
        copies: dict[str, list[tuple[str, int | None, int | None]]],
    ) -> None:
        if not rows:
            return
        images = [
            self._images(self._sides[name], [row.of(name) for row in rows])
            for name in ("base", "source", "target")
        ]
        strategy = self._rules.strategy_for(self._key)
        for row, base, source, target in zip(rows, *images, strict=True):
            resolution = self._resolved.get(row.id)
            if resolution is not None:
                _apply(resolution, row, merge, copies)
                continue
            decision = decide(base, source, target, level=self._rules.level, strategy=strategy)
            self._carry_out(decision, row, merge, copies)

    def _carry_out(
        self,
        decision: Decision,
        row: _Rows,
        merge: TypeMerge,
        copies: dict[str, list[tuple[str, int | None, int | None]]],
    ) -> None:
        match decision:
            case Keep():
                pass
            case Take():
                copies["source"].append((row.id, row.target, row.source))
            case Mix(names):
                assert row.target is not None
                merge.composed.append(
                    Composed(row.id, row.target, "target", row.target, row.source, names)
                )
            case Clash():
                self.conflicts.append(clash_conflict(self._key, row.id, decision))

    def _images(self, side: Side | None, row_ids: list[int | None]) -> list[dict[str, Any] | None]:
        import pyarrow as pa

        wanted = pa.array([row for row in row_ids if row is not None], pa.uint64())
        if side is None or not len(wanted):
            return [None] * len(row_ids)
        rows = gather(side.table, wanted, side.columns)
        found = iter(compared_images(side.owner, side.table, rows, self._ours.side.owner))
        return [None if row is None else next(found) for row in row_ids]


@dataclass(frozen=True, slots=True)
class _Rows:
    """One entity's rows on the three sides."""

    id: str
    base: int | None
    source: int | None
    target: int | None

    def of(self, name: str) -> int | None:
        return {"base": self.base, "source": self.source, "target": self.target}[name]


def _apply(
    resolution: Resolution,
    row: _Rows,
    merge: TypeMerge,
    copies: dict[str, list[tuple[str, int | None, int | None]]],
) -> None:
    """What a person decided about an entity."""
    if resolution.take == "theirs":
        copies["source"].append((row.id, row.target, row.source))
    elif resolution.take == "base":
        copies["base"].append((row.id, row.target, row.base))
    elif resolution.take == "delete":
        copies["source"].append((row.id, row.target, None))
    elif resolution.take is None:
        start = next(
            (name for name in ("target", "source", "base") if row.of(name) is not None), None
        )
        if start is not None:
            place = row.of(start)
            assert place is not None
            merge.composed.append(
                Composed(row.id, row.target, start, place, values=resolution.values)
            )


def _pairs(found: list[tuple[str, int | None, int | None]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    changed = [item for item in found if item[1] is not None or item[2] is not None]
    columns = [list(column) for column in zip(*changed, strict=True)] or [[], [], []]
    return pa.table(columns, schema=schema)


def _has(ids: pa.ChunkedArray, id: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.index(ids, id).as_py() >= 0)


def _key_of(state: State, lifetime: str) -> str | None:
    """The type key that a lifetime had in a state."""
    pins = state.snapshot.pins.values()
    return next((pin.key for pin in pins if pin.incarnation == lifetime), None)
