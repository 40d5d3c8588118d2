"""What stands in the way of a merge, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.constraints import Report, Violation
from omnigraph.errors import MergeConflicts
from omnigraph.write.three_way import Clash, ConflictKind

VIOLATIONS_MAX: Final = 10_000
"""All violations of a merged result are reported; beyond this many nobody reads on."""

_MESSAGES: Final = {
    ConflictKind.DIVERGENT_INSERT: "both sides added it, with different values",
    ConflictKind.DIVERGENT_UPDATE: "both sides changed it, differently",
    ConflictKind.DELETE_VS_UPDATE: "one side deleted it and the other changed it",
}
_RULES: Final = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "cardinality": ConflictKind.CARDINALITY_VIOLATION,
}


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One conflict: about which entity, of which kind, in words."""

    type_key: str
    id: str | None
    kind: ConflictKind
    message: str

    def to_json(self) -> dict[str, Any]:
        kind, _, name = self.type_key.partition(":")
        return {
            "entity_kind": kind,
            "type_name": name,
            "entity_id": self.id,
            "kind": str(self.kind),
            "message": self.message,
        }


def clash_conflict(key: str, id: str, clash: Clash) -> MergeConflict:
    """The conflict of an entity that both sides changed."""
    kind, _, name = key.partition(":")
    where = f" ({', '.join(sorted(clash.properties))})" if clash.properties else ""
    return MergeConflict(
        key, id, clash.kind, f"{kind} {name} {id!r}: {_MESSAGES[clash.kind]}{where}"
    )


def violation_conflicts(report: Report) -> list[MergeConflict]:
    """The violations of a merged result as conflicts."""
    return [_of(violation) for violation in report.shown]


def _of(violation: Violation) -> MergeConflict:
    kind = _RULES.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION)
    return MergeConflict(violation.type_key or "", violation.id, kind, violation.message)


def raise_conflicts(conflicts: Sequence[MergeConflict], doing: str) -> None:
    """One error for all of them, if there are any."""
    if conflicts:
        raise MergeConflicts(doing, [conflict.to_json() for conflict in conflicts])


def in_order(conflicts: Iterable[MergeConflict]) -> list[MergeConflict]:
    """By type key, then by id."""
    return sorted(conflicts, key=lambda c: (c.type_key, c.id or "", c.kind, c.message))
