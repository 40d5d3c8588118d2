"""One backfill run: find texts that need vectors, embed them, commit once or in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.bulk.assign import AssignedProperties, PropertyAssignment
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.intent import Intent
from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.rows import Commit
from omnigraph.embed.provider import Provider
from omnigraph.engine.engine import Reader
from omnigraph.errors import EmbeddingFailure, InvalidInput
from omnigraph.snapshots.entity_delta import State
from omnigraph.spark.embedding.embed_tasks import (
    TEXTS_PER_UNIT,
    EmbeddedUnit,
    EmbedScan,
    EmbedTask,
    Unit,
    count_rows,
    embed_unit,
)
from omnigraph.spark.embedding.targets import (
    TARGETS,
    TEXTS_OF,
    Stale,
    TypeTargets,
    find_stale,
    find_targets,
)

ROWS_PER_SCAN: Final = 1 << 20
BATCH_DEFAULT: Final = 64
"""Texts per request: far below the limits of providers, and enough to amortise the latency."""

IN_PROCESS_NODES_MAX: Final = 2 * TEXTS_PER_UNIT
"""Up to this number of nodes a run is faster in process than starting Spark."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """Options of a run. ``rate``: requests per second of all tasks; ``every``: embed all texts."""

    types: Sequence[str] | None = None
    every: bool = False
    commit_every: int | None = None
    batch: int = BATCH_DEFAULT
    rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("commit_every", "batch", "rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInput(f"{name} is {value!r}", remedy="Use a positive number.")


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """The result of a run: nodes with new vectors, texts sent to the provider, commits."""

    branch: str
    nodes: Mapping[str, int]
    stale: int
    asked: int
    model: str
    commits: tuple[Commit, ...] = field(default_factory=tuple)

    @property
    def total(self) -> int:
        return sum(self.nodes.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "nodes": dict(self.nodes),
            "total": self.total,
            "stale": self.stale,
            "asked": self.asked,
            "model": self.model,
            "commits": [commit.to_json() for commit in self.commits],
        }


class Backfill:
    """A backfill run over one snapshot of a branch."""

    def __init__(
        self,
        reader: Reader,
        state: State,
        branch: str,
        options: EmbedOptions,
        provider: Provider,
        find_commit: Callable[[str], Commit | None],
    ) -> None:
        self._reader = reader
        self._state = state
        self._branch = branch
        self._options = options
        self._provider = provider
        self._find_commit = find_commit
        self._types = find_targets(state.schema, options.types)
        for type_targets in self._types:
            for target in type_targets.targets:
                _require_model(target.model, provider)
        repository = reader.repository
        self._intent = Intent(repository, self._name())
        self._scratch = Scratch(GraphStorage.of(repository), self._intent.prefix)

    def _name(self) -> str:
        """A deterministic id of the run, so that a repeated run finds the staged vectors."""
        state, options = self._state.snapshot, self._options
        what = f"{state.commit_id}{options.types}{options.every}{self._provider!r}"
        return f"embed-{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    def find(self) -> tuple[list[Unit], int]:
        """The units of this run, in order, and the number of nodes with a stale vector."""
        units: list[Unit] = []
        stale = 0
        for type_targets in self._types:
            found: Stale = {}
            if not self._options.every:
                found = find_stale(self._reader, self._state, type_targets, self._find_commit)
            ids = sorted(set[str]().union(*found.values()))
            stale += len(ids)
            for scan in self._scans(type_targets, tuple(ids)):
                rows = count_rows(scan)
                for start in range(0, rows, TEXTS_PER_UNIT):
                    units.append(Unit(scan, start, min(TEXTS_PER_UNIT, rows - start)))
            ref = self._state.snapshot.pin(type_targets.owner.key).ref
            whole = EmbedScan(self._scratch.graph, ref, type_targets, every=False)
            for start in range(0, len(ids), TEXTS_PER_UNIT):
                some = tuple(ids[start : start + TEXTS_PER_UNIT])
                by_property = {name: frozenset(which & set(some)) for name, which in found.items()}
                units.append(Unit(whole, 0, len(some), some, by_property))
        return units, stale

    def _scans(self, type_targets: TypeTargets, stale: tuple[str, ...]) -> Iterator[EmbedScan]:
        ref = self._state.snapshot.pin(type_targets.owner.key).ref
        table = self._reader.repository.tables.open(ref)
        for group in fragment_groups(table, ROWS_PER_SCAN):
            yield EmbedScan(
                self._scratch.graph, ref, type_targets, self._options.every, group, stale
            )

    def run(
        self,
        units: Sequence[Unit],
        stale: int,
        tasks: Tasks,
        commit: Callable[[PropertyAssignment, Mapping[str, str]], Commit | None],
    ) -> EmbedResult:
        """Compute the vectors and commit them. After a failure the staged vectors are kept."""
        if not units:
            return EmbedResult(self._branch, {}, stale, 0, self._provider.model)
        self._intent.declare()
        try:
            result = self._run(list(self._commit_groups(units)), stale, tasks, commit)
        except BaseException:
            self._intent.release()
            raise
        self._intent.clear()
        return result

    def _run(
        self,
        groups: Sequence[Sequence[Unit]],
        stale: int,
        tasks: Tasks,
        commit: Callable[[PropertyAssignment, Mapping[str, str]], Commit | None],
    ) -> EmbedResult:
        nodes: dict[str, int] = {}
        commits: list[Commit] = []
        sent = 0
        for number, some in enumerate(groups, 1):
            made = tasks.run("embedding", embed_unit, self._tasks(some, tasks.parallelism))
            last = number == len(groups)
            done = commit(self._assignment(some, made), self._metadata(last))
            if done is not None:
                commits.append(done)
            sent += sum(result.texts_sent for result in made)
            for unit, result in zip(some, made, strict=True):
                name = unit.scan.type_targets.owner.name
                nodes[name] = nodes.get(name, 0) + result.nodes
        model = self._provider.model
        return EmbedResult(self._branch, nodes, stale, sent, model, tuple(commits))

    def _commit_groups(self, units: Sequence[Unit]) -> Iterator[list[Unit]]:
        """Groups of units, one commit each."""
        some: list[Unit] = []
        for unit in units:
            some.append(unit)
            limit = self._options.commit_every
            if limit is not None and sum(item.count for item in some) >= limit:
                yield some
                some = []
        if some:
            yield some

    def _tasks(self, units: Sequence[Unit], parallelism: int) -> list[EmbedTask]:
        at_once = min(max(parallelism, 1), len(units))
        rate = self._options.rate
        pause_s = 0.0 if rate is None else at_once / rate
        return [
            EmbedTask(self._scratch, unit, self._provider, self._options.batch, pause_s)
            for unit in units
        ]

    def _assignment(
        self, units: Sequence[Unit], made: Sequence[EmbeddedUnit]
    ) -> PropertyAssignment:
        types: dict[str, AssignedProperties] = {}
        parts = []
        for number, (unit, result) in enumerate(zip(units, made, strict=True)):
            type_targets = unit.scan.type_targets
            names = tuple(target.property for target in type_targets.targets)
            types[type_targets.owner.key] = AssignedProperties(names, type_targets.sources)
            address = self._scratch.address(result.name)
            size = result.nodes * sum(target.dimensions for target in type_targets.targets) * 4
            key, storage = type_targets.owner.key, self._scratch.graph.storage
            parts.append(
                InputPart(number, "<vectors>", address, None, "arrow", key, size, storage=storage)
            )
        return PropertyAssignment(types, tuple(parts))

    def _metadata(self, last: bool) -> dict[str, str]:
        """Metadata of a commit; only the last one declares the texts of the snapshot embedded."""
        known = {"model": self._provider.model}
        if not last:
            return known
        names = ",".join(name for type_targets in self._types for name in type_targets.names)
        return {**known, TARGETS: names, TEXTS_OF: self._state.snapshot.commit_id}


def is_small(units: Sequence[Unit]) -> bool:
    """Whether a run is too small for Spark."""
    return sum(unit.count for unit in units) <= IN_PROCESS_NODES_MAX


def _require_model(model: str | None, provider: Provider) -> None:
    if model is not None and model != provider.model:
        raise EmbeddingFailure(
            f"the property uses embedding model {model!r}, "
            f"but the provider uses {provider.model!r}",
            remedy=f"Set OMNIGRAPH_EMBED_MODEL={model}.",
            details={"expected_model": model, "actual_model": provider.model},
        )
