"""Who does the work of a merge: what follows the size of its delta, here or on executors.

Where histories meet, what is in the way and how the result is committed is the same for every
engine. An engine decides contested entities, makes rows and checks them, and stages what it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from omnigraph.constraints import Report, TypeImage
from omnigraph.merge.conflicts import VIOLATIONS_MAX
from omnigraph.merge.content import TypeMerge
from omnigraph.merge.contested import Decided, Decider
from omnigraph.merge.merged_rows import alternatives, compose, known_rows
from omnigraph.prepare.preparer import KnownRows, Preparer
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo


@dataclass(frozen=True, slots=True)
class Composition:
    """The result of a merge: what changes, where it is stored, and what is wrong with it.

    Where entities are undecided, it is about all their possible outcomes, and cannot be staged.
    """

    image: Mapping[str, TypeImage]
    known: Mapping[str, KnownRows]
    report: Report


class MergeEngine(Protocol):
    """What does the work of a merge that follows the size of its delta."""

    def decide(self, decider: Decider, rows: pa.Table) -> Decided:
        """Decide entities that both sides touched."""

    def compose(self, preparer: Preparer, types: Sequence[TypeMerge]) -> Composition:
        """Make the rows of a merge, and check its result."""

    def stage(self, preparer: Preparer, made: Composition, info: WriteInfo) -> PreparedWrite:
        """Stage what was composed."""

    def close(self) -> None:
        """Remove what the work left on its way; called when all is over."""


class InProcess:
    """A merge in this process."""

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
    """The change of one type: its rows, what goes away, and what is not decided."""
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
"""The engine for a merge whose source touched so many entities."""


def in_process(_: int) -> MergeEngine:
    return InProcess()
