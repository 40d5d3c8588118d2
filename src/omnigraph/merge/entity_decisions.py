"""Decides the entities that both sides of a merge touched, in batches.

Input are the row ids of each entity in base, source and target. Their values are read, compared and
decided by ``three_way.decide``, or by the caller's resolutions. The result holds row ids and no
values, so that it is small and can be computed on an executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from omnigraph.merge.conflict_values import ConflictValues, shown_names
from omnigraph.merge.conflicts import MergeConflict, clash_conflict
from omnigraph.merge.resolutions import EntityResolution, Resolutions
from omnigraph.merge.three_way import (
    Clash,
    Decision,
    Image,
    Keep,
    MergeLevel,
    MergeStrategy,
    Mix,
    Remove,
    SideName,
    Take,
    alternatives,
    decide,
)
from omnigraph.snapshots.entity_delta import Side
from omnigraph.snapshots.equality import compared_images
from omnigraph.storage.lance.row_delta import gather

DECIDE_ROWS: Final = 4_096
"""The number of entities per batch: their three images are held as Python values."""

SIDES: Final[tuple[SideName, ...]] = ("base", "source", "target")
Copy = tuple[str, int | None, int | None]
"""An id, its row id in the target (None: a new entity) and the row id to copy (None: removed)."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How a merge decides conflicts: the level, strategies, and resolutions of single entities."""

    level: MergeLevel = "property"
    strategy: MergeStrategy | None = None
    by_type: Mapping[str, MergeStrategy] = field(default_factory=dict)
    resolutions: Resolutions = field(default_factory=dict)
    only: Mapping[str, frozenset[str] | None] | None = None
    """Limits the merge to these ids by type key (None: the whole type); None: no limit."""

    def strategy_for(self, key: str) -> MergeStrategy | None:
        return self.by_type.get(key, self.strategy)


@dataclass(frozen=True, slots=True)
class Composed:
    """A merged entity: a row of one side, with values of other sides or of a resolution."""

    id: str
    target_row: int | None
    start: str
    """The side whose row it starts from."""
    rows: Mapping[str, int]
    """Its row id on every side that has it."""
    taken: Mapping[str, SideName] = field(default_factory=dict)
    """Columns, by the target's names, that are taken from another side."""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start_row(self) -> int:
        return self.rows[self.start]


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entity in conflict, and its possible outcomes; None stands for its deletion."""

    id: str
    alternatives: tuple[Composed | None, ...]


@dataclass(slots=True)
class Decided:
    """Decisions: rows to copy by source side, entities to compose, and entities in conflict."""

    copies: dict[str, list[Copy]] = field(default_factory=dict)
    composed: list[Composed] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)

    def add(self, other: Decided) -> None:
        for name, copies in other.copies.items():
            self.copies.setdefault(name, []).extend(copies)
        self.composed += other.composed
        self.undecided += other.undecided
        self.conflicts += other.conflicts

    def copy(self, side: str, id: str, target: int | None, row: int | None) -> None:
        if target is not None or row is not None:
            self.copies.setdefault(side, []).append((id, target, row))


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides entities of one type. ``sides`` has only the sides that have the type."""

    key: str
    sides: Mapping[str, Side]
    rules: MergeRules

    def decide(self, rows: pa.Table) -> Decided:
        """Decide entities given by ``id`` and one column of row ids per side."""
        done = Decided()
        for start in range(0, rows.num_rows, DECIDE_ROWS):
            self._decide(rows.slice(start, DECIDE_ROWS), done)
        return done

    def _decide(self, rows: pa.Table, done: Decided) -> None:
        strategy = self.rules.strategy_for(self.key)
        resolved = self.rules.resolutions.get(self.key, {})
        images = [self._images(name, rows[name].to_pylist()) for name in SIDES]
        clashes: list[_Clashing] = []
        for row, *three in zip(_rows(rows), *images, strict=True):
            resolution = resolved.get(row.id)
            settled = None if resolution is None else resolution.settled
            decision = decide(*three, level=self.rules.level, strategy=strategy, settled=settled)
            if isinstance(decision, Clash):
                clashes.append(_Clashing(row, (three[0], three[1], three[2]), decision))
                options = alternatives(*three, settled=settled)
                found = tuple(_composed(option, row, resolution) for option in options)
                done.undecided.append(Undecided(row.id, found))
            else:
                _carry_out(decision, row, resolution, done)
        done.conflicts += self._conflicts(clashes)

    def _conflicts(self, clashes: Sequence[_Clashing]) -> Iterator[MergeConflict]:
        """The clashes as conflicts, with the values of the three sides."""
        owner = self.sides["target"].owner
        shown = {
            name: ConflictValues(self.sides.get(name), owner, [c.row.of(name) for c in clashes])
            for name in SIDES
        }
        for at, clash in enumerate(clashes):
            wanted = clash.decision.properties or clash.changed() - set(owner.key_properties)
            yield clash_conflict(
                self.key,
                clash.row.id,
                clash.decision.kind,
                shown_names(owner, clash.decision.properties),
                *(shown[name].of(at, wanted) for name in ("base", "target", "source")),
            )

    def _images(self, name: str, row_ids: list[int | None]) -> list[dict[str, Any] | None]:
        side = self.sides.get(name)
        wanted = pa.array([row for row in row_ids if row is not None], pa.uint64())
        if side is None or not len(wanted):
            return [None] * len(row_ids)
        rows = gather(side.table, wanted, side.columns)
        shape = self.sides["target"].owner
        found = iter(compared_images(side.owner, side.table, rows, shape))
        return [None if row is None else next(found) for row in row_ids]


@dataclass(frozen=True, slots=True)
class EntityRows:
    """The row ids of one entity on the three sides."""

    id: str
    base: int | None
    source: int | None
    target: int | None

    def of(self, name: str) -> int | None:
        return {"base": self.base, "source": self.source, "target": self.target}[name]

    def known(self) -> dict[str, int]:
        return {name: row for name in SIDES if (row := self.of(name)) is not None}


@dataclass(frozen=True, slots=True)
class _Clashing:
    row: EntityRows
    images: tuple[Image, Image, Image]  # base, source, target
    decision: Clash

    def changed(self) -> frozenset[str]:
        """The properties that either side changed."""
        base, source, target = self.images
        return frozenset(
            name
            for image in (source, target)
            if image is not None
            for name, value in image.items()
            if value != (None if base is None else base.get(name))
        )


def _rows(table: pa.Table) -> Iterator[EntityRows]:
    columns = (table[name].to_pylist() for name in ("id", *SIDES))
    return (EntityRows(*values) for values in zip(*columns, strict=True))


def _carry_out(
    decision: Decision, row: EntityRows, resolution: EntityResolution | None, done: Decided
) -> None:
    match decision:
        case Keep():
            pass
        case Take(side):
            done.copy(side, row.id, row.target, row.of(side))
        case Remove():
            done.copy("target", row.id, row.target, None)
        case Mix():
            composed = _composed(decision, row, resolution)
            assert composed is not None
            done.composed.append(composed)


def _composed(
    decision: Decision, row: EntityRows, resolution: EntityResolution | None
) -> Composed | None:
    """The entity that a decision composes; None when it is deleted."""
    values = {} if resolution is None else resolution.values
    match decision:
        case Mix(taken, start):
            return Composed(row.id, row.target, start, row.known(), taken, values)
        case Keep() if row.target is not None:
            return Composed(row.id, row.target, "target", row.known())
        case Take(side) if row.of(side) is not None:
            return Composed(row.id, row.target, side, row.known())
    return None


def rows_table(columns: Sequence[Any]) -> pa.Table:
    """Ids and row ids of base, source and target as the argument of ``Decider.decide``."""
    kinds = [("id", pa.string()), *((name, pa.uint64()) for name in SIDES)]
    return pa.table(list(columns), schema=pa.schema(kinds))
