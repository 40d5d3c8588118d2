"""How one entity comes out of a three-way merge: a pure function of its three images.

An image maps properties (and the ends of an edge) to values; None means that the entity does not
exist. Values are compared with ``==``: whoever makes images sees to it that the same value is equal
to itself. *Ours* is the target of the merge, *theirs* the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

Image: TypeAlias = Mapping[str, Any] | None
Level = Literal["entity", "property"]
Strategy = Literal["ours", "theirs"]


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
class Keep:
    """The target stays as it is."""


@dataclass(frozen=True, slots=True)
class Take:
    """The entity becomes what it is in the source, also if that is nothing."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The target's entity with these properties of the source's."""

    properties: frozenset[str]


@dataclass(frozen=True, slots=True)
class Clash:
    """Both sides changed it differently; ``properties`` are those they disagree on."""

    kind: ConflictKind
    properties: frozenset[str] = frozenset()


Decision: TypeAlias = Keep | Take | Mix | Clash


def decide(
    base: Image,
    source: Image,
    target: Image,
    *,
    level: Level = "entity",
    strategy: Strategy | None = None,
) -> Decision:
    """The outcome for one entity."""
    if source in (base, target):
        return Keep()
    if target == base:
        return Take()
    if level == "property" and source is not None and target is not None:
        return _by_property(base, source, target, strategy)
    if strategy is not None:
        return Keep() if strategy == "ours" else Take()
    return Clash(_kind(base, source, target), _differing(source, target))


def _by_property(
    base: Image, source: Mapping[str, Any], target: Mapping[str, Any], strategy: Strategy | None
) -> Decision:
    """Different properties merge; one property that both changed is a conflict.

    Where both sides made the entity, a property without a value counts as not set.
    """
    theirs: set[str] = set()
    clashing: set[str] = set()
    for name in {*source, *target}:
        was = None if base is None else base.get(name)
        ours, other = target.get(name), source.get(name)
        if other in (was, ours):
            continue
        (theirs if ours == was else clashing).add(name)
    if clashing and strategy is None:
        return Clash(_kind(base, source, target), frozenset(clashing))
    if strategy == "theirs":
        theirs |= clashing
    return Mix(frozenset(theirs)) if theirs else Keep()


def _kind(base: Image, source: Image, target: Image) -> ConflictKind:
    if base is None:
        return ConflictKind.DIVERGENT_INSERT
    if source is None or target is None:
        return ConflictKind.DELETE_VS_UPDATE
    return ConflictKind.DIVERGENT_UPDATE


def _differing(source: Image, target: Image) -> frozenset[str]:
    if source is None or target is None:
        return frozenset()
    return frozenset(n for n in {*source, *target} if source.get(n) != target.get(n))
