"""On executors: counting what needs a vector, and making some of the vectors."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.provider import Provider, checked_unit
from omnigraph.spark.analytics.scratch import Scratch
from omnigraph.spark.embedding.targets import Target, TypeTargets
from omnigraph.spark.load.partitions import open_table
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.tables import PinnedTable, TableRef

TEXTS_PER_UNIT: Final = 1_024
"""Nodes whose vectors are kept together: what a run that dies loses, per core."""


@dataclass(frozen=True, slots=True)
class Place:
    """Some stored rows of one type."""

    graph_uri: str
    ref: TableRef
    wanted: TypeTargets
    every: bool
    fragment_ids: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()
    """Nodes that are dealt with elsewhere."""

    def table(self) -> PinnedTable:
        return open_table(self.graph_uri, self.ref)

    @property
    def condition(self) -> str:
        """Nodes with a text that has no vector, or with any text."""
        parts = []
        for target in self.wanted.targets:
            text = f"`{target.source}` IS NOT NULL AND `{target.source}` != ''"
            parts.append(text if self.every else f"(`{target.property}` IS NULL AND {text})")
        return " OR ".join(parts)

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """The nodes that need a vector, in the order they are stored."""
        found = self.table().scan(columns, self.condition, fragment_ids=self.fragment_ids)
        if not self.without:
            return found
        elsewhere = pa.array(self.without, pa.string())
        return found.filter(pc.invert(pc.is_in(found["id"], value_set=elsewhere)))


@dataclass(frozen=True, slots=True)
class Unit:
    """The nodes of one task: some of a place by their order, or by name where they are stale."""

    place: Place
    start: int = 0
    count: int = TEXTS_PER_UNIT
    ids: tuple[str, ...] = ()
    stale: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Which of the named nodes are stale, by property."""

    @property
    def name(self) -> str:
        """The same for the same nodes of the same state, in every run."""
        what = f"{self.place.ref}{self.place.fragment_ids}{self.start}{self.ids}{self.place.every}"
        return f"vectors/{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    def rows(self) -> pa.Table:
        wanted = self.place.wanted
        columns = ["id", *wanted.sources, *(target.property for target in wanted.targets)]
        if self.ids:
            return self.place.table().scan(columns, membership("id", pa.array(self.ids)))
        return self.place.rows(columns).slice(self.start, self.count)


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """``pause_s`` lies between two requests of one task."""

    scratch: Scratch
    unit: Unit
    provider: Provider
    batch: int
    pause_s: float


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a task left: where, how many nodes, and how many texts it had to ask for."""

    name: str
    nodes: int
    asked: int


def count_rows(place: Place) -> int:
    """How many nodes of a place need a vector."""
    return int(place.rows(["id"]).num_rows)


def embed_unit(task: EmbedTask) -> Embedded:
    """Make the vectors of a unit, unless a run before this one has left them."""
    name = task.unit.name
    if task.scratch.objects.exists(f"{task.scratch.prefix}/{name}"):
        return Embedded(name, task.scratch.get_table(name).num_rows, 0)
    rows = task.unit.rows()
    asked = 0
    for target in task.unit.place.wanted.targets:
        column, count = _vectors(task, target, rows)
        asked += count
        rows = rows.set_column(rows.column_names.index(target.property), target.property, column)
    task.scratch.put_table(name, rows)
    return Embedded(name, rows.num_rows, asked)


def _vectors(task: EmbedTask, target: Target, rows: pa.Table) -> tuple[pa.Array, int]:
    """The vectors of one property: made where they are asked for, otherwise as they were."""
    texts, vectors = rows[target.source].to_pylist(), rows[target.property].to_pylist()
    stale = task.unit.stale.get(target.property, frozenset())
    wanted = []
    for at, id in enumerate(rows["id"].to_pylist()):
        again = task.unit.place.every or id in stale
        if texts[at] and (again or vectors[at] is None):
            wanted.append(at)
        elif again and target.nullable:
            vectors[at] = None  # the text it was made of is gone
    distinct = list(dict.fromkeys(texts[at] for at in wanted))
    made = _asked(task, target, distinct)
    for at in wanted:
        vectors[at] = made[texts[at]]
    return pa.array(vectors, rows.schema.field(target.property).type), len(distinct)


def _asked(task: EmbedTask, target: Target, texts: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for start in range(0, len(texts), task.batch):
        began = time.monotonic()
        some = texts[start : start + task.batch]
        answers = task.provider.embed_many(some, target.dimensions, "document")
        for text, numbers in zip(some, answers, strict=True):
            found[text] = checked_unit(numbers, target.dimensions)
        rest_s = task.pause_s - (time.monotonic() - began)
        if rest_s > 0:
            time.sleep(rest_s)  # the provider allows so many requests, over all tasks together
    return found
