"""Turns constraint violations of the merged result into conflicts that can be resolved.

Each conflict names the entities and has the values of the three sides that a resolution needs. A
violated cardinality becomes one conflict per edge: those above the maximum, or the deleted ones
that are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.constraints import Image, Report, StoredTypes, TypeImage, Violation
from omnigraph.lang.schema import SRC, EdgeType
from omnigraph.merge.conflict_values import ConflictValues, shown_names
from omnigraph.merge.conflicts import EntityRef, MergeConflict
from omnigraph.merge.three_way import ConflictKind
from omnigraph.snapshots.entity_delta import Side, State
from omnigraph.storage.lance.lookup import locate

_RULES: Final = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "cardinality": ConflictKind.CARDINALITY_VIOLATION,
}
_OF_ONE_ENTITY: Final = ("type", "required", "range", "check", "enum")


@dataclass(frozen=True, slots=True)
class ViolationConflicts:
    """Converts the violations of one merge."""

    repository: Repository
    states: Mapping[str, State]
    image: Image
    stored: StoredTypes

    def conflicts(self, reports: Iterable[Report]) -> list[MergeConflict]:
        """One conflict for each distinct violation, with values."""
        shown = dict.fromkeys(v for report in reports for v in report.shown)
        unfit = {(v.type_key, v.id, v.property) for v in shown if v.rule == "type"}
        found: list[Violation] = []
        for violation in shown:
            if violation.rule == "required" and _where(violation) in unfit:
                continue  # a value that did not fit is null here and was reported as a misfit
            if violation.rule == "cardinality":
                found += self._edges(violation)
            elif violation.rule in _OF_ONE_ENTITY:
                found.append(self._depending(violation))
            else:
                found.append(violation)
        return self._with_values(found)

    def _depending(self, violation: Violation) -> Violation:
        """The violation, marked as depending on its entity if that entity is undecided."""
        key, id, name = _where(violation)
        change = self.image.get(key, TypeImage())
        known = change.rows is not None and name in change.rows.column_names
        if not known or id not in change.unsettled([name]):
            return violation
        return replace(violation, depends_on=((key, id),))

    def _edges(self, violation: Violation) -> Iterator[Violation]:
        """The violation of a source node as one for every edge that is too many or missing."""
        key, source = violation.type_key or "", violation.id or ""
        edge = self.states["target"].schema.type(key)
        assert isinstance(edge, EdgeType)
        written, kept, gone = self._edges_of(edge, source)
        present = [*written, *kept]
        high = edge.cardinality.high
        if high is not None and len(present) > high:
            chosen = present[: len(present) - high]
        else:
            chosen = gone[: max(edge.cardinality.low - len(present), 1)]
            if not chosen:
                chosen = [id for other, id in violation.depends_on if other == key][:1]
        node: EntityRef = (f"node:{edge.source}", source)
        named: list[str | None] = [*chosen] or [None]
        for id in named:
            others = ((key, other) for other in (present if id in present else gone) if other != id)
            yield replace(violation, id=id, columns=(SRC,), related=(node, *others))

    def _edges_of(self, edge: EdgeType, source: str) -> tuple[list[str], list[str], list[str]]:
        """The edges of a source node: written by the merge, unchanged, and removed."""
        change = self.image.get(edge.key, TypeImage())
        written: list[str] = []
        if change.final is not None:
            rows = change.final.filter(pc.equal(change.final[SRC], source))
            written = sorted(set(rows["id"].to_pylist()))
        if change.replaces_all or not self.stored.count(edge.key):
            return written, [], []
        found = self.stored.matching(edge.key, SRC, pa.array([source]), ["id", SRC])
        superseded = set(change.superseded.to_pylist())
        stored = sorted(found["id"].to_pylist())
        written.sort(key=lambda id: id in stored)  # edges that the target has come last
        kept = [id for id in stored if id not in superseded]
        return written, kept, [id for id in stored if id in superseded and id not in written]

    def _with_values(self, violations: Sequence[Violation]) -> list[MergeConflict]:
        by_type: dict[str, list[Violation]] = {}
        for violation in violations:
            by_type.setdefault(violation.type_key or "", []).append(violation)
        return [one for key, found in by_type.items() for one in self._of_type(key, found)]

    def _of_type(self, key: str, violations: Sequence[Violation]) -> Iterator[MergeConflict]:
        owner = self.states["target"].schema.type(key)
        ids = [violation.id for violation in violations]
        shown = {}
        for name in ("base", "target", "source"):
            side = self._side(name, owner.incarnation)
            shown[name] = ConflictValues(side, owner, _row_ids(side, ids))
        for at, violation in enumerate(violations):
            columns = violation.columns or ((violation.property,) if violation.property else ())
            kind = _RULES.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION)
            yield MergeConflict(
                key,
                violation.id,
                kind,
                violation.message,
                shown_names(owner, columns),
                base=shown["base"].of(at, columns),
                ours=shown["target"].of(at, columns),
                theirs=shown["source"].of(at, columns),
                related=violation.related,
                depends_on=violation.depends_on,
            )

    def _side(self, name: str, incarnation: str) -> Side | None:
        state = self.states[name]
        pins = state.snapshot.pins.values()
        key = next((pin.key for pin in pins if pin.incarnation == incarnation), None)
        return None if key is None else state.side(self.repository, key)


def _where(violation: Violation) -> tuple[str, str, str]:
    return violation.type_key or "", violation.id or "", violation.property or ""


def _row_ids(side: Side | None, ids: Sequence[str | None]) -> list[int | None]:
    """The row ids of these entities on one side, None where it does not have them."""
    wanted = pa.array(sorted({id for id in ids if id is not None}), pa.string())
    if side is None or not len(wanted):
        return [None] * len(ids)
    found = locate(side.table, wanted)
    rows: dict[str | None, int] = dict(
        zip(found.ids.to_pylist(), found.row_ids.tolist(), strict=True)
    )
    return [rows.get(id) for id in ids]
