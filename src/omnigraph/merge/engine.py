"""Merge engines carry out the work whose size depends on the merge: in process or on executors.

Merge base, conflicts and commit are the same for every engine. An engine decides entities that both
sides touched, builds and checks the merged rows, and stages them: in process or on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from omnigraph.constraints import Report, TypeImage
from omnigraph.merge.conflicts import VIOLATIONS_MAX
from omnigraph.merge.entity_decisions import Decided, Decider
from omnigraph.merge.merged_rows import alternatives, compose, known_rows
from omnigraph.merge.type_merges import TypeMerge
from omnigraph.prepare.preparer import KnownRows, Preparer
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo


@dataclass(frozen=True, slots=True)
class Composition:
    """The merged rows, the row ids they replace, and the violations among them.

    Undecided entities are present with all their possible outcomes; it cannot be staged then.
    """

    image: Mapping[str, TypeImage]
    known: Mapping[str, KnownRows]
    report: Report


class MergeEngine(Protocol):
    """Computes and stages one merge."""

    def decide(self, decider: Decider, rows: pa.Table) -> Decided:
        """Decide entities that both sides touched."""

    def compose(self, preparer: Preparer, types: Sequence[TypeMerge]) -> Composition:
        """Build the rows of a merge, and check the result."""

    def stage(self, preparer: Preparer, made: Composition, info: WriteInfo) -> PreparedWrite:
        """Stage composed rows."""

    def close(self) -> None:
        """Remove temporary files; called when the merge has ended."""


class LocalMerge:
    """The engine that runs in this process."""

    def decide(self, decider: Decider, rows: pa.Table) -> Decided:
        return decider.decide(rows)

    def compose(self, preparer: Preparer, types: Sequence[TypeMerge]) -> Composition:
        image, known = {}, {}
        report = Report(shown_max=VIOLATIONS_MAX)
        for merge in types:
            known[merge.key], gone = known_rows(merge)
            parts = [compose(merge, report)]
            if merge.undecided:
                parts.append(compose(alternatives(merge), report))
            image[merge.key] = type_image(merge, parts, gone)
        preparer.check(image, report, ids_known=True)
        return Composition(image, known, report)

    def stage(self, preparer: Preparer, made: Composition, info: WriteInfo) -> PreparedWrite:
        return preparer.stage(made.image, info, known=made.known)

    def close(self) -> None:
        pass


def type_image(merge: TypeMerge, parts: Iterable[pa.Table | None], gone: pa.Array) -> TypeImage:
    """The change of one type: its rows, removed ids and undecided ids."""
    rows = [part for part in parts if part is not None]
    together = pa.concat_tables(rows, promote_options="permissive") if rows else None
    undecided = uncertain = None
    if merge.undecided:
        undecided = pa.array([item.id for item in merge.undecided], pa.string())
        absent = [item.id for item in merge.undecided if None in item.alternatives]
        uncertain = pa.array(absent, pa.string())
    removed = gone if len(gone) else None
    return TypeImage(together, removed, undecided=undecided, uncertain=uncertain)


ChooseEngine = Callable[[int], MergeEngine]
"""Returns the engine for a merge, by the number of entities that its source touched."""


def local_engine(_: int) -> MergeEngine:
    return LocalMerge()
