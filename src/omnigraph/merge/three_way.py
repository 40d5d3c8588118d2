"""How one entity comes out of a three-way merge: a pure function of its three images.

An image maps columns (properties, and the ends of an edge) to values; None means that the entity
does not exist. Values are compared with ``==``: whoever makes images sees to it that the same value
is equal to itself. *Ours* is the target of the merge, *theirs* the source.

A property is *contested* when both sides changed it to different values. Strategies and decisions
of a person decide what is contested; what only one side changed is taken from that side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

Image: TypeAlias = Mapping[str, Any] | None
Level = Literal["entity", "property"]
Strategy = Literal["ours", "theirs"]
SideName = Literal["base", "source", "target"]
Choice = Literal["ours", "theirs", "base", "delete"]
"""What a person may choose for an entity."""

SIDE_OF: Final[Mapping[str, SideName]] = {"ours": "target", "theirs": "source", "base": "base"}


class ConflictKind(StrEnum):
    """What can be in the way of a merge: the first three between two images, then constraints."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a person decided about an entity.

    ``take`` decides every contested property, or the whole entity where none is contested.
    ``picks`` take single properties from one side. ``given`` properties get values of their own.
    """

    take: Choice | None = None
    picks: Mapping[str, SideName] = field(default_factory=dict)
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Keep:
    """The target stays as it is."""


@dataclass(frozen=True, slots=True)
class Take:
    """The entity becomes what it is on one side, also if that is nothing."""

    side: SideName = "source"


@dataclass(frozen=True, slots=True)
class Remove:
    """The entity goes away."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The entity of one side with properties of others; given values come on top."""

    taken: Mapping[str, SideName]
    start: SideName = "target"


@dataclass(frozen=True, slots=True)
class Clash:
    """Nobody decided it; ``properties`` are those that are contested."""

    kind: ConflictKind
    properties: frozenset[str] = frozenset()


Decision: TypeAlias = Keep | Take | Remove | Mix | Clash


def decide(
    base: Image,
    source: Image,
    target: Image,
    *,
    level: Level = "property",
    strategy: Strategy | None = None,
    settled: Settled | None = None,
) -> Decision:
    """The outcome for one entity."""
    if settled is not None:
        return _settle(base, source, target, strategy, settled)
    if source in (base, target):
        return Keep()
    if target == base:
        return Take()
    if source is None or target is None:
        if strategy is None:
            return Clash(ConflictKind.DELETE_VS_UPDATE)
        return Keep() if strategy == "ours" else Take()
    theirs, contested = _compared(base, source, target)
    if strategy is None and (contested or level == "entity"):
        return Clash(_kind(base), contested)
    return _mixed(theirs | contested if strategy == "theirs" else theirs)


def alternatives(
    base: Image, source: Image, target: Image, *, settled: Settled | None = None
) -> list[Decision]:
    """What may become of an entity that clashes, once somebody takes one side or the other."""
    found: list[Decision] = []
    sides: tuple[Strategy, ...] = ("ours", "theirs")
    for side in sides:
        found.append(decide(base, source, target, strategy=side, settled=settled))
        if settled is None:
            found.append(decide(base, source, target, settled=Settled(side)))
    return [one for at, one in enumerate(found) if one not in found[:at]]


def _settle(
    base: Image, source: Image, target: Image, strategy: Strategy | None, settled: Settled
) -> Decision:
    """The outcome for an entity that a person decided, perhaps only in part."""
    if settled.take == "delete":
        return Remove()
    images: dict[SideName, Image] = {"base": base, "source": source, "target": target}
    named = {*settled.given, *settled.picks}
    if any(images[side] is None for side in settled.picks.values()):
        return _without(named - set(settled.picks))
    theirs: frozenset[str] = frozenset()
    contested: frozenset[str] = frozenset()
    if source is not None and target is not None:
        theirs, contested = _compared(base, source, target)
    if settled.take is not None and (not contested or images[SIDE_OF[settled.take]] is None):
        side = SIDE_OF[settled.take]
        if images[side] is None:
            return _without(named)
        return Mix(dict(settled.picks), side) if named else Take(side)
    preferred: tuple[SideName, ...] = ("target", "source", "base")
    start = next((name for name in preferred if images[name] is not None), None)
    if start is None:
        return Keep()
    chosen = settled.take or strategy
    left = contested - named
    if left and chosen is None:
        return Clash(_kind(base), left)
    taken: dict[str, SideName] = dict.fromkeys(theirs - named, "source")
    if chosen is not None:
        taken |= dict.fromkeys(left, SIDE_OF[chosen])
    taken |= settled.picks
    return Mix({name: side for name, side in taken.items() if side != start}, start)


def _without(named: set[str]) -> Decision:
    """A side that does not have the entity was chosen; properties of it cannot be set."""
    return Clash(ConflictKind.DELETE_VS_UPDATE) if named else Remove()


def _compared(
    base: Image, source: Mapping[str, Any], target: Mapping[str, Any]
) -> tuple[frozenset[str], frozenset[str]]:
    """The properties that only the source changed, and those that are contested.

    Where both sides made the entity, a property without a value counts as not set.
    """
    theirs: set[str] = set()
    contested: set[str] = set()
    for name in {*source, *target}:
        was = None if base is None else base.get(name)
        ours, other = target.get(name), source.get(name)
        if other in (was, ours):
            continue
        (theirs if ours == was else contested).add(name)
    return frozenset(theirs), frozenset(contested)


def _mixed(theirs: frozenset[str]) -> Decision:
    return Mix(dict.fromkeys(sorted(theirs), "source")) if theirs else Keep()


def _kind(base: Image) -> ConflictKind:
    return ConflictKind.DIVERGENT_INSERT if base is None else ConflictKind.DIVERGENT_UPDATE
