"""What a query really did: rows and time of every step.

Off by default and then free. A profile belongs to one execution.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.engine.exec.frame import Frame
from omnigraph.lang.query.plan.explain import describe_step
from omnigraph.lang.query.plan.steps import Step


@dataclass(frozen=True, slots=True)
class StepProfile:
    """One step as it ran. Steps of a negated pattern are one level deeper."""

    text: str
    depth: int
    access: str
    """How entities were found: in memory, or by look-up in the tables."""
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
    enabled: bool = False
    depth: int = 0
    steps: list[StepProfile] = field(default_factory=list)

    def inner(self) -> Profile:
        """The profile of a negated pattern, in the same list."""
        return Profile(self.enabled, self.depth + 1, self.steps)

    @contextmanager
    def step(
        self, step: Step, frame: Frame, access: Callable[[Step], str]
    ) -> Iterator[Callable[[Frame], None]]:
        """Note one step; only asked for when the profile is enabled."""
        begun = StepProfile(describe_step(step), self.depth, access(step), frame.rows)
        place = len(self.steps)
        self.steps.append(begun)
        started, rows = time.perf_counter(), 0

        def done(result: Frame) -> None:
            nonlocal rows
            rows = result.rows

        yield done
        passed = (time.perf_counter() - started) * 1000
        self.steps[place] = replace(begun, rows_out=rows, time_ms=passed)
