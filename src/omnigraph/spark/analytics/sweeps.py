"""What the algorithms share: their settings, a task of a sweep, and what an algorithm answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from omnigraph.spark.analytics.network import Network
from omnigraph.spark.tasks import Tasks

Answer = TypeVar("Answer")
Direction = Literal["out", "in", "both"]

SWEEPS_MAX: Final = 10_000
"""No algorithm may run for ever: a path of so many steps is longer than any graph's that is not
one long chain."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a caller may choose; every algorithm uses some of it.

    ``tolerance`` bounds the residual of PageRank, see there. ``sources`` are the numbers of nodes,
    per block, which the driver has looked up.
    """

    damping: float = 0.85
    tolerance: float = 1e-6
    sweeps_max: int = 100
    direction: Direction = "out"
    sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One block of one sweep. ``given`` is what the sweep before has found out."""

    network: Network
    settings: Settings
    block: int
    sweep: int
    given: float = 0.0


@dataclass(frozen=True, slots=True)
class Computed:
    """What an algorithm answers. ``columns`` says where in the scratch the vector of each lies.

    ``marks`` gives, for a column that may have no value, the number that stands for that.
    """

    columns: Mapping[str, str]
    sweeps: int = 0
    converged: bool = True
    statistics: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)


def sweep(
    tasks: Tasks,
    name: str,
    function: Callable[[SweepTask], Answer],
    network: Network,
    settings: Settings,
    number: int = 0,
    given: float = 0.0,
) -> Sequence[Answer]:
    """Run one sweep over all blocks; the answers come in the order of the blocks."""
    specs = [SweepTask(network, settings, block, number, given) for block in range(network.blocks)]
    return tasks.run(name, function, specs)
