"""Three-way merge of one entity: a pure function of its images in base, source and target.

An image maps columns (properties, and the ends of an edge) to values; None means that the entity
does not exist. Values are compared with ``==``; the caller makes images in which equal values
compare equal (NaN included). *Ours* is the target of the merge, *theirs* the source.

A property is *contested* when both sides changed it to different values. A strategy or a resolution
decides contested properties; a property that one side changed is taken from that side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

Image: TypeAlias = Mapping[str, Any] | None
MergeLevel = Literal["entity", "property"]
MergeStrategy = Literal["ours", "theirs"]
SideName = Literal["base", "source", "target"]
Choice = Literal["ours", "theirs", "base", "delete"]
"""The choices of a resolution."""

SIDE_OF: Final[Mapping[str, SideName]] = {"ours": "target", "theirs": "source", "base": "base"}


class ConflictKind(StrEnum):
    """The first three come from the images of an entity, the others from violated constraints."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"


@dataclass(frozen=True, slots=True)
class Settled:
    """A resolution of one entity, without its values.

    ``take`` decides every contested property, or the whole entity if none is contested. ``picks``
    takes single properties from one side. ``given`` are the properties that get new values.
    """

    take: Choice | None = None
    picks: Mapping[str, SideName] = field(default_factory=dict)
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Keep:
    """The target stays as it is."""


@dataclass(frozen=True, slots=True)
class Take:
    """The entity as it is on one side; it is deleted if that side does not have it."""

    side: SideName = "source"


@dataclass(frozen=True, slots=True)
class Remove:
    """The entity is deleted."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The entity of one side with properties of other sides; given values are set afterwards."""

    taken: Mapping[str, SideName]
    start: SideName = "target"


@dataclass(frozen=True, slots=True)
class Clash:
    """An unresolved conflict; ``properties`` are the contested ones."""

    kind: ConflictKind
    properties: frozenset[str] = frozenset()


Decision: TypeAlias = Keep | Take | Remove | Mix | Clash


def decide(
    base: Image,
    source: Image,
    target: Image,
    *,
    level: MergeLevel = "property",
    strategy: MergeStrategy | None = None,
    settled: Settled | None = None,
) -> Decision:
    """Merge one entity."""
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
    """The possible outcomes of a clash: all results of taking one side or the other."""
    found: list[Decision] = []
    sides: tuple[MergeStrategy, ...] = ("ours", "theirs")
    for side in sides:
        found.append(decide(base, source, target, strategy=side, settled=settled))
        if settled is None:
            found.append(decide(base, source, target, settled=Settled(side)))
    return [one for at, one in enumerate(found) if one not in found[:at]]


def _settle(
    base: Image, source: Image, target: Image, strategy: MergeStrategy | None, settled: Settled
) -> Decision:
    """Merge an entity that has a resolution, which may cover only a part of its properties."""
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
    """The outcome when the chosen side does not have the entity; its properties cannot be set."""
    return Clash(ConflictKind.DELETE_VS_UPDATE) if named else Remove()


def _compared(
    base: Image, source: Mapping[str, Any], target: Mapping[str, Any]
) -> tuple[frozenset[str], frozenset[str]]:
    """The properties that only the source changed, and those that are contested.

    Where both sides inserted the entity, a null property counts as not set.
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
