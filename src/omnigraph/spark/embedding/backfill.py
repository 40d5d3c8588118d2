"""One run: find what needs a vector, have it made, commit it at once or in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.rows import Commit
from omnigraph.embed.provider import Provider
from omnigraph.engine.engine import Reader
from omnigraph.errors import EmbeddingFailure, InvalidInput
from omnigraph.snapshots.entity_delta import State
from omnigraph.spark.analytics.scratch import Scratch
from omnigraph.spark.assign import Assigned, Assignment
from omnigraph.spark.embedding.targets import (
    TARGETS,
    TEXTS_OF,
    Stale,
    TypeTargets,
    find_stale,
    find_targets,
)
from omnigraph.spark.embedding.tasks import (
    TEXTS_PER_UNIT,
    Embedded,
    EmbedTask,
    Place,
    Unit,
    count_rows,
    embed_unit,
)
from omnigraph.spark.intent import Intent
from omnigraph.spark.load.partitions import fragment_groups
from omnigraph.spark.load.parts import Part
from omnigraph.spark.tasks import Tasks

ROWS_PER_PLACE: Final = 1 << 20
BATCH_DEFAULT: Final = 64
"""Texts per request: far below what providers allow, and enough to hide the way there."""

IN_PROCESS_NODES_MAX: Final = 2 * TEXTS_PER_UNIT
"""Up to here starting Spark would take longer than asking the provider."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How a run goes about it. ``rate`` is requests per second, over all tasks together."""

    types: Sequence[str] | None = None
    every: bool = False
    commit_every: int | None = None
    batch: int = BATCH_DEFAULT
    rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("commit_every", "batch", "rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInput(f"{name} is {value!r}", remedy="Give a number above zero.")


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What a run did: nodes with new vectors, texts that the provider was asked for, commits."""

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
    """A run over one snapshot of one branch."""

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
        for wanted in self._types:
            for target in wanted.targets:
                _require_model(target.model, provider)
        repository = reader.repository
        self._intent = Intent(repository.objects, self._name())
        self._scratch = Scratch(repository.location.uri, self._intent.prefix)

    def _name(self) -> str:
        """The same for the same run over the same state: it finds what it left before."""
        state, options = self._state.snapshot, self._options
        what = f"{state.commit_id}{options.types}{options.every}{self._provider!r}"
        return f"embed-{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    def find(self) -> tuple[list[Unit], int]:
        """The units of this run, in order, and how many nodes are stale."""
        units: list[Unit] = []
        stale = 0
        for wanted in self._types:
            found: Stale = {}
            if not self._options.every:
                found = find_stale(self._reader, self._state, wanted, self._find_commit)
            ids = sorted(set[str]().union(*found.values()))
            stale += len(ids)
            for place in self._places(wanted, tuple(ids)):
                rows = count_rows(place)
                for start in range(0, rows, TEXTS_PER_UNIT):
                    units.append(Unit(place, start, min(TEXTS_PER_UNIT, rows - start)))
            ref = self._state.snapshot.pin(wanted.owner.key).ref
            whole = Place(self._scratch.uri, ref, wanted, every=False)
            for start in range(0, len(ids), TEXTS_PER_UNIT):
                some = tuple(ids[start : start + TEXTS_PER_UNIT])
                by_property = {name: frozenset(which & set(some)) for name, which in found.items()}
                units.append(Unit(whole, 0, len(some), some, by_property))
        return units, stale

    def _places(self, wanted: TypeTargets, stale: tuple[str, ...]) -> Iterator[Place]:
        ref = self._state.snapshot.pin(wanted.owner.key).ref
        table = self._reader.repository.tables.open(ref)
        for group in fragment_groups(table, ROWS_PER_PLACE):
            yield Place(self._scratch.uri, ref, wanted, self._options.every, group, stale)

    def run(
        self,
        units: Sequence[Unit],
        stale: int,
        tasks: Tasks,
        commit: Callable[[Assignment, Mapping[str, str]], Commit | None],
    ) -> EmbedResult:
        """Make the vectors and commit them. What is left behind by a failure is found again."""
        if not units:
            return EmbedResult(self._branch, {}, stale, 0, self._provider.model)
        self._intent.declare()
        try:
            result = self._run(list(self._rounds(units)), stale, tasks, commit)
        except BaseException:
            self._intent.release()
            raise
        self._intent.clear()
        return result

    def _run(
        self,
        rounds: Sequence[Sequence[Unit]],
        stale: int,
        tasks: Tasks,
        commit: Callable[[Assignment, Mapping[str, str]], Commit | None],
    ) -> EmbedResult:
        nodes: dict[str, int] = {}
        commits: list[Commit] = []
        asked = 0
        for number, some in enumerate(rounds, 1):
            made = tasks.run("embedding", embed_unit, self._tasks(some, tasks.parallelism))
            last = number == len(rounds)
            done = commit(self._assignment(some, made), self._metadata(last))
            if done is not None:
                commits.append(done)
            asked += sum(answer.asked for answer in made)
            for unit, answer in zip(some, made, strict=True):
                name = unit.place.wanted.owner.name
                nodes[name] = nodes.get(name, 0) + answer.nodes
        model = self._provider.model
        return EmbedResult(self._branch, nodes, stale, asked, model, tuple(commits))

    def _rounds(self, units: Sequence[Unit]) -> Iterator[list[Unit]]:
        """Units that are committed together."""
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

    def _assignment(self, units: Sequence[Unit], made: Sequence[Embedded]) -> Assignment:
        types: dict[str, Assigned] = {}
        parts = []
        for number, (unit, answer) in enumerate(zip(units, made, strict=True)):
            wanted = unit.place.wanted
            names = tuple(target.property for target in wanted.targets)
            types[wanted.owner.key] = Assigned(names, wanted.sources)
            address = self._scratch.address(answer.name)
            size = answer.nodes * sum(target.dimensions for target in wanted.targets) * 4
            parts.append(Part(number, "<vectors>", address, None, "arrow", wanted.owner.key, size))
        return Assignment(types, tuple(parts))

    def _metadata(self, last: bool) -> dict[str, str]:
        """Only the end of a run says that all texts of its state have their vectors."""
        known = {"model": self._provider.model}
        if not last:
            return known
        names = ",".join(name for wanted in self._types for name in wanted.names)
        return {**known, TARGETS: names, TEXTS_OF: self._state.snapshot.commit_id}


def is_small(units: Sequence[Unit]) -> bool:
    """Whether a run is not worth starting Spark."""
    return sum(unit.count for unit in units) <= IN_PROCESS_NODES_MAX


def _require_model(model: str | None, provider: Provider) -> None:
    if model is not None and model != provider.model:
        raise EmbeddingFailure(
            f"the property's vectors are of model {model!r}, "
            f"and the provider's model is {provider.model!r}",
            remedy=f"Set OMNIGRAPH_EMBED_MODEL={model}.",
            details={"expected_model": model, "actual_model": provider.model},
        )
