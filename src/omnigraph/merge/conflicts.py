"""Merge conflicts as values.

A conflict names an entity, its contested properties and the values of the three sides: enough to
write a resolution (``resolutions.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from omnigraph.errors import MergeConflicts
from omnigraph.merge.three_way import ConflictKind, MergeLevel, MergeStrategy

VIOLATIONS_MAX: Final = 10_000
"""The number of violations of the merged result that are reported."""

_MESSAGES: Final = {
    ConflictKind.DIVERGENT_INSERT: "both sides added it, with different values",
    ConflictKind.DIVERGENT_UPDATE: "both sides changed it, differently",
    ConflictKind.DELETE_VS_UPDATE: "one side deleted it and the other changed it",
}
_DIVERGENT: Final = (ConflictKind.DIVERGENT_INSERT, ConflictKind.DIVERGENT_UPDATE)

EntityRef = tuple[str, str]
"""A type key and an id."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One conflict of a merge.

    ``properties`` are the contested ones: those that both sides changed to different values.
    ``base``, ``ours`` and ``theirs`` are their values on the three sides (where no property is
    contested, those that either side changed); None where a side does not have the entity.
    ``related`` are the other entities of a violated constraint: the owner of the same unique value,
    the missing node, other edges of the same source. ``depends_on`` are entities in conflict whose
    resolution may remove this conflict; if empty, no other resolution removes it.
    """

    type_key: str
    id: str | None
    kind: ConflictKind
    message: str
    properties: tuple[str, ...] = ()
    base: dict[str, Any] | None = None
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None
    related: tuple[EntityRef, ...] = ()
    depends_on: tuple[EntityRef, ...] = ()

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            **_named(self.type_key, self.id),
            "kind": str(self.kind),
            "message": self.message,
            "properties": list(self.properties),
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
        }
        if self.related:
            body["related"] = [_named(*entity) for entity in self.related]
        if self.depends_on:
            body["depends_on"] = [_named(*entity) for entity in self.depends_on]
        return body


def _named(type_key: str, id: str | None) -> dict[str, Any]:
    kind, _, name = type_key.partition(":")
    return {"entity_kind": kind, "type_name": name, "entity_id": id}


def clash_conflict(
    key: str,
    id: str,
    conflict: ConflictKind,
    properties: tuple[str, ...],
    base: dict[str, Any] | None,
    ours: dict[str, Any] | None,
    theirs: dict[str, Any] | None,
) -> MergeConflict:
    """The conflict of an entity that both sides changed."""
    kind, _, name = key.partition(":")
    where = f" ({', '.join(properties)})" if properties else ""
    message = f"{kind} {name} {id!r}: {_MESSAGES[conflict]}{where}"
    return MergeConflict(key, id, conflict, message, properties, base, ours, theirs)


def raise_conflicts(
    conflicts: Sequence[MergeConflict], doing: str, *, level: MergeLevel, resolvable: bool = True
) -> None:
    """Raise one error for all conflicts, if there are any."""
    if conflicts:
        found = [conflict.to_json() for conflict in conflicts]
        raise MergeConflicts(doing, found, remedy=_remedy(conflicts, level, resolvable))


def _remedy(conflicts: Sequence[MergeConflict], level: MergeLevel, resolvable: bool) -> str:
    """The ways to resolve these conflicts."""
    if not resolvable:
        return (
            "Nothing was changed. Restore what these entities depend on together with them, or "
            "apply a schema that holds their values."
        )
    ways = ["decide the entities one by one (--resolve FILE)"]
    if any(c.kind in _MESSAGES and c.id is not None for c in conflicts):
        ways.append(f"choose a side (--strategy {'|'.join(get_args(MergeStrategy))})")
    if level == "entity" and any(c.kind in _DIVERGENT and not c.properties for c in conflicts):
        ways.append("merge by property (--level property)")
    if any(c.id is None for c in conflicts):
        ways.append("apply one schema to both sides")
    listed = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    return f"Nothing was changed. {listed[0].upper()}{listed[1:]}."


def in_order(conflicts: Iterable[MergeConflict]) -> list[MergeConflict]:
    """Conflicts sorted by type key, then by id."""
    return sorted(conflicts, key=lambda c: (c.type_key, c.id or "", c.kind, c.message))
