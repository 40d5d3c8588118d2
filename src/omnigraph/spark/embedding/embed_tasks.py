"""Tasks of a backfill: scan for texts that need a vector, and embed a unit of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.scratch import Scratch
from omnigraph.embed.provider import Provider, checked_unit
from omnigraph.spark.embedding.targets import EmbedTarget, TypeTargets
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.tables import PinnedTable, TableRef

TEXTS_PER_UNIT: Final = 1_024
"""Nodes per unit: the work that is lost per core when a run fails."""


@dataclass(frozen=True, slots=True)
class EmbedScan:
    """A scan of some fragments of one type for texts that need a vector."""

    graph: GraphStorage
    ref: TableRef
    type_targets: TypeTargets
    every: bool
    fragment_ids: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()
    """Ids of nodes that other units embed."""

    def table(self) -> PinnedTable:
        return self.graph.table(self.ref)

    @property
    def condition(self) -> str:
        """A filter: nodes with a text and no vector, or with any text."""
        parts = []
        for target in self.type_targets.targets:
            text = f"`{target.source}` IS NOT NULL AND `{target.source}` != ''"
            parts.append(text if self.every else f"(`{target.property}` IS NULL AND {text})")
        return " OR ".join(parts)

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """The nodes that need a vector, in storage order."""
        found = self.table().scan(columns, self.condition, fragment_ids=self.fragment_ids)
        if not self.without:
            return found
        elsewhere = pa.array(self.without, pa.string())
        return found.filter(pc.invert(pc.is_in(found["id"], value_set=elsewhere)))


@dataclass(frozen=True, slots=True)
class Unit:
    """The nodes of one task: a slice of a scan, or stale nodes by id."""

    scan: EmbedScan
    start: int = 0
    count: int = TEXTS_PER_UNIT
    ids: tuple[str, ...] = ()
    stale: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The stale ones of ``ids``, by property."""

    @property
    def name(self) -> str:
        """Deterministic object name, the same in a repeated run."""
        what = f"{self.scan.ref}{self.scan.fragment_ids}{self.start}{self.ids}{self.scan.every}"
        return f"vectors/{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    def rows(self) -> pa.Table:
        type_targets = self.scan.type_targets
        columns = [
            "id",
            *type_targets.sources,
            *(target.property for target in type_targets.targets),
        ]
        if self.ids:
            return self.scan.table().scan(columns, membership("id", pa.array(self.ids)))
        return self.scan.rows(columns).slice(self.start, self.count)


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """One unit to embed. ``pause_s``: least time between two requests of the task."""

    scratch: Scratch
    unit: Unit
    provider: Provider
    batch: int
    pause_s: float


@dataclass(frozen=True, slots=True)
class EmbeddedUnit:
    """The result of a unit: its object, its nodes, and the texts sent to the provider."""

    name: str
    nodes: int
    texts_sent: int


def count_rows(scan: EmbedScan) -> int:
    """How many nodes of a scan need a vector."""
    return int(scan.rows(["id"]).num_rows)


def embed_unit(task: EmbedTask) -> EmbeddedUnit:
    """Embed a unit, unless an earlier run has staged its vectors (task)."""
    name = task.unit.name
    if task.scratch.objects.exists(f"{task.scratch.prefix}/{name}"):
        return EmbeddedUnit(name, task.scratch.get_table(name).num_rows, 0)
    rows = task.unit.rows()
    texts_sent = 0
    for target in task.unit.scan.type_targets.targets:
        column, count = _vectors(task, target, rows)
        texts_sent += count
        rows = rows.set_column(rows.column_names.index(target.property), target.property, column)
    task.scratch.put_table(name, rows)
    return EmbeddedUnit(name, rows.num_rows, texts_sent)


def _vectors(task: EmbedTask, target: EmbedTarget, rows: pa.Table) -> tuple[pa.Array, int]:
    """The vectors of one property, computed where missing or stale; and the texts sent."""
    texts, vectors = rows[target.source].to_pylist(), rows[target.property].to_pylist()
    stale = task.unit.stale.get(target.property, frozenset())
    missing = []
    for at, id in enumerate(rows["id"].to_pylist()):
        again = task.unit.scan.every or id in stale
        if texts[at] and (again or vectors[at] is None):
            missing.append(at)
        elif again and target.nullable:
            vectors[at] = None  # its text was removed
    distinct = list(dict.fromkeys(texts[at] for at in missing))
    made = _embed_texts(task, target, distinct)
    for at in missing:
        vectors[at] = made[texts[at]]
    return pa.array(vectors, rows.schema.field(target.property).type), len(distinct)


def _embed_texts(task: EmbedTask, target: EmbedTarget, texts: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for start in range(0, len(texts), task.batch):
        began = time.monotonic()
        some = texts[start : start + task.batch]
        results = task.provider.embed_many(some, target.dimensions, "document")
        for text, numbers in zip(some, results, strict=True):
            found[text] = checked_unit(numbers, target.dimensions)
        rest_s = task.pause_s - (time.monotonic() - began)
        if rest_s > 0:
            time.sleep(rest_s)  # keeps the rate limit
    return found
