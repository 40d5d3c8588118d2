"""Profiling: measured rows and time of every step of an execution.

Off by default and then without cost. A profile belongs to one execution.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.engine.exec.match_frame import MatchFrame
from omnigraph.lang.query.plan.explain import describe_step
from omnigraph.lang.query.plan.steps import Step


@dataclass(frozen=True, slots=True)
class StepProfile:
    """One measured step. Steps of a negated pattern are one level deeper."""

    text: str
    depth: int
    access: str
    """How entities were found: columns or adjacency in memory, or a look-up in the table."""
    rows_in: int
    rows_out: int = 0
    time_ms: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.text,
            "depth": self.depth,
            "access": self.access,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "time_ms": round(self.time_ms, 3),
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """The steps of one execution, measured if ``enabled``."""

    enabled: bool = False
    depth: int = 0
    steps: list[StepProfile] = field(default_factory=list)

    def inner(self) -> Profile:
        """The profile of a negated pattern, in the same list."""
        return Profile(self.enabled, self.depth + 1, self.steps)

    @contextmanager
    def step(
        self, step: Step, frame: MatchFrame, access: Callable[[Step], str]
    ) -> Iterator[Callable[[MatchFrame], None]]:
        """Measure one step. Called only when the profile is enabled."""
        begun = StepProfile(describe_step(step), self.depth, access(step), frame.rows)
        place = len(self.steps)
        self.steps.append(begun)
        started, rows = time.perf_counter(), 0

        def done(result: MatchFrame) -> None:
            nonlocal rows
            rows = result.rows

        yield done
        passed = (time.perf_counter() - started) * 1000
        self.steps[place] = replace(begun, rows_out=rows, time_ms=passed)
