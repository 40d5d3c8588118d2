"""Common parts of the algorithms: options, the task of a sweep, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from omnigraph.bulk.tasks import Tasks
from omnigraph.spark.analytics.network import Network

Result = TypeVar("Result")
Direction = Literal["out", "in", "both"]

SWEEPS_MAX: Final = 10_000
"""Bound on sweeps: longer than any shortest path, except in a graph that is one long chain."""


@dataclass(frozen=True, slots=True)
class AlgorithmOptions:
    """Options of the algorithms; each uses some of them.

    ``tolerance`` bounds the residual of PageRank. ``sources`` are positions of nodes, by block.
    """

    damping: float = 0.85
    tolerance: float = 1e-6
    sweeps_max: int = 100
    direction: Direction = "out"
    sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One block of one sweep. ``given``: a number computed by the previous sweep."""

    network: Network
    options: AlgorithmOptions
    block: int
    sweep: int
    given: float = 0.0


@dataclass(frozen=True, slots=True)
class AlgorithmResult:
    """The result of an algorithm. ``columns`` maps columns to vectors in the scratch.

    ``marks``: the number that stands for null, by column.
    """

    columns: Mapping[str, str]
    sweeps: int = 0
    converged: bool = True
    statistics: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)


def sweep(
    tasks: Tasks,
    name: str,
    function: Callable[[SweepTask], Result],
    network: Network,
    options: AlgorithmOptions,
    number: int = 0,
    given: float = 0.0,
) -> Sequence[Result]:
    """Run one sweep over all blocks; returns the results in the order of the blocks."""
    specs = [SweepTask(network, options, block, number, given) for block in range(network.blocks)]
    return tasks.run(name, function, specs)
